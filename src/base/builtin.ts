/* Loads modules of Node.js, and files of this package, synchronously where they are first needed. */

/**
 * `builtin('node:os').totalmem()`: the modules that a service may never need would cost some 3 MB at its start.
 *
 * `node:http` is never imported: from Node.js 22 on, an import evaluates its `WebSocket` and with it all of undici,
 * TLS and HTTP/2, which costs each start 30 to 40 ms of CPU and 10 MiB.
 */
export const builtin: typeof process.getBuiltinModule = process.getBuiltinModule;

/**
 * Returns a function that loads a file with its first call, and returns the exports of that file. The build makes such
 * a function of each import of a namespace (`import * as constraintSyntax`).
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
