/**
 * Runs one scenario of `http.mjs`: CPU time for each request, against the bare server on the same core.
 */

import { CONTROL, select } from '../harness/contender.mjs';
import { playDuets } from '../harness/duet.mjs';
import { formatSpread, printTable } from '../harness/report.mjs';
import { median, quartiles } from '../harness/statistics.mjs';

const CONNECTIONS = 64;
const MiB = 2 ** 20;

/** @type {Record<'quick' | 'full', import('../harness/duet.mjs').Plan>} */
const PLANS = {
  quick: { duets: 1, warmUpSlices: 2, slices: 3 },
  full: { duets: 3, warmUpSlices: 8, slices: 6 },
};

/** The control may come out this far from the bare server. */
const TOLERANCE = 0.02;

/**
 * @param {import('./http.mjs').HttpScenario} scenario
 * @param {import('../harness/options.mjs').Options} options
 * @returns {Promise<object>} the figures, for --json
 */
export async function compareServers({ title, spec, contenders, flags, requests }, options) {
  const { slices, excluded, warmUps, restless } = await playDuets(
    { contenders: select(contenders, options), spec, flags, requests: requests(options.random),
      connections: CONNECTIONS, plan: options.quick ? PLANS.quick : PLANS.full },
    options,
  );
  const results = [...slices].map(([name, own]) => ({
    name,
    cpuMicros: own.map(({ own }) => own.cpuMicros),
    bareMicros: own.map(({ bare }) => bare.cpuMicros),
    cpuRatios: own.map(({ own, bare }) => own.cpuMicros / bare.cpuMicros),
    busy: own.map(({ own, bare }) => own.busy + bare.busy),
    peakMiB: own.map(({ own }) => own.peakBytes / MiB),
    barePeakMiB: own.map(({ bare }) => bare.peakBytes / MiB),
  }));
  results.sort((a, b) => median(a.cpuRatios) - median(b.cpuRatios));

  printTable(
    title,
    ['', 'CPU x bare', 'µs CPU', 'µs CPU of bare', 'core used', 'peak MiB', 'of bare'],
    results.map(({ name, cpuMicros, bareMicros, cpuRatios, busy, peakMiB, barePeakMiB }) => [
      name,
      formatSpread(cpuRatios),
      formatSpread(cpuMicros, 1),
      formatSpread(bareMicros, 1),
      `${(median(busy) * 100).toFixed(0)} %`,
      Math.max(...peakMiB).toFixed(1),
      Math.max(...barePeakMiB).toFixed(1),
    ]),
  );
  const { q1, q3 } = quartiles(warmUps);
  console.log(
    `Warm after ${Math.round(q1 / 1000)} to ${Math.round(q3 / 1000)} thousand requests (quartiles); ${restless} of ${warmUps.length} processes were not level by then.`,
  );
  for (const [name, reason] of excluded) console.log(`EXCLUDED ${name}: ${reason}`);
  const control = results.find(({ name }) => name === CONTROL.name);
  const off = control === undefined ? Infinity : Math.abs(median(control.cpuRatios) - 1);
  if (off > TOLERANCE)
    console.log(`The control is ${(off * 100).toFixed(1)} % off: differences of that size mean nothing in this table.`);

  return {
    warmUpRequests: quartiles(warmUps),
    restless,
    excluded: Object.fromEntries(excluded),
    contenders: results.map(summary),
  };
}

function summary({ name, cpuMicros, bareMicros, cpuRatios, busy, peakMiB, barePeakMiB }) {
  return {
    name,
    cpuMicros: quartiles(cpuMicros),
    bareMicros: quartiles(bareMicros),
    cpuRatio: quartiles(cpuRatios),
    busy: median(busy),
    peakMiB: quartiles(peakMiB),
    barePeakMiB: quartiles(barePeakMiB),
    slices: cpuMicros.length,
  };
}
