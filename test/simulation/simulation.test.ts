/**
 * Fixed seeds of the simulation, three of each scenario, and that one seed gives one log. `npm run simulate` draws
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
const NAMES = Object.keys(SCENARIOS);
/** A scenario that both processes run. */
const SHARED = 'crash';
const HALVES = [0, 1].map((half) => NAMES.filter((name, i) => i % 2 === half || name === SHARED));

/** What a process of each half prints. */
let outputs: Promise<string>[];
beforeAll(() => {
  outputs = HALVES.map((names) => {
    const args = ['--seed', '1', '--seeds', '3', ...names.flatMap((name) => ['--scenario', name])];
    return text(spawn(process.execPath, [...FILES, ...args], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout);
  });
});

test.for([0, 1])('three seeds of each scenario, half %s', { timeout: 900_000 }, async (half) => {
  const runs = 3 * (HALVES[half]?.length ?? 0);
  expect(await outputs[half]).toMatch(new RegExp(`^${runs} runs, .* requests, 0 failed$`, 'm'));
});

test('one seed gives one log, in every process', { timeout: 900_000 }, async () => {
  const line = new RegExp(`^hash of ${SHARED} \\w{64}$`, 'm');
  const hashes = (await Promise.all(outputs)).map((output) => line.exec(output)?.[0]);
  expect(hashes[0]).toBeDefined();
  expect(hashes[1]).toBe(hashes[0]);
});
