/**
 * Fixed seeds of the simulation, two of each scenario, and that one seed gives one log. `npm run simulate` draws
 * more.
 *
 * @module-tag slow
 */

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { SCENARIOS } from './scenarios.js';

const FILES = ['../support/run.mjs', 'main.ts'].map((file) => fileURLToPath(new URL(file, import.meta.url)));
/** Together they find each mutant that the first three find. */
const SEEDS = ['--seed', '2', '--seeds', '2'];
/** The scenario that a second process runs, too. */
const REPEATED = 'crash';

/** @param options of `npm run simulate` @returns what it prints */
function simulate(...options: string[]): Promise<string> {
  const args = ['--max-semi-space-size=64', ...FILES, ...SEEDS, ...options];
  return text(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }).stdout);
}

let outputs: Promise<readonly [all: string, repeated: string]>;
beforeAll(() => {
  outputs = Promise.all([simulate(), simulate('--scenario', REPEATED)]);
});

test('two seeds of each scenario violate no invariant', { timeout: 900_000 }, async () => {
  const runs = 2 * Object.keys(SCENARIOS).length;
  expect((await outputs)[0]).toMatch(new RegExp(`^${runs} runs, .* requests, 0 failed$`, 'm'));
});

test('one seed gives one log, in every process', { timeout: 900_000 }, async () => {
  const line = new RegExp(`^hash of ${REPEATED} \\w{64}$`, 'm');
  const [first, second] = (await outputs).map((output) => line.exec(output)?.[0]);
  expect(first).toBeDefined();
  expect(second).toBe(first);
});
