/* The methods that a route can have. */

import { METHODS } from 'node:http';

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

/** @throws {TypeError} for what is none of `http.METHODS`, upper-case */
export function assertMethod(method: string): void {
  if (!KNOWN_METHODS.has(method))
    throw new TypeError(`unknown method ${JSON.stringify(method)}; use one of http.METHODS, in upper case`);
}
