/**
 * Runs one scenario of `http.mjs`: CPU time for each request and requests per second, against the bare server.
 */

import { compare } from '../harness/compare.mjs';
import { BARE, CONTROL, select } from '../harness/contender.mjs';
import { formatSpread, printTable } from '../harness/report.mjs';
import { median, quartiles } from '../harness/statistics.mjs';

const CONNECTIONS = 64;

/** @type {Record<'quick' | 'full', import('../harness/compare.mjs').Plan>} */
const PLANS = {
  quick: { warmUpRequests: 20_000, generations: 1, rounds: 2, sliceMs: 200 },
  full: { warmUpRequests: 150_000, generations: 5, rounds: 3, sliceMs: 300 },
};

/** The control may come out this far from the bare server. */
const TOLERANCE = 0.02;

/**
 * @param {import('./http.mjs').HttpScenario} scenario
 * @param {import('../harness/options.mjs').Options} options
 * @returns {Promise<object>} the figures, for --json
 */
export async function compareServers({ title, spec, contenders, requests }, options) {
  const { slices, excluded } = await compare(
    { contenders: select(contenders, options), spec, requests: requests(options.random), connections: CONNECTIONS, plan: options.quick ? PLANS.quick : PLANS.full },
    options,
  );
  const bare = slices.get(BARE.name) ?? [];
  const results = [...slices].map(([name, own]) => ({
    name,
    cpuMicros: own.map((slice) => slice.cpuMicros),
    cpuRatios: own.map((slice, round) => slice.cpuMicros / bare[round].cpuMicros),
    perSecond: own.map((slice) => slice.perSecond),
    perSecondRatios: own.map((slice, round) => slice.perSecond / bare[round].perSecond),
    busy: own.map((slice) => slice.busy),
  }));
  results.sort((a, b) => median(a.cpuRatios) - median(b.cpuRatios));

  printTable(
    title,
    ['', 'CPU x bare', 'µs CPU', 'req/s x bare', 'req/s', 'core used'],
    results.map(({ name, cpuMicros, cpuRatios, perSecond, perSecondRatios, busy }) => [
      name,
      formatSpread(cpuRatios),
      formatSpread(cpuMicros, 1),
      formatSpread(perSecondRatios),
      median(perSecond).toFixed(0),
      `${(median(busy) * 100).toFixed(0)} %`,
    ]),
  );
  for (const [name, reason] of excluded) console.log(`EXCLUDED ${name}: ${reason}`);
  const control = results.find(({ name }) => name === CONTROL.name);
  const off = control === undefined ? Infinity : Math.abs(median(control.cpuRatios) - 1);
  if (off > TOLERANCE) console.log(`The control is ${(off * 100).toFixed(1)} % off: differences of that size mean nothing in this table.`);

  return { excluded: Object.fromEntries(excluded), contenders: results.map(summary) };
}

function summary({ name, cpuMicros, cpuRatios, perSecond, perSecondRatios, busy }) {
  return { name, cpuMicros: quartiles(cpuMicros), cpuRatio: quartiles(cpuRatios), perSecond: quartiles(perSecond), perSecondRatio: quartiles(perSecondRatios), busy: median(busy), rounds: cpuRatios.length };
}
