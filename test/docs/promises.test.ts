/** What the last release promised is as it was, until somebody decides otherwise. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findPromises, SAVED } from '../support/promises.js';

const saved = JSON.parse(readFileSync(SAVED, 'utf8')) as Record<string, string>;
const now = findPromises();

test('no exported name, metric, log line or option of a command has changed since it was promised', () => {
  const names = new Set([...Object.keys(saved), ...Object.keys(now)]);
  const changed = [...names].filter((name) => saved[name] !== now[name]);
  expect(changed, 'if they may change: CHANGELOG.md first, then npm run promise').toEqual([]);
});

test.for(['postern: Postern', 'postern/metrics: Registry', 'metric request_count_total', 'log listening', 'postern routes'])(
  '%s is among the promises',
  (name) => expect(now).toHaveProperty([name]),
);
