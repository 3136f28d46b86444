/**
 * What a call of another service costs its caller: `service()`, the platform's `fetch`, and `node:http` by hand.
 */

import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { BARE, select, Server } from '../harness/contender.mjs';
import { onLoadCore, onMeasuredCore } from '../harness/cores.mjs';
import { start, stop } from '../harness/processes.mjs';
import { formatSpread, printTable, progress } from '../harness/report.mjs';
import { median, quartiles, shuffled } from '../harness/statistics.mjs';

const PROCESS = fileURLToPath(new URL('calls-process.mjs', import.meta.url));
const WAYS = ['service', 'fetch', 'node:http'];
/** The one that the others are related to. */
const REFERENCE = 'fetch';

const PLANS = { quick: { generations: 1, rounds: 4 }, full: { generations: 3, rounds: 15 } };
const WARM_UP_MS = 2000;
const SLICE_MS = 200;

/** @param {import('../harness/options.mjs').Options} options */
export async function calls(options) {
  const { random, quick, node } = options;
  const plan = quick ? PLANS.quick : PLANS.full;
  const callers = [
    ...WAYS.map((way) => ({ name: way, way, env: {} })),
    ...select([], options).map(({ name, env }) => ({ name, way: 'service', env })),
  ];
  /** @type {Map<string, { cpuMicros: number[], ratios: number[] }>} */
  const results = new Map(callers.map(({ name }) => [name, { cpuMicros: [], ratios: [] }]));
  for (let generation = 0; generation < plan.generations; generation++) {
    const callee = await Server.start(BARE, { resources: 0 }, node, [], onLoadCore);
    const children = new Map();
    try {
      for (const { name, way, env } of callers) {
        const child = start(onMeasuredCore([node, PROCESS, way, callee.url]), {
          stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
          env: { ...process.env, ...env },
        });
        await once(child, 'message');
        children.set(name, child);
        await slice(child, WARM_UP_MS);
      }
      for (let round = 0; round < plan.rounds; round++) {
        progress(`calls, generation ${generation + 1} of ${plan.generations}, round ${round + 1} of ${plan.rounds}`);
        const costs = new Map();
        for (const [name, child] of shuffled([...children], random)) costs.set(name, await slice(child, SLICE_MS));
        for (const [name, cost] of costs) {
          results.get(name)?.cpuMicros.push(cost);
          results.get(name)?.ratios.push(cost / costs.get(REFERENCE));
        }
      }
    } finally {
      await Promise.all([callee.stop(), ...[...children.values()].map(stop)]);
    }
  }
  progress('');
  const rows = [...results].sort(([, a], [, b]) => median(a.ratios) - median(b.ratios));
  printTable(
    'calls of another service, 32 at a time',
    ['', `CPU x ${REFERENCE}`, 'µs CPU'],
    rows.map(([name, { cpuMicros, ratios }]) => [name, formatSpread(ratios), formatSpread(cpuMicros, 1)]),
  );
  return rows.map(([name, { cpuMicros, ratios }]) => ({
    name,
    cpuMicros: quartiles(cpuMicros),
    cpuRatio: quartiles(ratios),
  }));
}

/** @returns {Promise<number>} CPU time of the caller for each call, in µs */
async function slice(child, ms) {
  child.send(ms);
  const over = new AbortController();
  const ended = once(child, 'exit', over).then(() => {
    throw new Error('a caller ended');
  });
  const [{ cpuMicros }] = await Promise.race([once(child, 'message', over), ended]);
  ended.catch(() => undefined);
  over.abort();
  return cpuMicros;
}
