/** Texts of random constraints, and segments for them. */

import type { Random } from './random.js';

const ATOMS = ['a', 'b', '-', '.', '[ab]', '[^a]', '[^-]', '\\w', '\\W', '[+-9]', '[\\Da]', '\\x61', '[-b]', '[^b-]'];
const QUANTIFIERS = ['*', '+', '?', '*?', '+?', '??', '{2}', '{1,3}', '{0,2}?', '{2,}'];

export function randomWord(random: Random, alphabet: string, length: number): string {
  return Array.from({ length: random.int(length + 1) }, () => random.pick([...alphabet])).join('');
}

/** Text of a random expression. */
export function randomSource(random: Random, depth: number): string {
  const branches = Array.from({ length: random.pick([1, 1, 1, 2, 3]) }, () => {
    return Array.from({ length: random.pick([0, 1, 1, 2, 2, 3]) }, () => randomTerm(random, depth)).join('');
  });
  return branches.join('|');
}

function randomTerm(random: Random, depth: number): string {
  const quantifier = random.int(3) === 0 ? random.pick(QUANTIFIERS) : '';
  if (random.int(3) > 0 || depth === 0) return random.pick(ATOMS) + quantifier;
  return `${random.pick(['(', '(?:'])}${randomSource(random, depth - 1)})${quantifier}`;
}
