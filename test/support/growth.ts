/**
 * Compares the CPU time of a piece of work with that of four times as much: the one thing that timing may decide. CPU
 * time, because what else a machine is doing is no part of it.
 */

const TRIES = 6;
const RUNS = 3;
/** Of linear work it is 4, of quadratic work 16. */
const LINEAR = 9;
/** Times below this, in ms, say nothing about growth. */
const FLOOR_MS = 1;
/** The least of several runs is over this for work that is out of hand alone, so that nothing is tried again. */
const HOPELESS_MS = 1000;

/** Does the work of a size and tells how many ms it took. */
export type Measure = (size: number) => number | Promise<number>;

/** CPU time that this process has used, in ms. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** CPU time in ms that `work` takes. */
export function timed(work: () => unknown): number {
  const startedAt = cpuMs();
  work();
  return cpuMs() - startedAt;
}

/**
 * Fails when work of four times the size takes more than `factor` times as long, however often it is tried; unless
 * told, the factor is one that linear work keeps below.
 */
export async function assertGrowth(
  what: string,
  measure: Measure,
  size: number,
  factor: number = LINEAR,
): Promise<void> {
  let [once, more] = [0, 0];
  for (let tries = 0; tries < TRIES && more < HOPELESS_MS; tries += 1) {
    once = await least(measure, size);
    more = await least(measure, 4 * size);
    if (more < factor * once + FLOOR_MS) return;
  }
  throw new Error(`${what}: ${once.toFixed(2)} ms for ${size}, ${more.toFixed(2)} ms for ${4 * size}`);
}

async function least(measure: Measure, size: number): Promise<number> {
  let best = Infinity;
  for (let run = 0; run < RUNS; run += 1) {
    best = Math.min(best, await measure(size));
    if (best > HOPELESS_MS) break;
  }
  return best;
}
