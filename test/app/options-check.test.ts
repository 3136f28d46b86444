/** Options objects: what is refused, and what is offered instead. */

import { expect, test } from 'vitest';
import { nearestName } from '../../src/base/nearest-name.js';
import { assertOptions } from '../../src/base/options-check.js';

const NAMES = ['bodyLimit', 'logger', 'requestTimeout', 'settings'];

test.for([
  { text: 'bodylimit', nearest: 'bodyLimit' },
  { text: 'loger', nearest: 'logger' },
  { text: 'requestTimeOut', nearest: 'requestTimeout' },
  { text: 'setting', nearest: 'settings' },
  { text: 'colour', nearest: undefined },
  { text: '', nearest: undefined },
  { text: 'x'.repeat(10_000), nearest: undefined },
])('the name nearest to "$text" is $nearest', ({ text, nearest }) => {
  expect(nearestName(text, NAMES)).toBe(nearest);
});

test('an unknown option is refused with the nearest one, or with all there are', () => {
  expect(() => assertOptions('new Postern()', { bodylimit: 1 }, NAMES))
    .toThrow(new TypeError('unknown option "bodylimit" of new Postern(); did you mean "bodyLimit"?'));
  expect(() => assertOptions('close()', { colour: 1 }, ['delay', 'timeout']))
    .toThrow(new TypeError('unknown option "colour" of close(); it has delay, timeout'));
  expect(() => assertOptions('close()', { delay: 1 }, ['delay', 'timeout'])).not.toThrow();
});

test.for([null, undefined, 5, 'delay', ['delay'], () => 1])('%s is no options object', (options) => {
  expect(() => assertOptions('close()', options, ['delay'])).toThrow(TypeError);
});
