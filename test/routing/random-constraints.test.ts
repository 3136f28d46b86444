/** Random constraints: the parser against the platform, the pattern against the segment's expression, the analysis against counted steps. */

import { expect, test } from 'vitest';
import { compileConstraint, type Constraint } from '../../src/routing/constraint.js';
import { parseRegex } from '../../src/routing/regex-syntax.js';
import { printRegex, type RegexNode } from '../../src/routing/regex-tree.js';
import { randomSource, randomWord } from '../support/random-constraint.js';
import { createRandom, type Random } from '../support/random.js';

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
/** More than any constraint that is accepted takes here. */
const STEP_LIMIT = 200_000;

test('what the parser accepts is printed as it was, and is a regular expression', () => {
  const random = createRandom(seed);
  const pieces = ['a', 'b', '-', '^', '|', '(', '(?:', '(?=', '(?<!', '(?<n>', ')', ')', '[', '[^', ']', '\\', '\\d', '\\1', '\\k<n>', '\\x4', '1', '*', '+?', '{2}', '{', ',3}', '.', '$'];
  let accepted = 0;
  for (let i = 0; i < 30_000; i += 1) {
    const source = i % 2 === 0 ? randomSource(random, 3) : Array.from({ length: 1 + random.int(8) }, () => random.pick(pieces)).join('');
    let ast: RegexNode;
    try {
      ast = parseRegex(source);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      continue;
    }
    accepted += 1;
    const printed = printRegex(ast);
    if (printed !== source) expect.fail(`${context(source)} is printed as "${printed}"`);
    expect(() => new RegExp(source, 's'), context(source)).not.toThrow();
  }
  expect(accepted).toBeGreaterThan(10_000);
});

test('the pattern matches a path if, and only if, the expression matches its segment', () => {
  const random = createRandom(seed);
  for (const constraint of constraints(random, 2_000)) {
    const pattern = new RegExp(`^/(p)/${constraint.pattern(2)}/q$`);
    const last = new RegExp(`^/${constraint.pattern(1)}$`);
    const twice = new RegExp(`^/${constraint.pattern(1)}/${constraint.pattern(2 + constraint.groups)}$`);
    const check = (what: string, path: string, actual: boolean, expected: boolean): void => {
      if (actual !== expected) expect.fail(`${context(constraint.source)}: ${what} of "${path}" is ${actual}, the segments say ${expected}`);
    };
    for (let i = 0; i < 60; i += 1) {
      const [segment, other, slashed] = [randomWord(random, 'ab-', 7), randomWord(random, 'ab-', 4), randomWord(random, 'ab-/', 7)];
      const matches = segment !== '' && constraint.regexp.test(segment);
      check('pattern', `/p/${segment}/q`, pattern.test(`/p/${segment}/q`), matches);
      check('last', `/${segment}`, last.test(`/${segment}`), matches);
      check('twice', `/${segment}/${other}`, twice.test(`/${segment}/${other}`), matches && other !== '' && constraint.regexp.test(other));
      if (slashed.includes('/')) check('pattern', `/p/${slashed}/q`, pattern.test(`/p/${slashed}/q`), false);
    }
    for (const segment of ['\n', '\u2028', '\ud83d\ude00', '5', '.']) check('last', `/${segment}`, last.test(`/${segment}`), constraint.regexp.test(segment));
  }
});

test('an accepted constraint takes steps in proportion to the length of the segment', () => {
  const random = createRandom(seed);
  for (const { source, ast, regexp } of constraints(random, 1_200)) {
    for (let i = 0; i < 6; i += 1) {
      const short = randomWord(random, 'ab-', 6);
      expect(countSteps(ast, short).matches, `${context(source)}, segment "${short}"`).toBe(regexp.test(short));
      const [head, pump, tail] = [randomWord(random, 'ab-', 3), randomWord(random, 'ab-', 2) || 'a', randomWord(random, 'ab-/', 2)];
      const { length, once, doubled } = countTwice(ast, (characters) => head + pump.repeat(characters / pump.length) + tail);
      const detail = `${context(source)}, segments "${head}", "${pump}" for ${length} and ${2 * length} characters, "${tail}"`;
      expect(doubled, detail).toBeLessThan(Math.min(3 * once + 100, STEP_LIMIT));
    }
  }
});

test('a constraint that takes steps out of proportion is refused', () => {
  const random = createRandom(seed);
  let refused = 0;
  for (let i = 0; i < 3_000; i += 1) {
    const source = randomSource(random, 3);
    const ast = tryParse(source);
    if (ast === null) continue;
    const worst = ['a', 'b', '-', 'ab', 'a-', 'b-'].some((pump) => {
      const [once = 0, doubled = 0] = [30, 60].map((count) => countSteps(ast, `${pump.repeat(count)}/`, STEP_LIMIT).steps);
      return doubled >= 3.5 * once + 100 || doubled === STEP_LIMIT;
    });
    if (!worst) continue;
    refused += 1;
    expect(() => compileConstraint(source), context(source)).toThrow(TypeError);
  }
  expect(refused).toBeGreaterThan(20);
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

function constraints(random: Random, count: number): Constraint[] {
  const found: Constraint[] = [];
  while (found.length < count) {
    try {
      found.push(compileConstraint(randomSource(random, 3)));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }
  return found;
}

/** The steps for 200 and for 400 characters; for half of both where these are too many for the recursion of the model. */
function countTwice(ast: RegexNode, segment: (characters: number) => string, length = 200): { length: number; once: number; doubled: number } {
  const count = (characters: number): number => countSteps(ast, segment(characters), STEP_LIMIT).steps;
  try {
    return { length, once: count(length), doubled: count(2 * length) };
  } catch (error) {
    if (!(error instanceof RangeError) || length < 50) throw error;
    return countTwice(ast, segment, length / 2);
  }
}

type Captures = readonly (string | undefined)[];
type Continue = (at: number, captures: Captures) => Captures | null;

/** Matches the whole of `input` by the backtracking of ECMA-262, section 22.2.2, counting the terms it tries; gives up at `limit`. */
function countSteps(ast: RegexNode, input: string, limit = Infinity): { matches: boolean; steps: number } {
  let steps = 0;
  const matches = run(ast, 0, [], true, (at, captures) => (at === input.length ? captures : null)) !== null;
  return { matches, steps };

  function run(node: RegexNode, at: number, captures: Captures, forward: boolean, next: Continue): Captures | null {
    if (steps >= limit) return null;
    steps += 1;
    switch (node.type) {
      case 'alternation':
        for (const item of node.items) {
          const found = run(item, at, captures, forward, next);
          if (found !== null) return found;
        }
        return null;
      case 'sequence':
        return sequence(forward ? node.items : node.items.toReversed(), 0, at, captures, forward, next);
      case 'repeat':
        return repeat(node, 0, at, captures, forward, next);
      case 'group':
        return run(node.body, at, captures, forward, (end, inner) => {
          if (node.capture === 0) return next(end, inner);
          const outer = [...inner];
          outer[node.capture] = input.slice(Math.min(at, end), Math.max(at, end));
          return next(end, outer);
        });
      case 'look': {
        const found = run(node.body, at, captures, !node.behind, (_, inner) => inner);
        if (node.open.endsWith('!')) return found === null ? next(at, captures) : null;
        return found === null ? null : next(at, found);
      }
      case 'assertion': {
        const boundary = isWord(at - 1) !== isWord(at);
        const holds = node.raw === '^' ? at === 0 : node.raw === '$' ? at === input.length : boundary === (node.raw === '\\b');
        return holds ? next(at, captures) : null;
      }
      case 'backreference': {
        const text = captures[node.group] ?? '';
        for (let i = 0; i < text.length; i += 1) {
          steps += 1;
          if ((forward ? input[at + i] : input[at - 1 - i]) !== (forward ? text[i] : text[text.length - 1 - i])) return null;
        }
        return next(forward ? at + text.length : at - text.length, captures);
      }
      case 'characters': {
        const unit = input.charCodeAt(forward ? at : at - 1);
        if (Number.isNaN(unit) || node.ranges.some(([low, high]) => low <= unit && unit <= high) === node.negated) return null;
        return next(forward ? at + 1 : at - 1, captures);
      }
    }
  }

  function sequence(items: readonly RegexNode[], i: number, at: number, captures: Captures, forward: boolean, next: Continue): Captures | null {
    const item = items[i];
    if (item === undefined) return next(at, captures);
    return run(item, at, captures, forward, (end, inner) => sequence(items, i + 1, end, inner, forward, next));
  }

  function repeat(node: Extract<RegexNode, { type: 'repeat' }>, turn: number, at: number, captures: Captures, forward: boolean, next: Continue): Captures | null {
    if (turn === node.max) return next(at, captures);
    const again = (): Captures | null => {
      const cleared = captures.map((text, group) => (groupsOf(node.body).has(group) ? undefined : text));
      return run(node.body, at, cleared, forward, (end, inner) => (turn >= node.min && end === at ? null : repeat(node, turn + 1, end, inner, forward, next)));
    };
    if (turn < node.min) return again();
    return node.raw.length > 1 && node.raw.endsWith('?') ? (next(at, captures) ?? again()) : (again() ?? next(at, captures));
  }

  function isWord(at: number): boolean {
    return /^\w$/.test(input[at] ?? '');
  }
}

function groupsOf(node: RegexNode, found: Set<number> = new Set()): Set<number> {
  if (node.type === 'group' && node.capture > 0) found.add(node.capture);
  if ('items' in node) for (const item of node.items) groupsOf(item, found);
  else if ('body' in node) groupsOf(node.body, found);
  return found;
}
