/**
 * Random constraints: the parser against the platform, the pattern against the segment's expression, the analysis
 * against counted steps.
 *
 * @module-tag slow
 */

import { expect, test } from 'vitest';
import { compileConstraint, type Constraint } from '../../src/endpoint/constraint.js';
import { parseRegex, type RegexNode } from '../support/regex-syntax.js';
import { randomSource, randomWord } from '../support/random-constraint.js';
import { createRandom, type Random } from '../support/random.js';

const seed = Number(process.env.SEED ?? 20261123);
/** More than any constraint that is accepted takes here. */
const STEP_LIMIT = 200_000;

test('what the parser accepts is a regular expression, and each of its characters and repeats has its own text', () => {
  const random = createRandom(seed);
  const pieces = [
    'a', 'b', '-', '^', '|', '(', '(?:', '(?=', '(?<!', '(?<n>', ')', ')', '[', '[^', ']', '\\', '\\d', '\\1', '\\k<n>',
    '\\x4', '1', '*', '+?', '{2}', '{', ',3}', '.', '$',
  ];
  let accepted = 0;
  for (let i = 0; i < 3_000; i += 1) {
    const source =
      i % 2 === 0
        ? randomSource(random, 3)
        : Array.from({ length: 1 + random.int(8) }, () => random.pick(pieces)).join('');
    const tree = tryParse(source);
    if (tree === null) continue;
    accepted += 1;
    expect(() => new RegExp(source, 's'), context(source)).not.toThrow();
    for (const { text, index } of textsOf(tree))
      expect(source.startsWith(text, index), `${context(source)}, "${text}" at ${index}`).toBe(true);
  }
  expect(accepted).toBeGreaterThan(900);
});

test('the pattern matches a path if, and only if, the expression matches its segment', () => {
  const random = createRandom(seed);
  for (const constraint of constraints(random, 600)) {
    const pattern = new RegExp(`^/(p)/${constraint.pattern}/q$`);
    const last = new RegExp(`^/${constraint.pattern}$`);
    const twice = new RegExp(`^/${constraint.pattern}/${constraint.pattern}$`);
    const check = (what: string, path: string, actual: boolean, expected: boolean): void => {
      if (actual !== expected)
        expect.fail(`${context(constraint.source)}: ${what} of "${path}" is ${actual}, the segments say ${expected}`);
    };
    for (let i = 0; i < 60; i += 1) {
      const [segment, other, slashed] = [
        randomWord(random, 'ab-', 7),
        randomWord(random, 'ab-', 4),
        randomWord(random, 'ab-/', 7),
      ];
      const matches = segment !== '' && constraint.regexp.test(segment);
      check('pattern', `/p/${segment}/q`, pattern.test(`/p/${segment}/q`), matches);
      check('last', `/${segment}`, last.test(`/${segment}`), matches);
      check(
        'twice',
        `/${segment}/${other}`,
        twice.test(`/${segment}/${other}`),
        matches && other !== '' && constraint.regexp.test(other),
      );
      if (slashed.includes('/')) check('pattern', `/p/${slashed}/q`, pattern.test(`/p/${slashed}/q`), false);
    }
    for (const segment of ['\n', '\u2028', '\ud83d\ude00', '5', '.'])
      check('last', `/${segment}`, last.test(`/${segment}`), constraint.regexp.test(segment));
  }
});

test('an accepted constraint takes steps in proportion to the length of the segment', () => {
  const random = createRandom(seed);
  for (const { source, regexp } of constraints(random, 400)) {
    const ast = parseRegex(source);
    for (let i = 0; i < 6; i += 1) {
      const short = randomWord(random, 'ab-', 6);
      expect(countSteps(ast, short).matches, `${context(source)}, segment "${short}"`).toBe(regexp.test(short));
      const [head, pump, tail] = [
        randomWord(random, 'ab-', 3),
        randomWord(random, 'ab-', 2) || 'a',
        randomWord(random, 'ab-/', 2),
      ];
      const { length, once, doubled } = countTwice(
        ast,
        (characters) => head + pump.repeat(characters / pump.length) + tail,
      );
      const detail = `${context(source)}, segments "${head}", "${pump}" for ${length} and ${2 * length} characters, "${tail}"`;
      expect(doubled, detail).toBeLessThan(Math.min(3 * once + 100, STEP_LIMIT));
    }
  }
});

test('a constraint that takes steps out of proportion is refused', () => {
  const random = createRandom(seed);
  let refused = 0;
  for (let i = 0; i < 1_000; i += 1) {
    const source = randomSource(random, 3);
    const ast = tryParse(source);
    if (ast === null) continue;
    const worst = ['a', 'b', '-', 'ab', 'a-', 'b-'].some((pump) => {
      const [once = 0, doubled = 0] = [30, 60].map(
        (count) => countSteps(ast, `${pump.repeat(count)}/`, STEP_LIMIT).steps,
      );
      return doubled >= 3.5 * once + 100 || doubled === STEP_LIMIT;
    });
    if (!worst) continue;
    refused += 1;
    expect(() => compileConstraint(source), context(source)).toThrow(TypeError);
  }
  expect(refused).toBeGreaterThan(5);
});

function context(source: string): string {
  return `SEED=${seed}, constraint "${source}"`;
}

function tryParse(source: string): RegexNode | null {
  try {
    return parseRegex(source);
  } catch {
    return null;
  }
}

function constraints(random: Random, count: number): (Constraint & { source: string })[] {
  const found: (Constraint & { source: string })[] = [];
  while (found.length < count) {
    const source = randomSource(random, 3);
    try {
      found.push({ source, ...compileConstraint(source) });
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }
  return found;
}

/**
 * The steps for 200 and for 400 characters; for half of both where these are too many for the recursion of the model.
 */
function countTwice(
  ast: RegexNode,
  segment: (characters: number) => string,
  length = 200,
): { length: number; once: number; doubled: number } {
  const count = (characters: number): number => countSteps(ast, segment(characters), STEP_LIMIT).steps;
  try {
    return { length, once: count(length), doubled: count(2 * length) };
  } catch (error) {
    if (!(error instanceof RangeError) || length < 50) throw error;
    return countTwice(ast, segment, length / 2);
  }
}

type Continue = (at: number) => boolean;

/**
 * Matches the whole of `input` by the backtracking of ECMA-262, section 22.2.2, counting the terms it tries; gives up
 * at `limit`.
 */
function countSteps(ast: RegexNode, input: string, limit = Infinity): { matches: boolean; steps: number } {
  let steps = 0;
  const matches = run(ast, 0, (at) => at === input.length);
  return { matches, steps };

  function run(node: RegexNode, at: number, next: Continue): boolean {
    if (steps >= limit) return false;
    steps += 1;
    if ('items' in node)
      return node.type === 'alternation'
        ? node.items.some((item) => run(item, at, next))
        : sequence(node.items, 0, at, next);
    if (node.type === 'repeat') return repeat(node, 0, at, next);
    if (node.type === 'group') return run(node.body, at, next);
    return at < input.length && node.units.has(input.charCodeAt(at)) && next(at + 1);
  }

  function sequence(items: readonly RegexNode[], i: number, at: number, next: Continue): boolean {
    const item = items[i];
    return item === undefined ? next(at) : run(item, at, (end) => sequence(items, i + 1, end, next));
  }

  function repeat(node: Extract<RegexNode, { type: 'repeat' }>, turn: number, at: number, next: Continue): boolean {
    if (turn === node.max) return next(at);
    const again = (): boolean =>
      run(node.body, at, (end) => (turn < node.min || end > at) && repeat(node, turn + 1, end, next));
    if (turn < node.min) return again();
    return /.\?$/.test(node.quantifier) ? next(at) || again() : again() || next(at);
  }
}

function textsOf(node: RegexNode): { text: string; index: number }[] {
  const below = ('items' in node ? node.items : 'body' in node ? [node.body] : []).flatMap(textsOf);
  return 'text' in node ? [node, ...below] : below;
}
