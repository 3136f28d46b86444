/** Fails the test in which an error escaped: a rejection that nobody handled, or an exception that nobody caught. */

import { setImmediate as turn } from 'node:timers';
import { afterEach, expect } from 'vitest';

const escaped: unknown[] = [];
for (const event of ['unhandledRejection', 'uncaughtException'])
  process.on(event, (error: unknown) => void escaped.push(error));

afterEach(async () => {
  // Rejections are reported when the turn of the event loop ends.
  await new Promise((resolve) => turn(resolve));
  expect(escaped.splice(0), 'errors that nobody handled').toEqual([]);
});
