/**
 * Clients that do not wait for each other, so that a slow service gets as many requests as a quick one. Each gives up
 * after its patience, and disconnects.
 */

import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * One second of what clients saw.
 *
 * @typedef {object} Second
 * @property {number} good answered with 200 in time
 * @property {number} refused answered with 429, 503 or 504
 * @property {number} failed answered with anything else, or not at all
 * @property {number} late not answered within the patience
 * @property {number[]} times of the good ones, in ms
 */

/**
 * @typedef {object} Stream
 * @property {string} url
 * @property {(second: number) => number} rate requests per second
 * @property {() => number} patienceMs of one client
 * @property {boolean} statesDeadline whether requests have the header of a call between services
 * @property {boolean} [uploads] whether requests have a body that is sent slowly
 * @property {boolean} [readsSlowly] whether the replies are read slowly
 */

/** @param {number} seconds @returns {Second[]} */
const noSeconds = (seconds) =>
  Array.from({ length: seconds }, () => ({ good: 0, refused: 0, failed: 0, late: 0, times: [] }));

/**
 * Sends several streams of requests for some seconds.
 *
 * @param {readonly Stream[]} streams
 * @param {number} seconds
 * @returns {Promise<Second[][]>} by stream
 */
export async function send(streams, seconds) {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity, scheduling: 'fifo' });
  const seen = streams.map(() => noSeconds(seconds + 2));
  const startedAt = performance.now();
  const due = streams.map(() => 0);
  let open = 0;
  let previous = 0;
  await new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsed = (performance.now() - startedAt) / 1000;
      if (elapsed >= seconds) {
        clearInterval(timer);
        resolve(undefined);
        return;
      }
      // A timer of a busy machine is late: by the clock, as many requests are sent all the same.
      for (const [i, stream] of streams.entries()) {
        due[i] = (due[i] ?? 0) + stream.rate(Math.floor(elapsed)) * (elapsed - previous);
        for (; (due[i] ?? 0) >= 1; due[i] = (due[i] ?? 0) - 1) one(stream, seen[i] ?? []);
      }
      previous = elapsed;
    }, 5);
  });
  while (open > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  agent.destroy();
  return seen.map((list) => list.slice(0, seconds));

  function one({ url, patienceMs: drawPatience, statesDeadline, uploads, readsSlowly }, list) {
    const patienceMs = Math.ceil(drawPatience());
    const sentAt = performance.now();
    let isOver = false;
    open += 1;
    const end = (outcome) => {
      if (isOver) return;
      isOver = true;
      open -= 1;
      clearTimeout(timer);
      const now = performance.now();
      const second = list[Math.min(list.length - 1, Math.floor((now - startedAt) / 1000))];
      second[outcome] += 1;
      if (outcome === 'good') second.times.push(now - sentAt);
    };
    const headers = statesDeadline ? { 'x-envoy-expected-rq-timeout-ms': String(patienceMs) } : {};
    const req = request(url, { agent, headers, method: uploads ? 'POST' : 'GET' }, (res) => {
      const outcome = res.statusCode === 200 ? 'good' : [429, 503, 504].includes(res.statusCode) ? 'refused' : 'failed';
      const ended = readsSlowly ? readSlowly(res) : once(res.resume(), 'end');
      ended.then(() => end(outcome), () => end('failed'));
    });
    const timer = setTimeout(() => {
      end('late');
      req.destroy();
    }, patienceMs);
    req.on('error', () => end('failed'));
    if (uploads) void sendSlowly(req);
    else req.end();
  }
}

async function readSlowly(res) {
  for await (const _chunk of res) await wait(500);
}

async function sendSlowly(req) {
  for (let chunks = 2 + Math.random() * 18; chunks > 0 && !req.destroyed; chunks -= 1) {
    req.write(Buffer.alloc(100));
    await wait(Math.random() < 0.5 ? 20 : 400);
  }
  req.end();
}
