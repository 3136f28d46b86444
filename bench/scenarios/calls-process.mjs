/**
 * Calls another service in one way, in slices, each when told to over IPC; tells what each slice cost.
 *
 * Run as `node calls-process.mjs service|fetch|node:http <url>` with an IPC channel; it ends with its parent.
 */

import { Agent, request } from 'node:http';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Calls that are under way at a time. */
const AT_A_TIME = 32;

/** Each calls once, and gives the parsed body; all of them keep connections. */
const WAYS = {
  async service(url) {
    const dist = process.env['POSTERN_DIST'] ?? resolve(import.meta.dirname, '../../dist');
    const { Postern } = await import(pathToFileURL(resolve(dist, 'index.js')).href);
    const client = new Postern('caller', { logger: false, settings: { SERVICE_CONNECTIONS: [`callee=${url}`] } })
      .service('callee');
    return async () => (await client.get('/hello')).body;
  },
  async fetch(url) {
    return async () => {
      const response = await fetch(`${url}/hello`, { signal: AbortSignal.timeout(5000) });
      if (!response.ok) throw new Error(`got ${response.status}`);
      return response.json();
    };
  },
  async 'node:http'(url) {
    const agent = new Agent({ keepAlive: true });
    return () =>
      new Promise((resolve, reject) => {
        const req = request(`${url}/hello`, { agent, timeout: 5000 }, (res) => {
          const chunks = [];
          res.on('data', (chunk) => chunks.push(chunk));
          res.on('end', () =>
            res.statusCode === 200
              ? resolve(JSON.parse(Buffer.concat(chunks).toString()))
              : reject(new Error(`got ${res.statusCode}`)),
          );
        });
        req.on('timeout', () => req.destroy(new Error('timed out')));
        req.on('error', reject);
        req.end();
      });
  },
};

const [way, url] = process.argv.slice(2);
const call = await WAYS[way](url);

process.on('disconnect', () => process.exit());
process.on('message', async (ms) => {
  const before = process.cpuUsage();
  const end = performance.now() + ms;
  let calls = 0;
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      while (performance.now() < end) {
        const { message } = await call();
        if (message !== 'Hello, world!') throw new Error(`${way} got ${message}`);
        calls += 1;
      }
    }),
  );
  const { user, system } = process.cpuUsage(before);
  process.send?.({ calls, cpuMicros: (user + system) / calls });
});
process.send?.('ready');
