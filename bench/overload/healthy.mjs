/**
 * Services that are not overloaded, each with clients that state a deadline and clients that only leave. Whatever they
 * refuse is a mistake. test/overload has the same scenarios in virtual time, where chance has a seed.
 */

import { send } from './clients.mjs';

const between = (from, to) => from + Math.random() * (to - from);

/**
 * What the clients of each kind of service in `work.mjs` do, second by second.
 *
 * @type {Record<string, { kind: string, streams: Omit<import('./clients.mjs').Stream, 'url' | 'statesDeadline'>[] }>}
 */
const SCENARIOS = {
  'bursts of 500': {
    kind: 'timer',
    streams: [{ rate: (second) => (second % 4 === 2 ? 500 : 10), patienceMs: () => 5000 }],
  },
  'a steady report of 3 s': {
    kind: 'report',
    streams: [{ rate: (second) => (second % 2 === 0 ? 10 : 0), patienceMs: () => 5000 }],
  },
  'typeahead, 80 % aborted': {
    kind: 'search',
    streams: [{ rate: () => 60, patienceMs: () => (Math.random() < 0.8 ? between(30, 300) : 5000) }],
  },
  'one client that aborts': {
    kind: 'search',
    streams: [
      { rate: () => 50, patienceMs: () => 100 },
      { rate: () => 5, patienceMs: () => 5000 },
    ],
  },
  'two latencies': {
    kind: 'bimodal',
    streams: [{ rate: (second) => (second < 8 ? 60 : 1), patienceMs: () => 5000 }],
  },
  'a slow start': { kind: 'slowStart', streams: [{ rate: () => 40, patienceMs: () => 5000 }] },
  'long polls': {
    kind: 'poll',
    streams: [{ rate: () => 10, patienceMs: () => (Math.random() < 0.3 ? between(1000, 10_000) : 12_000) }],
  },
  'server-sent events': { kind: 'events', streams: [{ rate: () => 10, patienceMs: () => between(1000, 6000) }] },
  'slow uploads': {
    kind: 'upload',
    streams: [{ rate: () => 7, patienceMs: () => between(2000, 9000), uploads: true }],
  },
  'slow readers': {
    kind: 'large',
    streams: [{ rate: () => 7, patienceMs: () => between(2000, 9000), readsSlowly: true }],
  },
  'a slow, steady dependency': { kind: 'dependency', streams: [{ rate: () => 40, patienceMs: () => 5000 }] },
  'a stop of five seconds': { kind: 'stop', streams: [{ rate: () => 50, patienceMs: () => 5000 }] },
  'a busy pool': { kind: 'pool', streams: [{ rate: () => 70, patienceMs: () => 1000 }] },
};

/**
 * Runs all of them at the same time, again and again.
 *
 * @param {(kind: string) => Promise<{ url: string, close: () => Promise<unknown> }>} startService
 * @returns {Promise<Record<string, number[]>>} the refused requests of each run, by scenario
 */
export async function playHealthy(startService, { seconds, runs }) {
  const names = Object.keys(SCENARIOS).flatMap((name) => [`${name}, deadlines`, `${name}, clients that leave`]);
  /** @type {Record<string, number[]>} */
  const refusals = Object.fromEntries(names.map((name) => [name, []]));
  for (let run = 1; run <= runs; run += 1) {
    const counts = await Promise.all(names.map((name) => playOne(startService, name, seconds)));
    names.forEach((name, i) => refusals[name]?.push(counts[i] ?? NaN));
    const wrong = names.filter((_, i) => counts[i] !== 0);
    console.log(`run ${run} of ${runs}: ${names.length} services, ${wrong.length} refused something ${wrong.join('; ')}`);
  }
  return refusals;
}

async function playOne(startService, name, seconds) {
  const [scenario = '', clients] = name.split(/, (?=deadlines|clients)/);
  const { kind, streams } = SCENARIOS[scenario];
  const { url, close } = await startService(kind);
  const statesDeadline = clients === 'deadlines';
  await send(streams.map((stream) => ({ ...stream, statesDeadline, url: `${url}/work` })), seconds);
  const metrics = await (await fetch(`${url}/bench/metrics/`, { headers: { accept: 'text/plain' } })).text();
  await close();
  // After a stop, the process itself is what was too slow: the contract has requests refused for that, with a reason of
  // their own.
  const counted = metrics.matchAll(/^http_requests_refused_total\{(?!.*reason="event_loop").*\} (\d+)/gm);
  return [...counted].reduce((sum, [, count]) => sum + Number(count), 0);
}
