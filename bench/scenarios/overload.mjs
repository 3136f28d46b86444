/**
 * Goodput of services that are asked more than they can do, second by second, and what happens to healthy services.
 *
 * Every client gives up after a second. From the third second on it is as many requests as the capacity times a factor;
 * before that, and at the end, half of the capacity. Goodput are the requests answered with 200 in time.
 */

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { start, stop } from '../harness/processes.mjs';
import { describeRun, toJson } from '../harness/report.mjs';
import { send } from '../overload/clients.mjs';
import { playHealthy } from '../overload/healthy.mjs';

const SERVICE = fileURLToPath(new URL('../overload/service.mjs', import.meta.url));
const GOODPUT = fileURLToPath(new URL('../overload/goodput.json', import.meta.url));
const FRAMEWORKS = ['postern', 'postern, loadShedding: false', 'fastify, under-pressure', 'express'];
const PATIENCE_MS = 1000;
/** The load begins after so many seconds; the fourth second of it is the first that counts. */
const BEGIN = 2;
const SETTLED = BEGIN + 3;

/**
 * @typedef {object} Scenario
 * @property {readonly string[]} kinds of the services, the last one first
 * @property {number} capacity requests per second
 * @property {number} other requests per second for the second route
 * @property {number} atOnce frameworks that are measured at the same time: they share the CPU
 */

/** @type {Record<string, Scenario>} */
const SCENARIOS = {
  'pool of connections': { kinds: ['pool'], capacity: 100, other: 0, atOnce: 2 },
  CPU: { kinds: ['cpu'], capacity: 190, other: 0, atOnce: 1 },
  'two hops': { kinds: ['pool', 'hop'], capacity: 100, other: 0, atOnce: 2 },
  'three hops with retries': { kinds: ['pool', 'retrying', 'retrying'], capacity: 100, other: 0, atOnce: 1 },
  'mixed routes': { kinds: ['mixed'], capacity: 100, other: 50, atOnce: 2 },
  priorities: { kinds: ['priorities'], capacity: 100, other: 40, atOnce: 2 },
};
const QUICK = {
  scenarios: ['pool of connections', 'CPU', 'priorities'],
  frameworks: FRAMEWORKS,
  factors: [2, 10],
  seconds: 10,
};
const FULL = { scenarios: Object.keys(SCENARIOS), frameworks: FRAMEWORKS, factors: [1, 2, 5, 10], seconds: 12 };

/** @param {import('../harness/options.mjs').Options} options */
export async function overload(options) {
  const { scenarios, frameworks, factors, seconds } = options.quick ? QUICK : FULL;
  const chosen = frameworks.filter(
    (name) => options.only === undefined || options.only.includes(name.split(',')[0] ?? ''),
  );
  /** @type {import('../overload/drawing.mjs').Run[]} */
  const runs = [];
  for (const name of scenarios) {
    for (const factor of factors) {
      console.log(`\n${name}, ${factor} times the capacity of ${SCENARIOS[name]?.capacity} requests a second`);
      for (let first = 0; first < chosen.length; first += SCENARIOS[name].atOnce) {
        const few = chosen.slice(first, first + SCENARIOS[name].atOnce);
        const played = await Promise.all(few.map((each) => play(SCENARIOS[name], each, factor, seconds, options.node)));
        for (const [i, result] of played.entries()) {
          const run = { scenario: name, factor, framework: few[i], ...result };
          runs.push(run);
          print(run);
        }
      }
    }
  }
  const { date, node, cpu, commit } = describeRun(options);
  const setting = `Node.js ${node.slice(1)} on ${cpu}, commit ${commit}, ${date.slice(0, 10)}.`;
  const drawn = { setting, runs: runs.filter(({ factor }) => factor === 2 || factor === 10) };
  writeFileSync(GOODPUT, toJson(drawn));
  console.log('\nhealthy services: refused requests (there must be none)');
  const startService = (kind) => startServices([kind], 'postern', options.node);
  const healthy = await playHealthy(startService, options.quick ? { seconds: 10, runs: 1 } : { seconds: 20, runs: 10 });
  return { runs, healthy };
}

function print({ framework, good, p99, refused, other }) {
  const rest = other.length === 0 ? '' : `  other route ${other.join(' ')}`;
  const seconds = good.map((count) => String(count).padStart(4)).join('');
  console.log(`${framework.padEnd(28)} ${seconds}   p99 ${p99} ms, ${refused} refused${rest}`);
}

/** Runs one scenario with one framework. */
async function play({ kinds, capacity, other }, framework, factor, seconds, node) {
  const { url, close } = await startServices(kinds, framework, node);
  const rate = (second) => (second >= BEGIN && second < seconds - 3 ? capacity * factor : capacity / 2);
  const main = { url: `${url}/work`, rate, patienceMs: () => PATIENCE_MS, statesDeadline: true };
  const second = { ...main, url: `${url}/other`, rate: () => other };
  const [seen = [], others = []] = await send(other === 0 ? [main] : [main, second], seconds);
  await close();
  const times = seen.slice(SETTLED, seconds - 3).flatMap((each) => each.times);
  times.sort((a, b) => a - b);
  return {
    good: seen.map((each) => each.good),
    other: others.map((each) => each.good),
    refused: seen.reduce((sum, each) => sum + each.refused, 0),
    p99: Math.round(times[Math.floor(0.99 * times.length)] ?? 0),
    capacity,
    loadFrom: BEGIN,
    loadTo: seconds - 3,
  };
}

/** Starts the services of a chain, the last one first. @returns the URL of the first one */
async function startServices(kinds, framework, node) {
  const children = [];
  let url = 'http://127.0.0.1:1';
  for (const kind of kinds) {
    const child = start([node, [SERVICE, framework, kind, url]], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const [line] = await once(child.stdout, 'data');
    url = `http://127.0.0.1:${Number(String(line))}`;
  }
  return { url, close: () => Promise.all(children.map(stop)) };
}
