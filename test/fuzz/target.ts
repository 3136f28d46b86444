/** What a target of the fuzzer is, and what its targets share. */

import { cpuMs } from '../support/growth.js';
import { createRandom, type Random } from '../support/random.js';

/**
 * One part of the framework under random input. An iteration shares nothing with others, so that it can be repeated
 * alone.
 */
export interface Target {
  readonly name: string;
  /** What a run of some length has to meet; a run that doesn't has tested nothing. */
  readonly outcomes: readonly string[];
  /** @throws when what is tested did wrong */
  run(random: Random, met: (outcome: string) => void): void | Promise<void>;
}

/** The random choices of one iteration. */
export function randomOf(seed: number, target: string, iteration: number): Random {
  let hash = 0x811c9dc5;
  for (const char of `${seed} ${target} ${iteration}`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  return createRandom(hash ^ (hash >>> 15));
}

/** @throws unless both are equal as JSON */
export function assertSame(actual: unknown, expected: unknown, what: string, details: unknown = ''): void {
  const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== e) throw new Error(`${what} is ${a}, not ${e}${details === '' ? '' : `; ${JSON.stringify(details)}`}`);
}

/** @throws unless the condition holds */
export function assert(condition: boolean, what: string, details: unknown = ''): asserts condition {
  if (!condition) throw new Error(details === '' ? what : `${what}: ${JSON.stringify(details)}`);
}

/** Longest CPU time, in ms, that a look-up may take before its growth is measured. */
const SUSPICIOUS_MS = 20;

/**
 * Does some work of size `n`; where that takes long, twice the work may take three times as long at most. CPU time and
 * the fastest of several tries count, so that a busy machine can't fail it.
 *
 * @throws when the work grows faster than its size
 */
export async function assertLinear(n: number, work: (n: number) => unknown, what: string): Promise<void> {
  if ((await timeOf(() => work(2 * n))) < SUSPICIOUS_MS) return;
  let [once, twice] = [Infinity, Infinity];
  for (let tries = 0; tries < 12; tries += 1) {
    once = Math.min(once, await timeOf(() => work(n)));
    twice = Math.min(twice, await timeOf(() => work(2 * n)));
    if (twice < SUSPICIOUS_MS || twice < 3 * once) return;
  }
  throw new Error(`${what}: ${once.toFixed(1)} ms for ${n}, ${twice.toFixed(1)} ms for ${2 * n}`);
}

async function timeOf(work: () => unknown): Promise<number> {
  const startedMs = cpuMs();
  await work();
  return cpuMs() - startedMs;
}
