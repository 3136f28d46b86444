/**
 * Fixed seeds of the simulation, five of each scenario, and that one seed gives one log. `npm run simulate` draws more.
 *
 * @module-tag slow
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { SCENARIOS } from './scenarios.js';

const run = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

async function simulate(...args: readonly string[]): Promise<string> {
  const all = [run('../support/run.mjs'), run('main.ts'), '--seed', '1', ...args];
  const failed = (error: unknown): { stdout: string } => error as { stdout: string };
  return (await promisify(execFile)(process.execPath, all, { encoding: 'utf8' }).catch(failed)).stdout;
}

const names = Object.keys(SCENARIOS);
const halves = [names.filter((_, i) => i % 2 === 0), names.filter((_, i) => i % 2 === 1)];

test.concurrent.for(halves)(
  'five seeds of each: %s, %s, %s, %s, %s',
  { timeout: 240_000 },
  async (scenarios, { expect: check }) => {
    const output = await simulate('--seeds', '5', ...scenarios.flatMap((name) => ['--scenario', name]));
    check(output).toContain(`${5 * scenarios.length} runs`);
    check(output, output).toMatch(/, 0 failed\n/);
  },
);

test('one seed gives one log, in every process', { timeout: 120_000 }, async () => {
  const hashes = await Promise.all(
    [0, 1].map(async () => /^hash (\w+)$/m.exec(await simulate('--scenario', 'crash'))?.[1]),
  );
  expect(hashes[0]).toMatch(/^\w{64}$/);
  expect(hashes[1]).toBe(hashes[0]);
});
