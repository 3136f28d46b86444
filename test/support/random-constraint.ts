/** Texts of random constraints, and segments for them. */

import type { Random } from './random.js';

const ATOMS = ['a', 'b', '-', '.', '[ab]', '[^a]', '[^-]', '\\w', '\\W', '[+-9]', '[\\Da]', '\\x61', '[-b]', '[^b-]'];
const ASSERTIONS = ['^', '$', '\\b', '\\B'];
const QUANTIFIERS = ['*', '+', '?', '*?', '+?', '??', '{2}', '{1,3}', '{0,2}?', '{2,}'];
const GROUPS = ['(', '(?:', '(?=', '(?!', '(?<=', '(?<!'];

export function randomWord(random: Random, alphabet: string, length: number): string {
  return Array.from({ length: random.int(length + 1) }, () => random.pick([...alphabet])).join('');
}

/** Text of a random expression; its backreferences may have no group. */
export function randomSource(random: Random, depth: number): string {
  const branches = Array.from({ length: random.pick([1, 1, 1, 2, 3]) }, () => {
    return Array.from({ length: random.pick([0, 1, 1, 2, 2, 3]) }, () => randomTerm(random, depth)).join('');
  });
  return branches.join('|');
}

function randomTerm(random: Random, depth: number): string {
  const kind = random.int(20);
  if (kind === 0) return random.pick(ASSERTIONS);
  if (kind === 1) return random.pick(['\\1', '\\2']);
  const quantifier = random.int(3) === 0 ? random.pick(QUANTIFIERS) : '';
  if (kind < 13 || depth === 0) return random.pick(ATOMS) + quantifier;
  const open = random.pick(GROUPS);
  return `${open}${randomSource(random, depth - 1)})${open === '(' || open === '(?:' ? quantifier : ''}`;
}
