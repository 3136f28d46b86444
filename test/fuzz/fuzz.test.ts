/**
 * A fixed part of the random input: the same iterations of the same seed each time. `npm run fuzz` draws fresh seeds.
 *
 * @module-tag slow
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SEED = 20_261_123;
/** Iterations of each target: some seconds each. */
const LAST = { router: 3000, headers: 15, body: 50, metrics: 1000, errors: 60, http: 80, connections: 25 };
const run = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

const targets = Object.entries(LAST).map(([target, last]) => ({ target, last }));

test.for(targets)(
  'the first $last random inputs for $target find nothing',
  { timeout: 900_000 },
  async ({ target, last }) => {
    const args = ['--seed', String(SEED), '--target', target, '--iterations', `0-${last}`];
    const [failure, output] = await new Promise<[Error | null, string]>((resolve) => {
      const done = (error: Error | null, stdout: string, stderr: string): void => resolve([error, stdout + stderr]);
      execFile(process.execPath, [run('../support/run.mjs'), run('main.ts'), ...args], done);
    });
    expect(failure, output).toBeNull();
  },
);
