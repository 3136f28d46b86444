/**
 * Fixed seeds of the simulation, three of each scenario, and that one seed gives one log. `npm run simulate` draws
 * more.
 *
 * @module-tag slow
 */

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SCENARIOS } from './scenarios.js';

const FILES = ['../support/run.mjs', 'main.ts'].map((file) => fileURLToPath(new URL(file, import.meta.url)));
const NAMES = Object.keys(SCENARIOS);
const HALVES = [0, 1].map((half) => NAMES.filter((_, i) => i % 2 === half));

const simulate = (...args: readonly string[]): Promise<string> =>
  text(spawn(process.execPath, [...FILES, '--seed', '1', ...args], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout);

test.concurrent.for(HALVES)('three seeds of each: %s, %s, %s, %s, %s', { timeout: 900_000 }, async (names, context) => {
  const output = await simulate('--seeds', '3', ...names.flatMap((name) => ['--scenario', name]));
  context.expect(output).toMatch(/^15 runs, .* requests, 0 failed$/m);
});

test('one seed gives one log, in every process', { timeout: 900_000 }, async () => {
  const outputs = await Promise.all([0, 1].map(() => simulate('--scenario', 'crash')));
  expect(outputs[0]).toMatch(/^hash \w{64}$/m);
  expect(outputs[1]).toBe(outputs[0]);
});
