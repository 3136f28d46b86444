/** Constraints: what stands in the route's pattern, and what is refused. */

import { expect, test } from 'vitest';
import { compileConstraint } from '../../src/endpoint/constraint.js';

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
  { source: '[\\Dx]', pattern: '((?:(?!/)[\\Dx]))' },
  { source: '[+-9]+', pattern: '((?:(?!/)[+-9])+)' },
  { source: '[ -~]{2,}?', pattern: '((?:(?!/)[ -~]){2,}?)' },
  { source: '[^+-9]', pattern: '([^+-9])' },
  { source: '(a)(?:b)', pattern: '((?:a)(?:b))' },
  { source: '.*', pattern: '((?=[^/])[^/]*)' },
  { source: 'a|b*', pattern: '((?=[^/])(?:a|b*))' },
];

test.each(patterns)('$source stands in the pattern as $pattern', ({ source, pattern }) => {
  expect(compileConstraint(source).pattern).toBe(pattern);
});

const WHOLE = 'remove it: a constraint always matches a whole segment';
const EXCEPTION = 'register the exception as a route of its own, or check the value in the handler';
const notRegular = [
  { source: '^a$', at: 'anchor "^" at index 0', remedy: WHOLE },
  { source: 'ab$', at: 'anchor "$" at index 2', remedy: WHOLE },
  { source: 'a\\b', at: 'anchor "\\b" at index 1', remedy: 'write the characters that may come before and after it' },
  { source: '\\Ba', at: 'anchor "\\B" at index 0', remedy: 'write the characters that may come before and after it' },
  { source: '(?!me)\\w+', at: 'lookaround "(?!" at index 0', remedy: EXCEPTION },
  { source: '(?=.*x).+', at: 'lookaround "(?=" at index 0', remedy: EXCEPTION },
  { source: '.+(?<!\\.png)', at: 'lookaround "(?<!" at index 2', remedy: EXCEPTION },
  { source: 'a(?<=a)', at: 'lookaround "(?<=" at index 1', remedy: EXCEPTION },
  { source: '(\\w)-\\1', at: 'backreference "\\1" at index 5', remedy: 'compare the parts in the handler' },
  { source: '\\k<n>', at: 'backreference "\\k<n>" at index 0', remedy: 'compare the parts in the handler' },
  { source: '(?<year>\\d{4})', at: 'named group "(?<year>" at index 0',
    remedy: 'write (?:x): only the parameter has a name' },
  { source: '(?i:a)', at: 'unknown kind of group "(?" at index 0', remedy: 'use (x) or (?:x)' },
];
test.each(notRegular)('$source is refused, with what to write instead', ({ source, at, remedy }) => {
  expect(() => compileConstraint(source)).toThrow(new TypeError(`${at} of constraint "${source}"; ${remedy}`));
});

test('the expression tests a whole segment', () => {
  const { regexp } = compileConstraint('a|b.');
  expect(['a', 'b\n', 'ab', 'xa', 'bc'].filter((segment) => regexp.test(segment))).toEqual(['a', 'b\n', 'bc']);
});

const unmatchable = ['', '()', '(?:)', 'a{0}', '[]', '|'];
test.each(unmatchable)('(%s), which matches no segment, is refused', (source) => {
  expect(() => compileConstraint(source)).toThrow(/^(?:empty constraint|constraint ".*" matches no segment)/);
});

const slashes = [
  { source: 'a/b', index: 1 },
  { source: 'a\\/b', index: 1 },
  { source: '\\x2f', index: 0 },
  { source: '[\\w/]+', index: 0 },
  { source: 'a(?:\\u002F)', index: 4 },
];
test.each(slashes)('the slash in $source is refused', ({ source, index }) => {
  expect(() => compileConstraint(source)).toThrow(`"/" at index ${index} of constraint "${source}"`);
});

const linear = [
  '\\d+', '[a-z0-9]+(?:-[a-z0-9]+)*', '\\d+(\\.\\d+)*', 'v\\d+(?:\\.\\d+)?',
  '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'jpg|png|gif',
  '.+\\.png', '[A-Z]{2}\\d{4}', '\\d{4}-\\d{2}-\\d{2}', '[\\w.]+@[\\w-]+\\.com', '[A-Za-z][A-Za-z0-9_-]{0,62}', '.*',
  '\\w+',
  '[^.]+\\.[^.]+', '(?:en|de)(?:-[A-Z]{2})?', '[^.]+\\..+', 
  '\\d{1,3}(?:\\.\\d{1,3}){3}', 'a?a?a?', '.*a.{10}',
  '[a-z]{0,5000}', '(?:a|b|)c',
  Array.from({ length: 300 }, (_, i) => `item-${i}`).join('|'),
  `(?:${Array.from({ length: 300 }, (_, i) => `item-${i}`).join('|')})(?:-x)?`,
];
test.each(linear)('%s is accepted', (source) => {
  expect(() => compileConstraint(source)).not.toThrow();
});

const ambiguous = [
  '(a+)+', '([a-zA-Z]+)*', '(a|aa)+', '(a|a?)+', '(.*a){12}', '(\\d+)*x', '(x+x+)+y', '(a*)*', '(?:\\w+\\s?)*',
  '(a?){30}a{30}', '(.*)*',
  '(?:a{1,30}){1,30}', '(\\w+\\d+)+', '(\\w|\\d)+', '(a*b*)*', '(a|a)*', '\\d+\\d+', '.*a.*b.*', '\\w+\\d+x', '.+\\..+',
  '.*.*', '\\d{1,30}\\d{1,30}\\d{1,30}\\d{1,30}x',
  'a?'.repeat(30), '(?:a|a)'.repeat(30), `a${'(?:|)'.repeat(30)}`, `a${'(?:|)'.repeat(30)}b`, '(?:(?:|)a)*b', '(?:a|)*',
  '(?:a?){3}', '.*a{60000}', '(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}', '(?:a{1,3}b?){2,}',
];
test.each(ambiguous)('%s is refused', (source) => {
  const compile = () => compileConstraint(source);
  expect(compile).toThrow(TypeError);
  expect(compile).toThrow(`constraint "${source}"`);
});

test('the refusal names the part and the remedy', () => {
  expect(() => compileConstraint('v\\d+\\d+')).toThrow(
    'constraint "v\\d+\\d+" can read the same text in too many ways, at "\\d+" (index 4); leave one way: no repeat inside or next to a repeat of the same characters, as in [a-z]+(?:-[a-z]+)*',
  );
  expect(() => compileConstraint('x(a*)*')).toThrow(
    'constraint "x(a*)*" repeats what may match nothing, at "(a*)*" (index 1); let each turn take a character',
  );
});
