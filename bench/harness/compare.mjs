/**
 * Lets contenders take turns under load, each with a core to itself, as latency needs it.
 *
 * A generation starts a process for each contender, checks its answers and warms it up; in each round of the generation
 * every process gets one slice of load, in random order. The bare server has three processes, since what is off in it
 * is off in every ratio. There are several generations, because some processes are slow for their whole life.
 */

import { check } from './check.mjs';
import { BARE, CONTROL, Server } from './contender.mjs';
import { Driver, isLevel } from './drive.mjs';
import { progress } from './report.mjs';
import { shuffled } from './statistics.mjs';

/**
 * @typedef {object} Plan
 * @property {number} warmUpSlices most of each process
 * @property {number} generations
 * @property {number} rounds of each generation
 * @property {number} sliceMs longer where a contender needs that for a thousand requests
 */

/**
 * One slice of one contender, and its round, counted through all generations.
 *
 * @typedef {import('./drive.mjs').Drive & { round: number }} Slice
 */

/**
 * @typedef {object} Comparison
 * @property {Map<string, Slice[]>} slices by contender
 * @property {Map<string, string>} excluded contenders, and why
 */

/**
 * A process of a contender, with the length of its slices.
 *
 * @typedef {{ contender: import('./contender.mjs').Contender, server: Server | undefined, sliceMs: number }} Entrant
 */

/** A single connection would not warm up any process. */
const WARM_UP = { connections: 64, sliceMs: 500 };

/** A slice has at least so many requests. */
const SLICE_REQUESTS = 1000;

const BARE_PROCESSES = 3;

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
  const driver = new Driver(requests);

  for (let generation = 0; generation < plan.generations; generation++) {
    /** @type {Entrant[]} */
    const entrants = all.flatMap((contender) =>
      Array.from({ length: contender === BARE ? BARE_PROCESSES : 1 }, () => ({
        contender,
        server: undefined,
        sliceMs: plan.sliceMs,
      })),
    );
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
    const remaining = () =>
      shuffled(
        entrants.filter(({ contender: { name } }) => !comparison.excluded.has(name)),
        random,
      );
    try {
      for (const entrant of remaining()) {
        progress(`generation ${generation + 1} of ${plan.generations}: ${entrant.contender.name}`);
        await attempt(entrant, async () => {
          const server = (entrant.server = await Server.start(entrant.contender, spec, node));
          await check(server.url, requests);
          const warmUp = [];
          while (warmUp.length < plan.warmUpSlices && !isLevel(warmUp))
            warmUp.push(await driver.drive(server, WARM_UP.connections, WARM_UP.sliceMs));
          entrant.sliceMs = Math.max(plan.sliceMs, (SLICE_REQUESTS / warmUp[warmUp.length - 1].perSecond) * 1000);
        });
      }
      for (let round = 0; round < plan.rounds; round++) {
        for (const entrant of remaining()) {
          const { contender, server, sliceMs } = entrant;
          progress(
            `generation ${generation + 1} of ${plan.generations}, round ${round + 1} of ${plan.rounds}: ${contender.name}`,
          );
          await attempt(entrant, async () => {
            const slice = await driver.drive(/** @type {Server} */ (server), connections, sliceMs);
            comparison.slices.get(contender.name)?.push({ round: generation * plan.rounds + round, ...slice });
          });
        }
      }
    } finally {
      await Promise.all(entrants.map(({ server }) => server?.stop()));
    }
  }
  driver.close();
  progress('');
  return comparison;
}

/**
 * What each slice is to each of the bare server's in its round. A ratio to the middle one of these would be more than 1
 * for the bare server itself: slices are slowed down, never sped up.
 *
 * @param {readonly Slice[]} own
 * @param {Comparison} comparison
 * @param {(slice: Slice) => number} figure
 * @returns {number[]}
 */
export function ratios(own, { slices }, figure) {
  const bare = slices.get(BARE.name) ?? [];
  return own.flatMap((slice) =>
    bare.filter(({ round }) => round === slice.round).map((other) => figure(slice) / figure(other)),
  );
}
