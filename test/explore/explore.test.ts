/** The sequences of `npm run explore`. */

import { expect, test } from 'vitest';
import { format, parse, STEPS, variants } from './alphabet.js';

test('a sequence is the same after it was printed and parsed', () => {
  for (const step of STEPS) {
    for (const sequence of variants([step, ...STEPS.slice(0, 2)])) expect(parse(format(sequence))).toEqual(sequence);
  }
  expect(() => parse('get/nothing one waits 2')).toThrow('"get/nothing one waits 2" is not a sequence');
});
