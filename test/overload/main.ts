/**
 * `npm run simulate:overload`: what a whole application serves with overload protection, and without. Prints a table
 * with the mean of some seeds, and fails if a row serves less than is wanted.
 */

import { parseArgs } from 'node:util';
import { loadWith } from '../support/bundle.js';
import { clock } from './clock.js';
import { play, ROWS, type Result, type Row } from './rows.js';

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '3' },
    row: { type: 'string', default: '' },
    // `slow` or `overloaded`.
    only: { type: 'string' },
  },
});

const postern = await loadWith(clock);
const seeds = Array.from({ length: Number(values.seeds) }, (_, i) => Number(values.seed) + i);
const mean = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

async function playAll(row: Row, isProtected: boolean): Promise<Result[]> {
  const results: Result[] = [];
  for (const seed of seeds) results.push(await play(postern, row, seed, isProtected));
  return results;
}

const printed = (...cells: readonly string[]): void => console.log(`| ${cells.join(' | ')} |`);
printed('row', 'clients', 'with', 'lowest seed', 'without', 'wanted', 'refused', 'low for');
printed(...Array.from({ length: 8 }, () => '---'));
let short = 0;
const shares: number[] = [];
for (const row of ROWS) {
  const isSlow = row.capacity === undefined;
  if (!row.name.includes(values.row) || (values.only !== undefined && (values.only === 'slow') !== isSlow)) continue;
  const guarded = await playAll(row, true);
  const bare = row.isHuge === true ? [] : await playAll(row, false);
  const good = mean(guarded.map((result) => result.good));
  const without = mean(bare.map((result) => result.good));
  if (isSlow) shares.push((100 * good) / without);
  const wanted = isSlow ? (row.wanted / 100) * without : row.wanted;
  if (good < wanted) short += 1;
  printed(
    row.name,
    row.statesDeadline ? 'state deadlines' : 'leave',
    `${good.toFixed(1)}${good < wanted ? ' TOO LITTLE' : ''}`,
    Math.min(...guarded.map((result) => result.good)).toFixed(1),
    bare.length === 0 ? '' : without.toFixed(1),
    wanted.toFixed(1),
    mean(guarded.map(({ refused }) => refused)).toFixed(0),
    isSlow || row.isSteady === false ? '' : `${mean(guarded.map(({ lowFor }) => lowFor)).toFixed(1)} s`,
  );
}
if (shares.length > 0) console.log(`slow services: ${mean(shares).toFixed(2)} % of what they serve without protection`);
console.log(`${short} rows serve less than is wanted`);
process.exit(short > 0 ? 1 : 0);
