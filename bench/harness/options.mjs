/**
 * The command line.
 */

import { randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

/**
 * How thorough a run is: a first look, one of the runs whose figures are written, or the one to compare by.
 *
 * @typedef {'quick' | 'written' | 'full'} Thoroughness
 */

/**
 * @typedef {object} Options
 * @property {readonly string[]} scenarios by name; empty for all
 * @property {boolean} quick
 * @property {boolean} write whether figures.json gets the figures
 * @property {Thoroughness} thoroughness
 * @property {string | undefined} json file for the figures
 * @property {number} seed
 * @property {string} node binary that runs the servers
 * @property {string | undefined} dist another build of Postern, as one more contender
 * @property {readonly string[] | undefined} only contenders
 * @property {() => number} random
 */

/**
 * @param {readonly string[]} args
 * @returns {Omit<Options, 'random'>}
 * @throws {TypeError} for an unknown option
 */
export function parseOptions(args) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      json: { type: 'string' },
      seed: { type: 'string' },
      node: { type: 'string', default: process.execPath },
      dist: { type: 'string' },
      only: { type: 'string' },
    },
  });
  const seed = values.seed === undefined ? randomInt(1_000_000) : Number(values.seed);
  if (!Number.isInteger(seed)) throw new TypeError(`--seed is ${values.seed}; give an integer`);
  if (values.write && (positionals.length > 0 || values.only !== undefined))
    throw new TypeError('--write has its own scenarios and contenders; leave them out');
  return {
    scenarios: positionals,
    quick: values.quick,
    write: values.write,
    thoroughness: values.quick ? 'quick' : values.write ? 'written' : 'full',
    json: values.json,
    seed,
    node: values.node,
    dist: values.dist === undefined ? undefined : resolve(values.dist),
    only: values.only?.split(',').map((name) => name.trim()),
  };
}
