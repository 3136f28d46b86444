/**
 * Lets contenders take turns under load, alone or together with the bare server.
 *
 * A generation starts a process for each contender, checks its answers and warms it up; in each round of the generation
 * every process gets one slice of load, in random order. There are several generations, because some processes are slow for
 * their whole life, and the bare server has three processes, since what is off in it is off in every ratio.
 *
 * Together, a contender and the bare server share a core while each has a load of its own: a neighbour on the machine slows
 * down both, and their ratio stays (Bulej et al., "Duet Benchmarking", ICPE 2020). Alone, each has the core to itself, as
 * latency needs it, and a neighbour's moment is that of one contender.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { check } from './check.mjs';
import { BARE, CONTROL, Server } from './contender.mjs';
import { Traffic } from './load.mjs';
import { progress } from './report.mjs';
import { shuffled } from './statistics.mjs';

/**
 * @typedef {object} Plan
 * @property {number} warmUpSlices most of each process
 * @property {number} generations
 * @property {number} rounds of each generation
 * @property {number} sliceMs longer where a contender needs that for a thousand requests
 * @property {boolean} isPaired whether the bare server has its load at the same time
 */

/**
 * What a server did under load.
 *
 * @typedef {object} Drive
 * @property {number} requests
 * @property {number} cpuMicros for each request
 * @property {number} perSecond requests
 * @property {number} busy share of a core that the server used
 * @property {number} p50 latency in µs
 * @property {number} p99 latency in µs
 */

/**
 * One slice of one contender: its round, counted through all generations, and what the bare server did beside it.
 *
 * @typedef {Drive & { round: number, beside: Drive | undefined }} Slice
 */

/**
 * @typedef {object} Comparison
 * @property {Map<string, Slice[]>} slices by contender
 * @property {Map<string, string>} excluded contenders, and why
 * @property {number[]} warmUps requests that each process had before its CPU time was level
 * @property {number} restless processes whose CPU time was not level when their warm-up ended
 */

/**
 * A process of a contender, with the length of its slices.
 *
 * @typedef {{ contender: import('./contender.mjs').Contender, server: Server | undefined, sliceMs: number }} Entrant
 */

/**
 * A process is warm when its CPU time for each request is level: the least of the last two slices is no more than so much
 * below the least of the two before. A single connection would not warm up any.
 */
const WARM_UP = { connections: 64, sliceMs: 500, level: 0.03 };

/** A slice has at least so many requests. */
const SLICE_REQUESTS = 1000;

const BARE_PROCESSES = 3;

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
  const comparison = { slices: new Map(all.map(({ name }) => [name, []])), excluded: new Map(), warmUps: [], restless: 0 };
  const traffic = new Traffic(requests);
  const refusedShare = requests.filter(({ status }) => status >= 400).length / requests.length;

  /**
   * Drives one server; a wrong number of refusals is a wrong answer.
   *
   * @returns {Promise<Drive>}
   */
  const drive = async (server, count, ms) => {
    const before = await server.usage();
    const load = await traffic.drive(server.url, count, ms);
    await sleep(SETTLE_MS);
    const after = await server.usage();
    if (Math.abs(load.refused / load.requests - refusedShare) > REFUSED_SLACK) throw new Error(`${load.refused} of ${load.requests} requests were refused`);
    // wrk counts answers; each connection had one more request on its way when the load ended, and it was handled.
    const cpuMicros = (after.cpuMicros - before.cpuMicros) / (load.requests + count);
    return { requests: load.requests, cpuMicros, perSecond: load.requests / (load.micros / 1e6), busy: (after.cpuMicros - before.cpuMicros) / load.micros, p50: load.p50, p99: load.p99 };
  };

  for (let generation = 0; generation < plan.generations; generation++) {
    /** @type {Entrant[]} */
    const entrants = all.flatMap((contender) => Array.from({ length: contender === BARE ? BARE_PROCESSES : 1 }, () => ({ contender, server: undefined, sliceMs: plan.sliceMs })));
    const attempt = async (entrant, action) => {
      const { name } = entrant.contender;
      try {
        await action();
      } catch (error) {
        if (name === BARE.name) throw error;
        comparison.excluded.set(name, error.message);
        comparison.slices.delete(name);
        progress(`EXCLUDED ${name}: ${error.message}\n`);
        await entrant.server?.stop();
      }
    };
    const remaining = () => shuffled(entrants.filter(({ contender: { name } }) => !comparison.excluded.has(name)), random);
    try {
      for (const entrant of remaining()) {
        progress(`generation ${generation + 1} of ${plan.generations}: ${entrant.contender.name}`);
        await attempt(entrant, async () => {
          const server = (entrant.server = await Server.start(entrant.contender, spec, node));
          await check(server.url, requests);
          const costs = [];
          let warmUp = 0;
          while (costs.length < plan.warmUpSlices && !isLevel(costs)) {
            const { requests, perSecond, cpuMicros } = await drive(server, WARM_UP.connections, WARM_UP.sliceMs);
            costs.push(cpuMicros);
            warmUp += requests;
            entrant.sliceMs = Math.max(plan.sliceMs, (SLICE_REQUESTS / perSecond) * 1000);
          }
          comparison.warmUps.push(warmUp);
          if (!isLevel(costs)) comparison.restless += 1;
        });
      }
      const bareServers = entrants.flatMap(({ contender, server }) => (contender === BARE && server !== undefined ? [server] : []));
      for (let i = 0; i < plan.rounds; i++) {
        const round = generation * plan.rounds + i;
        const bareServer = bareServers[round % bareServers.length];
        for (const entrant of remaining()) {
          const { contender, server, sliceMs } = entrant;
          if (plan.isPaired && contender === BARE) continue;
          progress(`generation ${generation + 1} of ${plan.generations}, round ${i + 1} of ${plan.rounds}: ${contender.name}`);
          await attempt(entrant, async () => {
            const servers = plan.isPaired ? [server, bareServer] : [server];
            const [own, beside] = await allEnded(servers.map((one) => drive(one, connections, sliceMs)));
            comparison.slices.get(contender.name)?.push({ round, ...own, beside });
            if (beside !== undefined) comparison.slices.get(BARE.name)?.push({ round, ...beside, beside });
          });
        }
      }
    } finally {
      await Promise.all(entrants.map(({ server }) => server?.stop()));
    }
  }
  traffic.close();
  progress('');
  return comparison;
}

/** As `Promise.all`, but where one fails it waits for the others, so that no load is left behind. */
async function allEnded(promises) {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

/** @param {readonly number[]} costs of the slices of a warm-up */
function isLevel(costs) {
  return costs.length >= 4 && Math.min(...costs.slice(-2)) > Math.min(...costs.slice(-4, -2)) * (1 - WARM_UP.level);
}

/**
 * What each slice is to that of the bare server beside it, or to each of the bare server's in its round. A ratio to the
 * middle one of these would be more than 1 for the bare server itself: slices are slowed down, never sped up.
 *
 * @param {readonly Slice[]} own
 * @param {Comparison} comparison
 * @param {(drive: Drive) => number} figure
 * @returns {number[]}
 */
export function ratios(own, { slices }, figure) {
  const bare = slices.get(BARE.name) ?? [];
  return own.flatMap((slice) => {
    const others = slice.beside === undefined ? bare.filter(({ round }) => round === slice.round) : [slice.beside];
    return others.map((other) => figure(slice) / figure(other));
  });
}
