/*
 * Requests from the public, which only public routes answer: those with the header `x-postern-scope`, whatever its
 * value, and all requests of a server with `scope: 'public'`.
 */

import type { IncomingMessage, Server } from 'node:http';
import { oneOf, type Kinds } from '../base/options-check.js';
import { MESH_HEADERS } from '../propagation/mesh-headers.js';
import { guardUpgrades } from './node-internals.js';

/** Who sent a request; undefined for a client that may reach every route. */
export type Scope = 'public' | undefined;

/** The scope of a server's requests. */
export interface ScopeOptions {
  /** `'public'` treats every request as one from the public. Default: only requests with `x-postern-scope`. */
  scope?: Scope | undefined;
}

export const SCOPE: Kinds<ScopeOptions> = { scope: oneOf(['public']) };

export const SCOPE_HEADER = 'x-postern-scope';

/** Reads the scope of a request. */
export function scopeOf({ headers }: IncomingMessage): Scope {
  return headers[SCOPE_HEADER] === undefined ? undefined : 'public';
}

/** Treats a request as one from the public, and removes the headers that the public must not set. */
export function enterPublicScope({ headers }: IncomingMessage): void {
  headers[SCOPE_HEADER] = 'public';
  for (const name of MESH_HEADERS) delete headers[name];
}

/** Treats every request of a server as public, except requests of `app.request`. */
export function makePublic(server: Server): void {
  const enter = (req: IncomingMessage): void => {
    if (!('isInMemory' in req.socket)) enterPublicScope(req);
  };
  for (const event of ['request', 'checkContinue', 'checkExpectation'] as const) server.prependListener(event, enter);
  guardUpgrades(server, (req, proceed) => {
    enter(req);
    proceed();
  });
}
