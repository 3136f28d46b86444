/**
 * Puts each contender under load together with the bare server, on the same core.
 *
 * A neighbour on the machine slows down both, so their ratio stays (Bulej et al., "Duet Benchmarking: Improving
 * Measurement Accuracy in the Cloud", ICPE 2020). Both start, warm up and are measured together and without a pause: a
 * process that was idle for some seconds runs slower for the next one. There are several duets of each contender, in
 * random order, because some processes are slow for their whole life.
 */

import { check } from './check.mjs';
import { BARE, CONTROL, Server } from './contender.mjs';
import { Driver, isLevel } from './drive.mjs';
import { progress } from './report.mjs';
import { shuffled } from './statistics.mjs';

/**
 * @typedef {object} Plan
 * @property {number} duets of each contender
 * @property {number} warmUpSlices most of them in a duet
 * @property {number} slices measured in each duet
 */

/**
 * What a contender and the bare server did at the same time.
 *
 * @typedef {{ own: import('./drive.mjs').Drive, bare: import('./drive.mjs').Drive }} Slice
 */

/**
 * @typedef {object} Duets
 * @property {Map<string, Slice[]>} slices by contender
 * @property {Map<string, string>} excluded contenders, and why
 * @property {number[]} warmUps requests that each process had before its CPU time was level
 * @property {number} restless processes whose CPU time was not level when their warm-up ended
 */

const WARM_UP_MS = 1000;
const SLICE_MS = 500;

/** A slice of a warm contender has about so many requests at least. */
const SLICE_REQUESTS = 1000;

/**
 * @param {object} comparison
 * @param {readonly import('./contender.mjs').Contender[]} comparison.contenders besides the control
 * @param {import('../servers/service.mjs').Spec} comparison.spec
 * @param {readonly string[] | undefined} comparison.flags of Node.js
 * @param {readonly import('../scenarios/requests.mjs').Request[]} comparison.requests
 * @param {number} comparison.connections to each of both
 * @param {Plan} comparison.plan
 * @param {import('./options.mjs').Options} options
 * @returns {Promise<Duets>}
 */
export async function playDuets({ contenders, spec, flags, requests, connections, plan }, { random, node }) {
  const all = [CONTROL, ...contenders];
  /** @type {Duets} */
  const duets = { slices: new Map(all.map(({ name }) => [name, []])), excluded: new Map(), warmUps: [], restless: 0 };
  const driver = new Driver(requests);
  let drives = 0;
  // By turns one or the other begins, some milliseconds before its partner.
  const driveAll = async ([bare, contender], ms) => {
    const drive = (server) => driver.drive(server, connections, ms);
    drives += 1;
    if (drives % 2 === 0) return allEnded([drive(bare), drive(contender)]);
    return (await allEnded([drive(contender), drive(bare)])).reverse();
  };

  for (let duet = 1; duet <= plan.duets; duet++) {
    for (const contender of shuffled(all.filter(({ name }) => !duets.excluded.has(name)), random)) {
      const { name } = contender;
      progress(`duet ${duet} of ${plan.duets}: ${name}`);
      const servers = [await Server.start(BARE, spec, node, flags)];
      try {
        servers.push(await Server.start(contender, spec, node, flags));
        for (const { url } of servers) await check(url, requests);
        const warmUps = servers.map(() => []);
        while (warmUps[0].length < plan.warmUpSlices && !warmUps.every(isLevel)) {
          const both = await driveAll(servers, WARM_UP_MS);
          both.forEach((drive, index) => warmUps[index].push(drive));
        }
        duets.warmUps.push(...warmUps.map((drives) => drives.reduce((sum, { requests }) => sum + requests, 0)));
        duets.restless += warmUps.filter((drives) => !isLevel(drives)).length;
        const ms = Math.max(SLICE_MS, (SLICE_REQUESTS / warmUps[1].at(-1).perSecond) * 1000);
        for (let slice = 0; slice < plan.slices; slice++) {
          const [bare, own] = await driveAll(servers, ms);
          duets.slices.get(name)?.push({ own, bare });
        }
      } catch (error) {
        duets.excluded.set(name, error.message);
        duets.slices.delete(name);
        progress(`EXCLUDED ${name}: ${error.message}\n`);
      } finally {
        await Promise.all(servers.map((server) => server.stop()));
      }
    }
  }
  driver.close();
  progress('');
  return duets;
}

/** As `Promise.all`, but where one fails it waits for the others, so that no load is left behind. */
async function allEnded(promises) {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}
