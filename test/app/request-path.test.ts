/**
 * How many functions a warm request runs through. Each has to be compiled, so a service that gets a request a second
 * pays for them during its first hours.
 *
 * @module-tag package
 */

import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { ROOT } from '../support/markdown.js';

const SCRIPT = `
import { Session } from 'node:inspector/promises';
import { Postern } from 'postern';
const app = new Postern('users', { logger: false }).get('/users/:id', (ctx) => ({ id: ctx.params.id }));
const { url } = await app.listen({ host: '127.0.0.1', port: 0 });
const ask = async () => (await fetch(url + '/users/7')).text();
for (let i = 0; i < 100; i += 1) await ask();
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true });
const rounds = [];
for (let i = 0; i < 8; i += 1) {
  await ask();
  await session.post('Profiler.takePreciseCoverage');
  await ask();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const counts = result.filter(({ url }) => url.includes('/dist/'))
    .flatMap(({ functions }) => functions.map(({ ranges: [{ count }] }) => count)).filter((count) => count > 0);
  rounds.push({ functions: counts.length, calls: counts.reduce((sum, count) => sum + count, 0) });
}
console.log(JSON.stringify(rounds));
await app.close();
`;

test('a request for JSON, with monitoring on, runs through at most 60 functions in 75 calls', () => {
  const args = ['--input-type=module', '--eval', SCRIPT];
  const output = execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  const rounds = JSON.parse(output) as { readonly functions: number; readonly calls: number }[];
  // One request in four, so every second round, teaches the limiter. A timer may go off in any round.
  const least = (key: 'functions' | 'calls', kind: number): number =>
    Math.min(...rounds.filter((_, i) => i % 2 === kind).map((round) => round[key]));
  const functions = Math.max(least('functions', 0), least('functions', 1));
  expect(functions).toBeGreaterThan(20);
  expect(functions).toBeLessThanOrEqual(60);
  expect(Math.max(least('calls', 0), least('calls', 1))).toBeLessThanOrEqual(75);
});
