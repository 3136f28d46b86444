/**
 * A fixed part of what `npm run explore` explores: every request alone, and every pair of values in sequences of three.
 *
 * @module-tag slow
 */

import { expect, test } from 'vitest';
import { format, parse, STEPS, variants } from './alphabet.js';
import { Explorer } from './explore.js';
import { coveringSequences } from './pairs.js';
import { Report } from './report.js';

const BATCH = 200;

test('no sequence of the fixed part breaks a rule', async () => {
  const [explorer, report, sequences] = [new Explorer(), new Report(), coveringSequences()];
  for (let at = 0; at < sequences.length; at += BATCH) {
    for (const verdict of await explorer.explore(sequences.slice(at, at + BATCH))) report.add(verdict);
  }
  expect(await report.lines()).toEqual([]);
});

test('a sequence is the same after it was printed and parsed', () => {
  for (const step of STEPS) {
    for (const sequence of variants([step, ...STEPS.slice(0, 2)])) expect(parse(format(sequence))).toEqual(sequence);
  }
  expect(() => parse('get/nothing one waits')).toThrow('"get/nothing one waits" is not a sequence');
});
