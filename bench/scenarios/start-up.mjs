/**
 * What a small service costs before and beside its requests: CPU time until it listens, memory, the smallest heap.
 */

import { execFileSync } from 'node:child_process';
import { check } from '../harness/check.mjs';
import { BARE, CONTROL, FRAMEWORKS, select, Server } from '../harness/contender.mjs';
import { Traffic } from '../harness/load.mjs';
import { formatSpread, printTable, progress } from '../harness/report.mjs';
import { median, quartiles, shuffled } from '../harness/statistics.mjs';
import { HELLO } from './requests.mjs';

const CONTENDERS = ['postern', 'restana', 'fastify', 'polka', 'hono', 'h3', 'koa', 'express'];
const SPEC = { resources: 0 };
const CONNECTIONS = 64;
const MiB = 2 ** 20;

const PLANS = {
  quick: { starts: 3, loads: 1, requests: 20_000, heapRequests: 1000 },
  written: { starts: 8, loads: 1, requests: 100_000, heapRequests: 0 },
  full: { starts: 30, loads: 2, requests: 100_000, heapRequests: 20_000 },
};

/** In MB; more than the hungriest contender needs. */
const LARGEST_HEAP = 64;

/** @param {import('../harness/options.mjs').Options} options */
export async function startUp(options) {
  const plan = PLANS[options.thoroughness];
  const contenders = [BARE, CONTROL, ...select(FRAMEWORKS.filter(({ name }) => CONTENDERS.includes(name)), options)];
  let results = contenders.map((contender) => ({
    contender,
    name: contender.name,
    startMs: [],
    idleMiB: [],
    loadedMiB: [],
    smallestHeapMB: NaN,
  }));
  const traffic = new Traffic([HELLO]);
  for (let round = 0; round < plan.starts; round++) {
    for (const result of shuffled(results, options.random)) {
      progress(`start, round ${round + 1} of ${plan.starts}: ${result.name}`);
      try {
        await measureOnce(result, round < plan.loads ? plan.requests : 0, traffic, options.node);
      } catch (error) {
        if (result.contender === BARE) throw error;
        console.log(`EXCLUDED ${result.name}: ${error.message}`);
        results = results.filter((other) => other !== result);
      }
    }
  }
  for (const result of results) {
    if (result.contender === CONTROL || plan.heapRequests === 0) continue;
    progress(`start, smallest heap: ${result.name}`);
    result.smallestHeapMB = await smallestHeap(result.contender, traffic, plan.heapRequests, options.node);
  }
  traffic.close();
  progress('');

  const [{ startMs: bareMs, idleMiB: bareMiB }] = results;
  printTable(
    `start: a listening server, RSS after 1 request and after ${plan.requests.toLocaleString('en')}, smallest --max-old-space-size`,
    ['', 'CPU ms', 'more than bare', 'idle MiB', 'more than bare', 'loaded MiB', 'heap MB'],
    results.map(({ name, startMs, idleMiB, loadedMiB, smallestHeapMB }) => [
      name,
      formatSpread(startMs, 0),
      (median(startMs) - median(bareMs)).toFixed(1),
      formatSpread(idleMiB, 1),
      (median(idleMiB) - median(bareMiB)).toFixed(1),
      median(loadedMiB).toFixed(1),
      Number.isNaN(smallestHeapMB) ? '' : String(smallestHeapMB),
    ]),
  );
  printParts(options.node);
  return results.map(({ name, startMs, idleMiB, loadedMiB, smallestHeapMB }) => ({
    name,
    startMs: quartiles(startMs),
    idleMiB: quartiles(idleMiB),
    loadedMiB: quartiles(loadedMiB),
    smallestHeapMB: Number.isNaN(smallestHeapMB) ? null : smallestHeapMB,
  }));
}

/**
 * A hello service that prints the files of Postern that it has loaded, with their sizes: at its first reply, and 2 s
 * later.
 */
const LOADED = `
  import { Session } from 'node:inspector';
  import { statSync } from 'node:fs';
  const sizes = {};
  const session = new Session();
  session.connect();
  session.on('Debugger.scriptParsed', ({ params: { url } }) => {
    if (/\\/dist\\/.+\\.js$/.test(url)) sizes[url.slice(url.lastIndexOf('/dist/') + 6)] = statSync(new URL(url)).size;
  });
  session.post('Debugger.enable');
  const { Postern } = await import(${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)});
  const app = new Postern('a', { logger: false }).get('/hello', () => 'hello');
  const { url } = await app.listen({ port: 0 });
  await (await fetch(url + '/hello')).text();
  const first = { ...sizes };
  await new Promise((resolve) => setTimeout(resolve, 2000));
  console.log(JSON.stringify({ first, later: sizes }));
  await app.close();
`;

/** Prints the JavaScript of Postern that a hello service loads, file by file. */
function printParts(node) {
  const { first, later } = JSON.parse(
    execFileSync(node, ['--input-type=module', '--eval', LOADED], { encoding: 'utf8' }),
  );
  const kB = (sizes, name) => (sizes[name] === undefined ? '' : (sizes[name] / 1000).toFixed(1));
  const sum = (sizes) => (Object.values(sizes).reduce((total, size) => total + size, 0) / 1000).toFixed(1);
  printTable(
    'start: kB of JavaScript that a hello service loads of Postern',
    ['', 'until the first reply', '2 s later'],
    [...Object.keys(later).map((name) => [name, kB(first, name), kB(later, name)]), ['all', sum(first), sum(later)]],
  );
}

/** Starts one process, and loads it with so many requests. */
async function measureOnce(result, requests, traffic, node) {
  const server = await Server.start(result.contender, SPEC, node);
  try {
    await check(server.url, [HELLO]);
    result.startMs.push(server.startMicros / 1000);
    result.idleMiB.push((await server.usage()).rssBytes / MiB);
    if (requests === 0) return;
    for (let done = 0; done < requests; ) done += (await traffic.drive(server.url, CONNECTIONS, 1000)).requests;
    result.loadedMiB.push((await server.usage()).rssBytes / MiB);
  } finally {
    await server.stop();
  }
}

/** The smallest old space, in MB, with which a contender starts and serves, found by bisection. */
async function smallestHeap(contender, traffic, requests, node) {
  let fails = 0;
  let serves = LARGEST_HEAP;
  while (serves - fails > 1) {
    const megabytes = Math.floor((fails + serves) / 2);
    if (await servesWith(megabytes, contender, traffic, requests, node)) serves = megabytes;
    else fails = megabytes;
  }
  return serves;
}

async function servesWith(megabytes, contender, traffic, requests, node) {
  let server;
  try {
    server = await Server.start(contender, SPEC, node, [`--max-old-space-size=${megabytes}`]);
    await check(server.url, [HELLO]);
    for (let done = 0; done < requests; ) done += (await traffic.drive(server.url, CONNECTIONS, 300)).requests;
    await server.usage();
    return true;
  } catch {
    return false;
  } finally {
    await server?.stop();
  }
}
