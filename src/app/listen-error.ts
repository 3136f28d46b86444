/* Says why a server cannot listen, and what to change. */

import type { Where } from './address.js';

/** @param from where the port came from, for the message: `the option port` */
export function toListenError(error: unknown, { port, host, path, fd }: Where, from: string): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error;
  const interfaces = host === undefined ? 'all interfaces' : JSON.stringify(host);
  let origin = `port ${String(port)} (${from}) on ${interfaces}`;
  let elsewhere = 'choose another port (0 picks a free one)';
  let permitted = 'choose a port from 1024 on';
  if (path !== undefined) {
    origin = `path ${JSON.stringify(path)}`;
    elsewhere = 'remove the file if there is none';
    // Also if the directory does not exist: libuv reports EACCES for it.
    permitted = 'choose a directory that it may write to';
  }
  const remedies: Readonly<Record<string, string>> = {
    EADDRINUSE: `${origin} is in use; end the process that has it, or ${elsewhere}`,
    EACCES: `${origin} needs rights that this process lacks; ${permitted}`,
    EADDRNOTAVAIL: `${origin}: the host is not an address of this machine; choose one of these, or leave host out`,
    ENOTFOUND: `${origin}: the host has no address; check its spelling, or leave host out`,
  };
  const code = String(error.code);
  const known = Object.hasOwn(remedies, code) ? remedies[code] : undefined;
  const message = fd === undefined ? known : `file descriptor ${fd} is not a socket; the first one of systemd is 3`;
  if (message === undefined) return error;
  return Object.assign(new Error(`cannot listen: ${message}`, { cause: error }), { code: error.code });
}
