/** Fails the test in which an error escaped: a rejection that nobody handled, or an exception that nobody caught. */

import { setImmediate as turn } from 'node:timers';
import { inspect } from 'node:util';
import { afterAll, afterEach, expect } from 'vitest';

const escaped: string[] = [];
const note = (error: unknown): void => void escaped.push(textOf(error));
const EVENTS = ['unhandledRejection', 'uncaughtException'];
for (const event of EVENTS) process.on(event, note);
// Other files may run in this process.
afterAll(() => EVENTS.forEach((event) => process.off(event, note)));

afterEach(async () => {
  // Rejections are reported when the turn of the event loop ends.
  await new Promise((resolve) => turn(resolve));
  expect(escaped.splice(0), 'errors that nobody handled').toEqual([]);
});

/** Text of an error. Reading the error can throw, and so would the report of a failed test that has the error itself. */
function textOf(error: unknown): string {
  try {
    return inspect(error);
  } catch {
    return 'a value that throws when it is read';
  }
}
