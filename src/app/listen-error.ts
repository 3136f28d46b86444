/* Says why a server cannot listen, and what to change. */

import type { ListenOptions } from './address.js';

/** @param from where the port came from, for the message: `the option port` */
export function toListenError(error: unknown, { port, host }: ListenOptions, from: string): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error;
  const interfaces = host === undefined ? 'all interfaces' : JSON.stringify(host);
  const origin = `port ${String(port)} (${from}) on ${interfaces}`;
  const remedies: Readonly<Record<string, string>> = {
    EADDRINUSE: `${origin} is in use; end the process that has it, or choose another port (0 picks a free one)`,
    EACCES: `${origin} needs rights that this process lacks; choose a port from 1024 on`,
    EADDRNOTAVAIL: `${origin}: the host is not an address of this machine; choose one of these, or leave host out`,
    ENOTFOUND: `${origin}: the host has no address; check its spelling, or leave host out`,
  };
  const message = Object.hasOwn(remedies, String(error.code)) ? remedies[String(error.code)] : undefined;
  if (message === undefined) return error;
  return Object.assign(new Error(`cannot listen: ${message}`, { cause: error }), { code: error.code });
}
