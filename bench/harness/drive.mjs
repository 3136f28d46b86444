/**
 * Puts servers under load and takes their CPU time, until it is level and from then on.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { Traffic } from './load.mjs';

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
 * @property {number} peakBytes the most memory that the server has held
 */

/** What a server has in hand when its load ends is done after this. */
const SETTLE_MS = 30;

/** How far the share of answers of 400 and above may be off; a slice may end in the middle of the requests. */
const REFUSED_SLACK = 0.02;

/** How far below the two slices before the last two may be; see {@link isLevel}. */
const LEVEL = 0.03;

/** The same requests for every server. */
export class Driver {
  #traffic;
  #refusedShare;

  /** @param {readonly import('../scenarios/requests.mjs').Request[]} requests */
  constructor(requests) {
    this.#traffic = new Traffic(requests);
    this.#refusedShare = requests.filter(({ status }) => status >= 400).length / requests.length;
  }

  /**
   * @param {import('./contender.mjs').Server} server
   * @param {number} connections
   * @param {number} ms
   * @returns {Promise<Drive>}
   * @throws {Error} for a wrong number of refusals, which is a wrong answer
   */
  async drive(server, connections, ms) {
    const before = await server.usage();
    const load = await this.#traffic.drive(server.url, connections, ms);
    await sleep(SETTLE_MS);
    const after = await server.usage();
    if (Math.abs(load.refused / load.requests - this.#refusedShare) > REFUSED_SLACK)
      throw new Error(`${load.refused} of ${load.requests} requests were refused`);
    const micros = after.cpuMicros - before.cpuMicros;
    // wrk counts answers; each connection had one more request on its way when the load ended, and it was handled.
    return {
      requests: load.requests,
      cpuMicros: micros / (load.requests + connections),
      perSecond: load.requests / (load.micros / 1e6),
      busy: micros / load.micros,
      p50: load.p50,
      p99: load.p99,
      peakBytes: after.peakBytes,
    };
  }

  close() {
    this.#traffic.close();
  }
}

/**
 * Whether a server is warm: the least CPU time for each request of its last two slices is no more than 3 % below the
 * least of the two before.
 *
 * @param {readonly Drive[]} slices of its warm-up
 */
export function isLevel(slices) {
  const costs = slices.map(({ cpuMicros }) => cpuMicros);
  return costs.length >= 4 && Math.min(...costs.slice(-2)) > Math.min(...costs.slice(-4, -2)) * (1 - LEVEL);
}
