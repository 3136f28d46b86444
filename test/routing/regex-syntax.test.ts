/** The syntax of constraints, and the parser of the tests, against the platform's own regular expressions. */

import { describe, expect, test } from 'vitest';
import { compileConstraint } from '../../src/endpoint/constraint.js';
import { parseRegex, type RegexNode } from '../support/regex-syntax.js';

const accepted = [
  '', 'a', 'abc', 'a|b', '|', 'a||b', '(a)', '(?:a)', '()',
  'a*', 'a+', 'a?', 'a*?', 'a+?', 'a??', 'a{2}', 'a{2,}', 'a{2,3}', 'a{2,3}?', 'a{0}', '(?:a){1,2}',
  '[]', '[^]', '[a]', '[^a]', '[a-z]', '[-a]', '[a-]', '[^-]', '[a\\-z]', '[\\b]', '[\\]]', '[\\d-]', '[a-\\d]',
  '[\\w-z]', '[(*+?|]', '[[]', '[\\x41-\\u005a]', '[+-9]',
  '[\\d\\W_]', '\\0', '\\cA', '\\x41', '\\u0041', '\\t\\n\\v\\f\\r', '\\.', '\\/', '\\-', '\\{', '\\_', '\\\u00e9',
  '\u00e9', '\n', '.',
];

test.each(accepted)('%j is accepted, by the platform too', (source) => {
  expect(() => new RegExp(source, 's')).not.toThrow();
  expect(() => parseRegex(source)).not.toThrow();
  let message = '';
  try {
    compileConstraint(source);
  } catch (error) {
    message = String(error);
  }
  expect(message).toMatch(/^$|empty constraint|matches no segment|never matches/);
});

const refused = [
  { source: '(a', index: 0, remedy: 'close it' },
  { source: 'a)b', index: 1, remedy: 'escape it' },
  { source: 'a[b', index: 1, remedy: 'close it' },
  { source: 'a[b\\', index: 1, remedy: 'close it' },
  { source: 'a\\k', index: 1, remedy: 'write the character itself' },
  { source: 'a]', index: 1, remedy: 'escape it' },
  { source: 'a{', index: 1, remedy: 'escape it' },
  { source: 'a{,2}', index: 1, remedy: 'escape it' },
  { source: 'a}', index: 1, remedy: 'escape it' },
  { source: '*a', index: 0, remedy: 'escape it' },
  { source: 'a|+', index: 2, remedy: 'escape it' },
  { source: 'a**', index: 2, remedy: 'escape it' },
  { source: 'a{2}{3}', index: 4, remedy: 'escape it' },
  { source: 'a{3,2}', index: 0, remedy: 'smaller number first' },
  { source: '(?i:a)', index: 0, remedy: 'use (' },
  { source: '(?>a)', index: 0, remedy: 'use (' },
  { source: 'x[z-a]', index: 1, remedy: 'smaller character first' },
  { source: '\\p{L}', index: 0, remedy: 'write the character itself' },
  { source: '\\a', index: 0, remedy: 'write the character itself' },
  { source: '[\\B]', index: 0, remedy: 'write the character itself' },
  { source: 'a\\', index: 1, remedy: 'write the character itself' },
  { source: '\\x4', index: 0, remedy: '\\xHH' },
  { source: '\\u{41}', index: 0, remedy: '\\xHH' },
  { source: '\\c1', index: 0, remedy: '\\xHH' },
  { source: '\\01', index: 0, remedy: '\\xHH' },
  { source: '[\\1]', index: 0, remedy: '\\xHH' },
];

test.each(refused)('$source is refused with its position and a remedy', ({ source, index, remedy }) => {
  expect(() => parseRegex(source)).toThrow(TypeError);
  const parse = () => compileConstraint(source);
  expect(parse).toThrow(TypeError);
  expect(parse).toThrow(`index ${index} of constraint "${source}"`);
  expect(parse).toThrow(remedy);
});

describe('sets of characters', () => {
  const atoms = [
    'a', '.', '\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '\\0', '\\t', '\\v', '\\cJ', '\\cz', '\\x2f', '\\u2028', '\\-',
    '\\/', '\u00e9', '[]', '[^]', '[\\b]', '[^\\d-]',
    '[a-f0-9]', '[^a-f]', '[\\D5]', '[^\\W]', '[+-9]', '[-a]', '[\\w\\-]', '[^^]', '[\\x00-\\x1f]', '[\u0400-\u04ff]',
    '[\\u04ff-\\u2008]', '\uffff', '\ud83d', '[\ud800-\udbff]',
  ];

  // The sample of each pair differs, since its expression does.
  test.each(atoms)('%j shares a unit of the sample with another set exactly when they share a unit', (atom) => {
    const units = unitsOf(atom);
    for (const other of atoms) {
      const [left, right] = itemsOf(parseRegex(`${atom}${other}`));
      const others = unitsOf(other);
      const shared = [...units].some((unit) => others.has(unit));
      expect([...left].some((unit) => right.has(unit)), `${atom} and ${other}`).toBe(shared);
    }
  });

  const known = new Map<string, ReadonlySet<number>>();
  function unitsOf(atom: string): ReadonlySet<number> {
    const regexp = new RegExp(`^${atom}$`, 's');
    const all = (): Set<number> =>
      new Set(
        Array.from({ length: 0x10000 }, (_, unit) => unit).filter((unit) => regexp.test(String.fromCharCode(unit))),
      );
    const units = known.get(atom) ?? all();
    known.set(atom, units);
    return units;
  }

  function itemsOf(node: RegexNode): [ReadonlySet<number>, ReadonlySet<number>] {
    const [left, right] = 'items' in node ? node.items : [];
    if (left?.type !== 'characters' || right?.type !== 'characters')
      throw new Error('not a sequence of two characters');
    return [left.units, right.units];
  }
});

test('a tree has what the source says', () => {
  const a = { type: 'characters', text: 'a', index: 3, units: new Set([97]) };
  expect(parseRegex('(?:a){2,}?|\\x62')).toEqual({
    type: 'alternation',
    items: [
      { type: 'repeat', body: { type: 'group', body: a }, min: 2, max: Infinity, quantifier: '{2,}?',
        text: '(?:a){2,}?', index: 0 },
      { type: 'characters', text: '\\x62', index: 11, units: new Set([98]) },
    ],
  });
});
