/*
 * Loads a file of the package synchronously, when it is first used. The build writes the calls: in `src`, the import of
 * a namespace (`import * as constraints`) means that the file is loaded on first use.
 */

import { builtin } from './builtin.js';

/**
 * Returns a function that loads a file with its first call, and returns the exports of that file.
 *
 * @param path from `dist`, which has no folders of code
 * @param bundled returns the exports from inside a bundle: esbuild and others follow the `require` in it
 */
export function later<T>(path: string, bundled: () => T): () => T {
  let exports: T | undefined;
  return () => (exports ??= load(path, bundled));
}

function load<T>(path: string, bundled: () => T): T {
  try {
    // Node.js loads ES modules by require, too, since 20.19; an `import()` would be asynchronous.
    return builtin('node:module').createRequire(import.meta.url)(path) as T;
  } catch (error) {
    // A bundle is one file, and has no URL if it is CommonJS.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_INVALID_ARG_VALUE') throw error;
    return bundled();
  }
}
