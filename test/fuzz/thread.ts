/** A thread that runs targets of the fuzzer, one after the other. */

import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { Job, Report } from './worker.js';

/** How long one iteration may take. */
const HANG_MS = 60_000;

/** Starts when it is first needed, and again after a failure. */
export class FuzzThread {
  #worker: Worker | undefined;

  /** Runs a target; what the thread dies of, and an iteration without an end, are failures. */
  async run(job: Omit<Job, 'iteration'>): Promise<Report> {
    const iteration = new Int32Array(new SharedArrayBuffer(4));
    const worker = (this.#worker ??= startWorker());
    let watch: NodeJS.Timeout | undefined;
    const report = await new Promise<Report>((resolve) => {
      const fail = (error: string): void => {
        const current = Atomics.load(iteration, 0);
        resolve({ iterations: current - job.from, outcomes: {}, failure: { iteration: current, error } });
      };
      let [seen, since] = [-1, performance.now()];
      watch = setInterval(() => {
        const current = Atomics.load(iteration, 0);
        if (current !== seen) [seen, since] = [current, performance.now()];
        else if (performance.now() - since > HANG_MS) fail(`no end after ${HANG_MS / 1000} s`);
      }, 1000);
      worker.removeAllListeners();
      worker.once('message', resolve);
      worker.once('error', (error) =>
        fail(`thrown out of nowhere: ${error instanceof Error ? error.stack : String(error)}`),
      );
      worker.once('exit', () => fail('the thread ended early'));
      worker.postMessage({ ...job, iteration } satisfies Job);
    });
    clearInterval(watch);
    if (report.failure !== null) this.stop();
    return report;
  }

  stop(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
  }
}

function startWorker(): Worker {
  const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  return new Worker(fileOf('../support/run.mjs'), { argv: [fileOf('worker.ts')] });
}
