/*
 * Modules of Node.js that are loaded where they are first needed: a service that makes no request id, calls nobody by
 * TLS and is not scraped needs none of them, and all together they cost some 3 MB.
 *
 * An `import` at the top of a file would load them with the package, and a dynamic one would make whatever needs them
 * asynchronous. Source: Node.js documentation, "process.getBuiltinModule(id)".
 */

/** Modules that were needed so far: `getBuiltinModule` checks and looks up a module anew with each call. */
const loaded = new Map<string, object | undefined>();

/** `builtin('node:os').totalmem()` */
export const builtin: typeof process.getBuiltinModule = (id: string) => {
  let module = loaded.get(id);
  if (module === undefined) loaded.set(id, (module = process.getBuiltinModule(id)));
  return module;
};
