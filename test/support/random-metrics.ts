/** Texts and numbers that an exposition could get wrong. */

import type { Random } from './random.js';

export const FRAGMENTS: readonly string[] = [
  '', 'a', 'mail', '|', '"', '\\', '\n', '\\n', '{', '}', ',', '=', ' ', '#', 'é', '漢', '🦊', '\r', '\t', '__proto__',
  'le="1"',
];
export const NUMBERS: readonly number[] = [
  0, 1, -1, 0.1, 1e21, 1e-7, 1.7976931348623157e308, 5e-324, 123456789012345680000, 2 ** 31 - 1, 2 ** 31, 2 ** 53, -2.5,
  42, 100,
];

export function randomText(random: Random): string {
  return Array.from({ length: random.int(6) }, () => random.pick(FRAGMENTS)).join('');
}
