/** The parser of constraints against the platform's own regular expressions. */

import { describe, expect, test } from 'vitest';
import { parseRegex } from '../../src/routing/regex-syntax.js';
import { complement, printRegex } from '../../src/routing/regex-tree.js';

const accepted = [
  '', 'a', 'abc', 'a|b', '|', 'a||b', '(a)', '(?:a)', '(?<n>a)', '(?=a)', '(?!a)', '(?<=a)', '(?<!a)', '()',
  'a*', 'a+', 'a?', 'a*?', 'a+?', 'a??', 'a{2}', 'a{2,}', 'a{2,3}', 'a{2,3}?', 'a{0}', '(?:a){1,2}',
  '^', '$', '\\b', '\\B', '(a)\\1', '\\1(a)', '(?<n>a)\\k<n>', '\\k<n>(?<n>a)', '(a)\\1+', '()()()()()()()()()(a)\\10',
  '[]', '[^]', '[a]', '[^a]', '[a-z]', '[-a]', '[a-]', '[^-]', '[a\\-z]', '[\\b]', '[\\]]', '[\\d-]', '[(*+?|]', '[[]', '[\\x41-\\u005a]', '[+-9]',
  '[\\d\\W_]', '\\0', '\\cA', '\\x41', '\\u0041', '\\t\\n\\v\\f\\r', '\\.', '\\/', '\\-', '\\{', '\\_', '\\\u00e9', '\u00e9', '\n', '.',
];

test.each(accepted)('%j is printed as it was written, and the platform accepts it', (source) => {
  expect(() => new RegExp(source, 's')).not.toThrow();
  expect(printRegex(parseRegex(source))).toBe(source);
});

const refused = [
  { source: '(a', index: 0, remedy: 'close it' },
  { source: 'a)b', index: 1, remedy: 'escape it' },
  { source: 'a[b', index: 1, remedy: 'close it' },
  { source: 'a[b\\', index: 3, remedy: 'write the character itself' },
  { source: 'a]', index: 1, remedy: 'escape it' },
  { source: 'a{', index: 1, remedy: 'escape it' },
  { source: 'a{,2}', index: 1, remedy: 'escape it' },
  { source: 'a}', index: 1, remedy: 'escape it' },
  { source: '*a', index: 0, remedy: 'escape it' },
  { source: 'a|+', index: 2, remedy: 'escape it' },
  { source: 'a**', index: 2, remedy: 'escape it' },
  { source: 'a{2}{3}', index: 4, remedy: 'escape it' },
  { source: 'a{3,2}', index: 0, remedy: 'smaller number first' },
  { source: 'b(?=a)*', index: 1, remedy: 'remove it' },
  { source: '^+', index: 0, remedy: 'remove it' },
  { source: '\\b?', index: 0, remedy: 'remove it' },
  { source: '(?i:a)', index: 0, remedy: 'use (' },
  { source: '(?>a)', index: 0, remedy: 'use (' },
  { source: '(?<1>a)', index: 0, remedy: 'use (' },
  { source: '(?<n>a)|(?<n>b)', index: 8, remedy: 'rename one' },
  { source: '[z-a]', index: 1, remedy: 'smaller character first' },
  { source: '[a-\\d]', index: 1, remedy: 'escape the hyphen' },
  { source: '[\\w-z]', index: 1, remedy: 'escape the hyphen' },
  { source: '\\p{L}', index: 0, remedy: 'write the character itself' },
  { source: '\\a', index: 0, remedy: 'write the character itself' },
  { source: '[\\B]', index: 1, remedy: 'write the character itself' },
  { source: 'a\\', index: 1, remedy: 'write the character itself' },
  { source: '\\x4', index: 0, remedy: '\\xHH' },
  { source: '\\u{41}', index: 0, remedy: '\\xHH' },
  { source: '\\c1', index: 0, remedy: '\\xHH' },
  { source: '\\01', index: 0, remedy: '\\xHH' },
  { source: '[\\1]', index: 1, remedy: '\\xHH' },
  { source: '\\1', index: 0, remedy: 'refer to a group' },
  { source: '(a)\\2', index: 3, remedy: 'refer to a group' },
  { source: '(?<n>a)\\k<m>', index: 7, remedy: 'refer to a group' },
  { source: '(a)\\k<1>', index: 3, remedy: 'write the character itself' },
  { source: '('.repeat(200) + ')'.repeat(200), index: 100, remedy: 'simplify it' },
];

test.each(refused)('$source is refused with its position and a remedy', ({ source, index, remedy }) => {
  const parse = () => parseRegex(source);
  expect(parse).toThrow(TypeError);
  expect(parse).toThrow(`index ${index} of constraint "${source}"`);
  expect(parse).toThrow(remedy);
});

describe('one character', () => {
  const atoms = [
    'a', '.', '\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '\\0', '\\t', '\\v', '\\cJ', '\\cz', '\\x2f', '\\u2028', '\\-', '\\/', '\u00e9', '[]', '[^]', '[\\b]', '[^\\d-]',
    '[a-f0-9]', '[^a-f]', '[\\D5]', '[^\\W]', '[\\s\\S]', '[+-9]', '[-a]', '[a-]', '[\\w\\-]', '[^^]', '[\\x00-\\x1f]',
  ];

  test.each(atoms)('%s is read as the platform reads it, for every UTF-16 unit', (source) => {
    const node = parseRegex(source);
    if (node.type !== 'characters') throw new Error(`${source} is a ${node.type}`);
    const regexp = new RegExp(`^${source}$`, 's');
    for (let unit = 0; unit <= 0xffff; unit += 1) {
      const inRanges = node.ranges.some(([low, high]) => low <= unit && unit <= high);
      if ((inRanges !== node.negated) !== regexp.test(String.fromCharCode(unit))) expect.fail(`U+${unit.toString(16)}`);
    }
  });
});

test('a tree has what the source says', () => {
  expect(parseRegex('(?<n>a){2,}?|\\k<n>')).toEqual({
    type: 'alternation',
    items: [
      {
        type: 'repeat',
        body: { type: 'group', open: '(?<n>', capture: 1, body: { type: 'characters', raw: 'a', index: 5, ranges: [[97, 97]], negated: false } },
        min: 2,
        max: Infinity,
        raw: '{2,}?',
        index: 0,
      },
      { type: 'backreference', raw: '\\k<n>', group: 1 },
    ],
  });
});

test('a complement is sorted, and complete with what it is of', () => {
  expect(complement([])).toEqual([[0, 0xffff]]);
  expect(complement([[0, 0xffff]])).toEqual([]);
  expect(complement([[5, 9], [0, 2], [7, 12], [4, 4]])).toEqual([[3, 3], [13, 0xffff]]);
});
