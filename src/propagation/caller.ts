/* The name of the service that sends a request: the header `user-agent` of calls, written and read. */

import { FRAMEWORK_VERSION } from '../base/version.js';

/** The service that sent a request, by its own account. */
export interface Caller {
  /** The name of its application. */
  readonly name: string;
  /** The version of its application. */
  readonly version: string;
}

/** The maximum lengths keep a line of the log short, whatever a client sends. */
const USER_AGENT = /^([A-Za-z0-9._~-]{1,64})\/([\w.~+-]{1,128}) postern\/[\w.+-]{1,64}$/;

// ('users', '1.4.2') → "users/1.4.2 postern/1.0.0"
export function formatUserAgent({ name, version }: Caller): string {
  return `${name}/${version.replace(/[^\w.~+-]+/g, '_')} postern/${FRAMEWORK_VERSION}`;
}

/** Undefined for every client that is not a Postern service. */
export function readCaller(userAgent: string | undefined): Caller | undefined {
  const [, name, version] = USER_AGENT.exec(userAgent ?? '') ?? [];
  return name === undefined || version === undefined ? undefined : { name, version };
}
