/**
 * Writes `bench/figures.json`: the figures that the pages quote. `npm run docs` makes tables of them.
 */

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { toJson } from './report.mjs';

const FILE = fileURLToPath(new URL('../figures.json', import.meta.url));
/** The pages have the range over so many runs. */
const RUNS = 3;
/** Besides the bare server and its control. */
const CONTENDERS = ['postern', 'polka', 'fastify', 'hono', 'express'];

/**
 * Runs each scenario, then all of them again, so that the range of a figure shows what a busy minute does to it.
 *
 * @param {Record<string, (options: import('./options.mjs').Options) => Promise<{ name: string }[]>>} scenarios
 * @param {import('./report.mjs').Header} header
 * @param {import('./options.mjs').Options} options
 */
export async function writeFigures(scenarios, { date, node, cpu, commit }, options) {
  /** @type {Record<string, Record<string, Record<string, number[]>>>} one number for each run */
  const figures = {};
  for (let run = 1; run <= RUNS; run++) {
    for (const [scenario, measure] of Object.entries(scenarios)) {
      console.log(`\n${new Date().toISOString().slice(11, 19)} run ${run} of ${RUNS}: ${scenario}`);
      for (const { name, ...measured } of await measure({ ...options, only: CONTENDERS })) {
        const own = ((figures[scenario] ??= {})[name] ??= {});
        for (const [figure, value] of Object.entries(measured)) {
          if (value !== null) (own[figure] ??= []).push(Number((value.median ?? value).toFixed(3)));
        }
      }
    }
  }
  writeFileSync(FILE, toJson({ date: date.slice(0, 10), node, machine: cpu, commit, ...figures }));
  console.log('\nbench/figures.json is written; `npm run docs` brings its figures into the pages.');
}
