/**
 * Runs targets in a thread of its own, so that one that hangs can be stopped and one that throws out of nowhere is
 * told.
 */

import { on } from 'node:events';
import { inspect } from 'node:util';
import { parentPort } from 'node:worker_threads';
import { body } from './body.js';
import { connections } from './connections.js';
import { errors } from './errors.js';
import { headers } from './headers.js';
import { http } from './http.js';
import { metrics } from './metrics.js';
import { router } from './router.js';
import { randomOf, type Target } from './target.js';

/** What the thread is sent. */
export interface Job {
  readonly seed: number;
  readonly target: string;
  /** The first iteration. */
  readonly from: number;
  /** The last one; null to go on until the time is up. */
  readonly to: number | null;
  readonly seconds: number;
  /** Where the iteration under way is written, for whoever watches. */
  readonly iteration: Int32Array;
}

/** What the thread reports of a job. */
export interface Report {
  readonly iterations: number;
  /** How often each outcome was met. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly failure: { readonly iteration: number; readonly error: string } | null;
}

export const TARGETS: readonly Target[] = [router, headers, body, metrics, errors, http, connections];

/** Iterations after which every outcome of a target must have been met. */
const ENOUGH = 300;

async function run({ seed, target: name, from, to, seconds, iteration: current }: Job): Promise<Report> {
  const target = TARGETS.find((other) => other.name === name);
  if (target === undefined) throw new Error(`no target ${name}`);
  const outcomes: Record<string, number> = {};
  const met = (outcome: string): void => {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  };
  const end = performance.now() + seconds * 1000;
  let iteration = from;
  for (; to === null ? performance.now() < end : iteration <= to; iteration += 1) {
    Atomics.store(current, 0, iteration);
    try {
      await target.run(randomOf(seed, name, iteration), met);
    } catch (error) {
      return { iterations: iteration - from, outcomes, failure: { iteration, error: shorten(inspect(error)) } };
    }
  }
  const missing = target.outcomes.filter((outcome) => outcomes[outcome] === undefined);
  const isVain = iteration - from >= ENOUGH && missing.length > 0;
  return {
    iterations: iteration - from,
    outcomes,
    failure: isVain ? { iteration, error: `never met: ${missing.join(', ')}` } : null,
  };
}

/** Long runs of the same few characters, told by their number. */
function shorten(text: string): string {
  return text.replace(/(.{1,8}?)\1{30,}/gs, (run, unit: string) => `${unit}«${run.length / unit.length} times»`)
    .slice(0, 20_000);
}

if (parentPort !== null) {
  // Modules can be loaded only as long as this one is.
  for await (const [job] of on(parentPort, 'message')) parentPort.postMessage(await run(job as Job));
}
