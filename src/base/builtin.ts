/** Loads modules of Node.js where they are first needed. */

/**
 * `builtin('node:os').totalmem()`: the modules that a service may never need would cost some 3 MB at its start.
 *
 * `node:http` is never imported: from Node.js 22 on, an import evaluates its `WebSocket` and with it all of undici,
 * TLS and HTTP/2, which costs each start 30 to 40 ms of CPU and 10 MiB.
 */
export const builtin: typeof process.getBuiltinModule = process.getBuiltinModule;
