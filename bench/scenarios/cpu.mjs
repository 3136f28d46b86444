/**
 * CPU time for each request, with a client that never sleeps: of warm servers, and of the first 10,000 requests of a
 * process.
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check } from '../harness/check.mjs';
import { BARE, CONTROL, FRAMEWORKS, select, Server } from '../harness/contender.mjs';
import { onLoadCore } from '../harness/cores.mjs';
import { output, start } from '../harness/processes.mjs';
import { formatSpread, printTable, progress } from '../harness/report.mjs';
import { median, quartiles, shuffled } from '../harness/statistics.mjs';
import { HELLO } from './requests.mjs';

const CONTENDERS = ['postern', 'restana', 'fastify', 'polka', 'hono', 'koa', 'express'];
const SPEC = { resources: 0 };
const ROUNDS = { warm: { quick: 3, written: 3, full: 7 }, cold: { quick: 5, written: 7, full: 15 } };

/** @typedef {{ rounds: number, connections: number, warmUp: number, requests: number }} Plan */

/** @param {import('../harness/options.mjs').Options} options */
export function warm(options) {
  const plan = { rounds: ROUNDS.warm[options.thoroughness], connections: 64, warmUp: 60_000, requests: 60_000 };
  return measure('warm: CPU for each request, 64 connections', plan, options);
}

/** @param {import('../harness/options.mjs').Options} options */
export function cold(options) {
  const plan = { rounds: ROUNDS.cold[options.thoroughness], connections: 8, warmUp: 0, requests: 10_000 };
  return measure('cold: CPU for each of the first 10,000 requests after a start, 8 connections', plan, options);
}

/**
 * @param {string} title
 * @param {Plan} plan
 * @param {import('../harness/options.mjs').Options} options
 */
async function measure(title, { rounds, connections, warmUp, requests }, options) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-'));
  const client = join(folder, 'spin');
  try {
    execFileSync('cc', ['-O2', '-o', client, fileURLToPath(new URL('../harness/spin.c', import.meta.url))]);
    const chosen = FRAMEWORKS.filter(({ name }) => CONTENDERS.includes(name));
    const contenders = [BARE, CONTROL, ...select(chosen, { ...options, quick: false })];
    /** @type {Map<string, number[]>} */
    const micros = new Map(contenders.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const contender of shuffled(contenders, options.random)) {
        progress(`${title.split(':')[0]}, round ${round + 1} of ${rounds}: ${contender.name}`);
        const server = await Server.start(contender, SPEC, options.node);
        try {
          if (warmUp > 0) await check(server.url, [HELLO]);
          await spin(client, server.url, connections, warmUp);
          const { cpuMicros } = await server.usage();
          await spin(client, server.url, connections, requests);
          micros.get(contender.name)?.push(((await server.usage()).cpuMicros - cpuMicros) / requests);
        } finally {
          await server.stop();
        }
      }
    }
    progress('');
    const bare = /** @type {number[]} */ (micros.get(BARE.name));
    const results = [...micros].map(([name, own]) => ({ name, own, ratios: own.map((each, i) => each / bare[i]) }));
    results.sort((a, b) => median(a.ratios) - median(b.ratios));
    printTable(
      title,
      ['', 'CPU x bare', 'µs CPU'],
      results.map(({ name, own, ratios }) => [name, formatSpread(ratios), formatSpread(own, 1)]),
    );
    return results.map(({ name, own, ratios }) => ({ name, cpuRatios: quartiles(ratios), cpuMicros: quartiles(own) }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sends requests, one after the other on each connection. @throws {Error} for an answer that is not a 200 */
async function spin(client, url, connections, requests) {
  if (requests === 0) return;
  const args = [new URL(url).port, connections, requests, HELLO.path].map(String);
  await output(start(onLoadCore([client, ...args]), { stdio: ['ignore', 'pipe', 'inherit'] }));
}
