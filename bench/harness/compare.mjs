/**
 * Lets contenders take turns under load.
 *
 * A generation starts a process for each contender, checks its answers and warms it up; in each round of the generation
 * every contender gets one slice of load, in random order. Slices are short, because a machine's speed drifts; generations
 * are many, because some processes are slow for their whole life.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { check } from './check.mjs';
import { BARE, CONTROL, Server } from './contender.mjs';
import { Traffic } from './load.mjs';
import { progress } from './report.mjs';
import { shuffled } from './statistics.mjs';

/**
 * @typedef {object} Plan
 * @property {number} warmUpRequests of each process; V8 goes on making some of them faster for 150,000
 * @property {number} generations
 * @property {number} rounds of each generation
 * @property {number} sliceMs
 */

/**
 * One slice of one contender.
 *
 * @typedef {object} Slice
 * @property {number} requests
 * @property {number} cpuMicros for each request
 * @property {number} perSecond requests
 * @property {number} busy share of a core that the server used
 * @property {number} p50 latency in µs
 * @property {number} p99 latency in µs
 */

/**
 * @typedef {object} Comparison
 * @property {Map<string, Slice[]>} slices by contender, one for each round
 * @property {Map<string, string>} excluded contenders, and why
 */

/** A slow server gets as long to warm up as the others. */
const WARM_UP = { sliceMs: 500, slices: 6 };

/** What a server has in hand when its load ends is done after this. */
const SETTLE_MS = 30;

/** How far the share of answers of 400 and above may be off; a slice may end in the middle of the requests. */
const REFUSED_SLACK = 0.02;

/**
 * @param {object} comparison
 * @param {readonly import('./contender.mjs').Contender[]} comparison.contenders besides the bare server and its control
 * @param {import('../servers/service.mjs').Spec} comparison.spec
 * @param {readonly import('../scenarios/requests.mjs').Request[]} comparison.requests
 * @param {number} comparison.connections
 * @param {Plan} comparison.plan
 * @param {import('./options.mjs').Options} options
 * @returns {Promise<Comparison>}
 */
export async function compare({ contenders, spec, requests, connections, plan }, { random, node }) {
  const all = [BARE, CONTROL, ...contenders];
  /** @type {Comparison} */
  const comparison = { slices: new Map(all.map(({ name }) => [name, []])), excluded: new Map() };
  const traffic = new Traffic(requests);
  const refusedShare = requests.filter(({ status }) => status >= 400).length / requests.length;

  /** Drives one server; a wrong number of refusals is a wrong answer. */
  const drive = async (server, ms) => {
    const before = await server.usage();
    const load = await traffic.drive(server.url, connections, ms);
    await sleep(SETTLE_MS);
    const after = await server.usage();
    if (Math.abs(load.refused / load.requests - refusedShare) > REFUSED_SLACK) throw new Error(`${load.refused} of ${load.requests} requests were refused`);
    // wrk counts answers; each connection had one more request on its way when the load ended, and it was handled.
    const cpuMicros = (after.cpuMicros - before.cpuMicros) / (load.requests + connections);
    return { requests: load.requests, cpuMicros, perSecond: load.requests / (load.micros / 1e6), busy: (after.cpuMicros - before.cpuMicros) / load.micros, p50: load.p50, p99: load.p99 };
  };

  for (let generation = 0; generation < plan.generations; generation++) {
    /** @type {Map<string, Server>} */
    const servers = new Map();
    const attempt = async ({ name }, action) => {
      try {
        await action();
      } catch (error) {
        if (name === BARE.name) throw error;
        comparison.excluded.set(name, error.message);
        comparison.slices.delete(name);
        progress(`EXCLUDED ${name}: ${error.message}\n`);
        await servers.get(name)?.stop();
      }
    };
    const remaining = () => all.filter(({ name }) => !comparison.excluded.has(name));
    try {
      for (const contender of shuffled(remaining(), random)) {
        progress(`generation ${generation + 1} of ${plan.generations}: ${contender.name}`);
        await attempt(contender, async () => {
          const server = await Server.start(contender, spec, node);
          servers.set(contender.name, server);
          await check(server.url, requests);
          for (let done = 0, slice = 0; done < plan.warmUpRequests && slice < WARM_UP.slices; slice++) done += (await drive(server, WARM_UP.sliceMs)).requests;
        });
      }
      for (let round = 0; round < plan.rounds; round++) {
        for (const contender of shuffled(remaining(), random)) {
          progress(`generation ${generation + 1} of ${plan.generations}, round ${round + 1} of ${plan.rounds}: ${contender.name}`);
          await attempt(contender, async () => {
            const slice = await drive(/** @type {Server} */ (servers.get(contender.name)), plan.sliceMs);
            comparison.slices.get(contender.name)?.push(slice);
          });
        }
      }
    } finally {
      await Promise.all([...servers.values()].map((server) => server.stop()));
    }
  }
  traffic.close();
  progress('');
  return comparison;
}
