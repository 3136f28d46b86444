/* Reads what an earlier call of the command printed, for `--check`. */

import { readFileSync } from 'node:fs';
import { messageOf } from './output.js';

/**
 * @param read undefined for anything but what is looked for
 * @param what it is, and `call` what prints it
 * @throws {Error} when the file can't be read, or holds something else
 */
export function readSaved<T>(file: string, read: (value: unknown) => T | undefined, what: string, call: string): T {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file} can't be read: ${messageOf(error)}`, { cause: error });
  }
  const saved = read(value);
  if (saved === undefined) throw new Error(`${file} is no ${what}; make one with postern ${call}`);
  return saved;
}
