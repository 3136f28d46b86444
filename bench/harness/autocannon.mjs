/**
 * Does what `wrk.lua` does with autocannon, where wrk is missing.
 *
 * Run as `node autocannon.mjs <url> <connections> <request file> <ms>`.
 */

import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';

const [url, connections, file, ms] = process.argv.slice(2);
const lines = readFileSync(file, 'utf8').split('\n');
const requests = [];
for (let line = 0; line + 3 < lines.length; line += 4) {
  const [method, path, contentType, body] = lines.slice(line, line + 4);
  requests.push(body === '' ? { method, path } : { method, path, body, headers: { 'content-type': contentType } });
}

let startedAt = 0;
const load = autocannon({ url, connections: Number(connections), duration: 60, requests });
// Before that it prepares its requests, for each connection.
load.once('start', () => {
  startedAt = performance.now();
  setTimeout(() => load.stop(), Number(ms));
});
load.once('done', (result) => {
  const micros = Math.round((performance.now() - startedAt) * 1000);
  const { p50, p99 } = result.latency;
  const figures = {
    requests: result.requests.total,
    micros,
    refused: result['4xx'] + result['5xx'],
    broken: result.errors + result.timeouts,
    p50: p50 * 1000,
    p99: p99 * 1000,
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
});
