/** Paths of calls that are put together from values. */

import { expect, test } from 'vitest';
import { path } from 'postern';

test.for([
  { value: '7', encoded: '7' },
  { value: 7, encoded: '7' },
  { value: 7n, encoded: '7' },
  { value: '7/refund', encoded: '7%2Frefund' },
  { value: '../admin', encoded: '..%2Fadmin' },
  { value: '7?force=1#x', encoded: '7%3Fforce%3D1%23x' },
  { value: '50%', encoded: '50%25' },
  { value: 'a b é', encoded: 'a%20b%20%C3%A9' },
  { value: '\\\r\n', encoded: '%5C%0D%0A' },
])('$value stays inside its segment', ({ value, encoded }) => {
  expect(path`/invoices/${value}/lines`).toBe(`/invoices/${encoded}/lines`);
});

test.for(['', '.', '..'])('%j is refused: it would be another path', (value) => {
  expect(() => path`/invoices/${value}`).toThrow(TypeError);
  expect(() => path`/invoices/${value}/lines`).toThrow(TypeError);
});

test('several values, and none, make a path', () => {
  expect(path`/a/${'x/y'}/b/${2}?q=${'1&2'}`).toBe('/a/x%2Fy/b/2?q=1%262');
  expect(path`/a`).toBe('/a');
  expect(path`/files/${'a'}.${'b'}`).toBe('/files/a.b');
});
