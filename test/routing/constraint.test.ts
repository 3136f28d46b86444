/** Constraints: what stands in the route's pattern, and what is refused. */

import { expect, test } from 'vitest';
import { compileConstraint } from '../../src/routing/constraint.js';

const patterns = [
  { source: '\\d+', pattern: '(\\d+)' },
  { source: 'jpg|png|gif', pattern: '(jpg|png|gif)' },
  { source: '.+', pattern: '([^/]+)' },
  { source: '.+\\.png', pattern: '([^/]+\\.png)' },
  { source: '[^x]+', pattern: '([^/x]+)' },
  { source: '[^/x]+', pattern: '([^/x]+)' },
  { source: '[^-x]', pattern: '([^/\\-x])' },
  { source: '[^--x]', pattern: '([^--x])' },
  { source: '[^-+]', pattern: '([^/\\-+])' },
  { source: '[^]', pattern: '([^/])' },
  { source: '\\D', pattern: '([^/\\d])' },
  { source: '\\W', pattern: '([^/\\w])' },
  { source: '\\S', pattern: '([^/\\s])' },
  { source: '[\\Dx]', pattern: '([^0-9/])' },
  { source: '[+-9]+', pattern: '([+-.0-9]+)' },
  { source: '[ -~]+', pattern: '([\\u0020-.0-~]+)' },
  { source: '[^+-9]', pattern: '([^+-9])' },
  { source: '^a$', pattern: '((?<![^/])a(?![^/]))' },
  { source: '(?!me$)\\w+', pattern: '((?!me(?![^/]))\\w+)' },
  { source: '(?!.*x)\\w+', pattern: '((?![^/]*x)\\w+)' },
  { source: '(a)(?<n>b)', pattern: '((?:a)(?:b))' },
  { source: '.*', pattern: '((?=[^/])[^/]*)' },
  { source: 'a|b*', pattern: '((?=[^/])(?:a|b*))' },
];

test.each(patterns)('$source stands in the pattern as $pattern', ({ source, pattern }) => {
  const constraint = compileConstraint(source);
  expect(constraint.pattern(1)).toBe(pattern);
  expect(constraint.groups).toBe(0);
  expect(constraint.source).toBe(source);
});

const references = [
  { source: '(\\w)-\\1', first: '((\\w)-\\2)', fourth: '((\\w)-\\5)', groups: 1 },
  { source: '(a)(?<n>b)\\k<n>', first: '((?:a)(b)\\2)', fourth: '((?:a)(b)\\5)', groups: 1 },
  { source: '(?<y>a)(b)(?<x>c)(\\k<x>|\\1)', first: '((a)(?:b)(c)(?:\\3|\\2))', fourth: '((a)(?:b)(c)(?:\\6|\\5))', groups: 2 },
  { source: '(a)\\k<n>0(?<n>b)', first: '((?:a)\\2(?:)0(b))', fourth: '((?:a)\\5(?:)0(b))', groups: 1 },
];

test.each(references)('$source keeps the groups it refers to, and numbers them', ({ source, first, fourth, groups }) => {
  const constraint = compileConstraint(source);
  expect(constraint.pattern(1)).toBe(first);
  expect(constraint.pattern(4)).toBe(fourth);
  expect(constraint.groups).toBe(groups);
});

test('a backreference in the second parameter of a pattern refers to its own group', () => {
  const constraint = compileConstraint('(\\w)-\\1');
  const pattern = new RegExp(`^/${constraint.pattern(1)}/${constraint.pattern(3)}$`);
  expect(pattern.exec('/a-a/b-b')?.slice(1)).toEqual(['a-a', 'a', 'b-b', 'b']);
  expect(pattern.test('/a-a/b-a')).toBe(false);
});

test('the expression tests a whole segment', () => {
  const { regexp } = compileConstraint('a|b.');
  expect(['a', 'b\n', 'ab', 'xa', 'bc'].filter((segment) => regexp.test(segment))).toEqual(['a', 'b\n', 'bc']);
});

const unmatchable = ['', '()', '(?:)', '(?=a)', '\\b', '^$', 'a{0}', '[]', '|'];
test.each(unmatchable)('(%s), which matches no segment, is refused', (source) => {
  expect(() => compileConstraint(source)).toThrow(/^(?:empty constraint|constraint ".*" matches no segment)/);
});

const slashes = [
  { source: 'a/b', index: 1 },
  { source: 'a\\/b', index: 1 },
  { source: '\\x2f', index: 0 },
  { source: '[\\w/]+', index: 0 },
  { source: 'a(?!b/)\\w', index: 5 },
];
test.each(slashes)('the slash in $source is refused', ({ source, index }) => {
  expect(() => compileConstraint(source)).toThrow(`"/" at index ${index} of constraint "${source}"`);
});

const linear = [
  '\\d+', '[a-z0-9]+(?:-[a-z0-9]+)*', '\\d+(\\.\\d+)*', 'v\\d+(?:\\.\\d+)?', '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'jpg|png|gif',
  '.+\\.png', '[A-Z]{2}\\d{4}', '\\d{4}-\\d{2}-\\d{2}', '[\\w.]+@[\\w-]+\\.com', '(?!me$)[a-z]+', '(\\w)-\\1', '[A-Za-z][A-Za-z0-9_-]{0,62}', '.*', '\\w+',
  '[^.]+\\.[^.]+', '(?:en|de)(?:-[A-Z]{2})?', '[^.]+\\..+', '(?=.+\\..).+', '(?=.*x).*', '(?=.*[a-z])(?=.*\\d).{8,64}', '.+(?<!\\.png)', '(?:(?!--)[a-z-])+',
  '(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}', '\\d{1,3}(?:\\.\\d{1,3}){3}', 'a?a?a?', '.*a.{10}', '[a-z]{0,5000}', '(?:a|b|)c',
  Array.from({ length: 300 }, (_, i) => `item-${i}`).join('|'),
  `(?:${Array.from({ length: 300 }, (_, i) => `item-${i}`).join('|')})(?:-x)?`,
];
test.each(linear)('%s is accepted', (source) => {
  expect(() => compileConstraint(source)).not.toThrow();
});

const ambiguous = [
  '(a+)+', '([a-zA-Z]+)*', '(a|aa)+', '(a|a?)+', '(.*a){12}', '(\\d+)*x', '(x+x+)+y', '^(\\d+)+$', '(a*)*', '(?:\\w+\\s?)*', '(a?){30}a{30}', '(.*)*',
  '(?:a{1,30}){1,30}', '(\\w+\\d+)+', '(\\w|\\d)+', '(a*b*)*', '(a|a)*', '\\d+\\d+', '.*a.*b.*', '\\w+\\d+x', '.+\\..+', '.*.*', '\\d{1,30}\\d{1,30}\\d{1,30}\\d{1,30}x',
  'a?'.repeat(30), '(?:a|a)'.repeat(30), `a${'(?:|)'.repeat(30)}`, `a${'(?:|)'.repeat(30)}b`, '(?:(?:|)a)*b', '(?:a|)*', '(?:a?){3}', '.*a{60000}',
  '(a+)\\1', '(a)\\1*', '\\w+(?=.*x)', '\\w+(?!.*x)', '(?:(?=.*x)a)*', '(?=(?:a+)+b)a', '.+(?<=a.*)', '(?:abc)+(?<=x(?:abc)+)', '(?<=(?:a|aa)+)b', '.+(?<=(?=.*x)a)', '(?<=[](?:a|a){30})b',
];
test.each(ambiguous)('%s is refused', (source) => {
  const compile = () => compileConstraint(source);
  expect(compile).toThrow(TypeError);
  expect(compile).toThrow(`constraint "${source}"`);
});

test('the refusal names the part and the remedy', () => {
  expect(() => compileConstraint('v\\d+\\d+')).toThrow(
    'constraint "v\\d+\\d+" can read the same text in too many ways, at "\\d+" (index 4); leave one way: no repeat inside or next to a repeat of the same characters, as in [a-z]+(?:-[a-z]+)* or (?=.*x).+',
  );
  expect(() => compileConstraint('x(a*)*')).toThrow('constraint "x(a*)*" repeats what may match nothing, at "(a*)*" (index 1); let each turn take a character');
});
