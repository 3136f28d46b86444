/**
 * Latency of hello at 1, 8 and 64 connections, each of which sends its next request as soon as it has its answer.
 */

import { compare, ratios } from '../harness/compare.mjs';
import { LEADERS, select } from '../harness/contender.mjs';
import { formatSpread, printTable } from '../harness/report.mjs';
import { median, quartiles } from '../harness/statistics.mjs';
import { HELLO } from './requests.mjs';

const CONNECTIONS = [1, 8, 64];

/**
 * Slices are long: of a thousand requests, the slowest ten would be those that begin a slice.
 *
 * @type {Record<'quick' | 'full', import('../harness/compare.mjs').Plan>}
 */
const PLANS = {
  quick: { warmUpSlices: 1, generations: 1, rounds: 2, sliceMs: 500 },
  full: { warmUpSlices: 6, generations: 2, rounds: 4, sliceMs: 1000 },
};

/** @param {import('../harness/options.mjs').Options} options */
export async function latency(options) {
  const contenders = select(LEADERS, options);
  /** @type {Record<number, object[]>} */
  const figures = {};
  for (const connections of CONNECTIONS) {
    const comparison = await compare(
      {
        contenders,
        spec: { resources: 0 },
        requests: [HELLO],
        connections,
        plan: options.quick ? PLANS.quick : PLANS.full,
      },
      options,
    );
    const results = [...comparison.slices].map(([name, own]) => ({
      name,
      p50: own.map((slice) => slice.p50),
      p50Ratios: ratios(own, comparison, (slice) => slice.p50),
      p99: own.map((slice) => slice.p99),
      p99Ratios: ratios(own, comparison, (slice) => slice.p99),
    }));
    results.sort((a, b) => median(a.p50Ratios) - median(b.p50Ratios));
    printTable(
      `latency of hello, ${connections} connection${connections === 1 ? '' : 's'}`,
      ['', 'p50 x bare', 'p50 µs', 'p99 x bare', 'p99 µs'],
      results.map(({ name, p50, p50Ratios, p99, p99Ratios }) => [
        name,
        formatSpread(p50Ratios),
        median(p50).toFixed(0),
        formatSpread(p99Ratios),
        median(p99).toFixed(0),
      ]),
    );
    figures[connections] = results.map(({ name, p50, p50Ratios, p99, p99Ratios }) => ({
      name,
      p50Micros: quartiles(p50),
      p50Ratio: quartiles(p50Ratios),
      p99Micros: quartiles(p99),
      p99Ratio: quartiles(p99Ratios),
    }));
  }
  return figures;
}
