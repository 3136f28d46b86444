/*
 * How an application ends: at which signals, by which drain, and by which close hooks. They run after the last request
 * and close databases, queues and the like.
 */

import { monotonicNow, setTimeout } from '../base/clock.js';
import { MAX_TIMEOUT_MS, TIME, within } from '../base/deadline.js';
import { isRunByHand, logSafely, type Logger } from '../base/log.js';
import type { Kinds } from '../base/options-check.js';
import type { Tasks } from '../monitor/tasks.js';
import type { Listener } from './listener.js';

/** How to drain, in ms. */
export interface CloseOptions {
  /** How long requests are still accepted, while load balancers notice. Default: 0. */
  delay?: number | undefined;
  /**
   * Maximum time after `delay` for work in flight; then it is cut off. Default: 10,000. Close hooks have the rest of
   * that time, and at least a second.
   */
  timeout?: number | undefined;
}

export const CLOSE: Kinds<CloseOptions> = { delay: TIME, timeout: TIME };

/** Minimum time limit of the close hooks, in ms: they have it even if no time is left. */
const MIN_HOOK_MS = 1000;
/** How long, in ms, a scrape of the monitoring listener may take when everything else is closed. */
const LAST_SCRAPE_MS = 1000;

/**
 * Finishes the work in flight, then closes the listeners.
 *
 * @param monitor the listener for monitoring, which is closed last
 * @param stop aborts when no connection is accepted any more
 * @returns whether everything in flight could finish
 */
export async function drain(
  { delay = 0, timeout = 10_000 }: CloseOptions,
  listener: Listener,
  monitor: Listener | null,
  tasks: Tasks,
  stop: AbortController,
  hooks: readonly (() => unknown)[],
  logger: Logger,
): Promise<boolean> {
  if (delay > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(delay, MAX_TIMEOUT_MS)));
  stop.abort();
  const startedAtMs = monotonicNow();
  const leftMs = (): number => Math.max(0, timeout - (monotonicNow() - startedAtMs));
  const cut = await listener.wire.close(timeout);
  // Only now: a request in flight may have started more of this work.
  await within(leftMs(), tasks.settled());
  const finished = cut.length === 0 && tasks.tracked === 0;
  const clean = (await runCloseHooks(hooks, Math.max(MIN_HOOK_MS, leftMs()), logger)) && finished;
  monitor?.wire.beginDrain();
  await monitor?.wire.close(LAST_SCRAPE_MS);
  return clean;
}

/**
 * Runs the hooks one after the other. One that fails does not keep the next from running; one that hangs must not keep
 * the process.
 *
 * @param timeoutMs for all of them
 * @returns whether each has ended
 */
async function runCloseHooks(hooks: readonly (() => unknown)[], timeoutMs: number, logger: Logger): Promise<boolean> {
  let ended = 0;
  const run = async (): Promise<void> => {
    for (const hook of hooks) {
      try {
        await hook();
      } catch (error) {
        logSafely(logger, 'error', { err: error }, 'close hook failed');
      }
      ended += 1;
    }
  };
  await within(timeoutMs, run());
  if (ended < hooks.length) logSafely(logger, 'error', { hook: ended + 1, timeout_ms: timeoutMs }, 'close hook hangs');
  return ended === hooks.length;
}

/** Load balancers stop sending within a few seconds after an instance is removed (Kubernetes, gateways, DNS caches). */
const SIGTERM_DELAY_MS = 5_000;

/** How long, in ms, a drain keeps serving by default: nobody balances load to a service that a person runs. */
export function drainDelayOf(signal: NodeJS.Signals, env: NodeJS.ProcessEnv): number {
  const isWatched = env['WATCH_REPORT_DEPENDENCIES'] !== undefined;
  return signal === 'SIGTERM' && !isRunByHand(env) && !isWatched ? SIGTERM_DELAY_MS : 0;
}

/** The drains of all applications in this process that end with it. */
const drains: ((signal: NodeJS.Signals) => Promise<boolean>)[] = [];

/**
 * Ends the process at SIGTERM or SIGINT, when every application in it has drained; at once at the second signal.
 *
 * @param drain resolves to whether nothing had to be cut off: the exit code is 0 if none had to, else 1
 */
export function exitOnSignal(drain: (signal: NodeJS.Signals) => Promise<boolean>): void {
  if (drains.push(drain) > 1) return;
  let signaled = false;
  const onSignal = async (signal: NodeJS.Signals): Promise<void> => {
    if (signaled) process.exit(1);
    signaled = true;
    const clean = await Promise.all(drains.map((each) => each(signal)));
    process.exit(clean.every(Boolean) ? 0 : 1);
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
}
