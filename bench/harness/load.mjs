/**
 * Drives a server for a moment with wrk, or autocannon where that is missing.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { hasWrk, onLoadCore } from './cores.mjs';
import { output, start } from './processes.mjs';

/**
 * What came of it.
 *
 * @typedef {object} Load
 * @property {number} requests answered
 * @property {number} micros
 * @property {number} refused answers of 400 and above
 * @property {number} broken connections
 * @property {number} p50 latency in µs
 * @property {number} p99 latency in µs
 */

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** wrk alone measures for whole seconds; it is interrupted before these are over. */
const LIMIT_S = 10;

/** Requests on their way to a server, over and over. */
export class Traffic {
  #folder = mkdtempSync(join(tmpdir(), 'postern-bench-'));
  #file = join(this.#folder, 'requests');
  #remove = () => rmSync(this.#folder, { recursive: true, force: true });

  /** @param {readonly import('../scenarios/requests.mjs').Request[]} requests */
  constructor(requests) {
    const lines = requests.flatMap(({ method, path, body }) => [
      method,
      path,
      body === undefined ? '' : 'application/json',
      body ?? '',
    ]);
    writeFileSync(this.#file, `${lines.join('\n')}\n`);
    process.once('exit', this.#remove);
  }

  /**
   * @param {string} url
   * @param {number} connections
   * @param {number} ms
   * @returns {Promise<Load>}
   * @throws {Error} when a connection broke
   */
  async drive(url, connections, ms) {
    const command = hasWrk
      ? [
          'wrk',
          '-t',
          '1',
          '-c',
          String(connections),
          '-d',
          `${LIMIT_S}s`,
          '--timeout',
          `${LIMIT_S}s`,
          '--latency',
          '-s',
          join(HERE, 'wrk.lua'),
          url,
          '--',
          this.#file,
          String(connections),
        ]
      : [process.execPath, join(HERE, 'autocannon.mjs'), url, String(connections), this.#file, String(ms)];
    const child = start(onLoadCore(command), { stdio: ['ignore', 'pipe', 'inherit'] });
    const written = output(child);
    if (hasWrk) {
      await Promise.race([sleep(ms), written]);
      child.kill('SIGINT');
    }
    const text = await written.catch((error) => {
      if (child.signalCode === 'SIGINT') return '';
      throw error;
    });
    // On a busy machine, the interrupt may come before wrk is ready for it.
    if (text === '') return this.drive(url, connections, 2 * ms);
    const line = text.split('\n').findLast((text) => text.startsWith('{'));
    if (line === undefined) throw new Error(`${command[0]} printed no figures`);
    const load = /** @type {Load} */ (JSON.parse(line));
    if (load.broken > 0) throw new Error(`${load.broken} of ${load.requests} requests broke`);
    return load;
  }

  close() {
    process.off('exit', this.#remove);
    this.#remove();
  }
}
