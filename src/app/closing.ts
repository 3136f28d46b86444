/*
 * How an application ends: at which signals and exceptions, and by which close hooks. The hooks run after the last
 * request and close databases, queues and the like.
 */

import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import { TIME, within } from '../base/deadline.js';
import { isRunByHand, logSafely, type Logger } from '../base/log.js';
import type { Kinds } from '../base/options-check.js';
import type { Context } from '../answer/context.js';
import type { Exchange } from '../wire/exchange.js';

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

/** How long, in ms, a drain waits for work in flight by default. */
export const DRAIN_TIMEOUT_MS = 10_000;

/** Maximum requests that one line of the log lists. */
const MAX_LISTED = 20;

/** Requests in flight for a line of the log, oldest first. */
export function describeInFlight(exchanges: ReadonlySet<Exchange<Context>>): object {
  const nowMs = monotonicNow();
  const requests = [...exchanges].slice(0, MAX_LISTED).map(({ handling, id, startedAtMs }) => {
    return { route: handling?.label || null, request_id: id, age_ms: Math.round(nowMs - startedAtMs) };
  });
  return { requests, request_count: exchanges.size };
}

/**
 * Runs the hooks one after the other. One that fails does not keep the next from running; one that hangs must not keep
 * the process.
 *
 * @param timeoutMs for all of them
 * @returns whether each has ended
 */
export async function runCloseHooks(
  hooks: readonly (() => unknown)[],
  timeoutMs: number,
  logger: Logger,
): Promise<boolean> {
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
export const SIGTERM_DELAY_MS = 5_000;

/** How long, in ms, a drain keeps serving by default: nobody balances load to a service that a person runs. */
export function drainDelayOf(signal: NodeJS.Signals, env: NodeJS.ProcessEnv): number {
  const isAlone = isRunByHand(env) || (!env['KUBERNETES_SERVICE_HOST'] && isWatched(env));
  return signal === 'SIGTERM' && !isAlone ? SIGTERM_DELAY_MS : 0;
}

/** Whether `node --watch` or `tsx watch` restarts this process. tsx kills what has not ended after 5 s. */
function isWatched(env: NodeJS.ProcessEnv): boolean {
  if (env['WATCH_REPORT_DEPENDENCIES'] !== undefined) return true;
  // A child of `tsx watch` does not differ from a child of `tsx`; only the parent does.
  if (!process.execArgv.some((arg) => arg.includes('tsx'))) return false;
  let parent = env['npm_lifecycle_script'] ?? '';
  try {
    parent += builtin('node:fs').readFileSync(`/proc/${process.ppid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    // Not Linux, or not permitted.
  }
  return /\btsx\S* watch\b/.test(parent);
}

/** An application that ends with the process. */
interface Running {
  /** Drains at a signal. @returns whether nothing had to be cut off */
  drain(signal: NodeJS.Signals): Promise<boolean>;
  /** Logs an exception that nobody caught, and ends what is in flight. */
  fail(thrown: unknown, message: string): Promise<unknown>;
}

/** All applications in this process that end with it. */
const running: Running[] = [];

/** How long, in ms, a repeated signal is the same one: npm, tsx and a shell pass on what their whole group got. */
const SAME_SIGNAL_MS = 500;

/**
 * Ends the process at SIGTERM, SIGINT or an exception that nobody else handles, when every application has drained. The
 * exit code is 0 if there was a signal and nothing had to be cut off, else 1. A second signal ends the process at once.
 */
export function endWithProcess(application: Running): void {
  if (running.push(application) > 1) return;
  let signaledAtMs: number | undefined;
  let exitCode = 0;
  const onSignal = async (signal: NodeJS.Signals): Promise<void> => {
    const nowMs = monotonicNow();
    if (signaledAtMs !== undefined && nowMs - signaledAtMs >= SAME_SIGNAL_MS) process.exit(1);
    if (signaledAtMs !== undefined) return;
    signaledAtMs = nowMs;
    const clean = await Promise.all(running.map((each) => each.drain(signal)));
    process.exit(clean.every(Boolean) ? exitCode : 1);
  };
  const onUncaught = async (thrown: unknown, origin: NodeJS.UncaughtExceptionOrigin): Promise<void> => {
    exitCode = 1;
    const message = origin === 'unhandledRejection' ? 'unhandled rejection' : 'uncaught exception';
    await Promise.all(running.map((each) => each.fail(thrown, message)));
    process.exit(1);
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  // Only when it has happened: error trackers count the listeners of `uncaughtException` to decide whether to exit.
  process.on('uncaughtExceptionMonitor', () => {
    const isHandled = process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback();
    if (!isHandled) process.on('uncaughtException', onUncaught);
  });
}
