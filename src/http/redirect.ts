/* Replies that send a client elsewhere (RFC 9110, section 15.4). */

import { reply, type Reply } from './reply.js';

/** 307 and 308 keep method and body; 303 makes a GET of it; 301 and 302 do either. */
export type RedirectStatus = 301 | 302 | 303 | 307 | 308;

const STATUSES: readonly number[] = [301, 302, 303, 307, 308] satisfies RedirectStatus[];
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const SCHEME = /^ *[a-z][a-z0-9+.-]*:/i;
/** Bases to resolve a text against, as browsers do. Two, because a text may name the host of one: `//a.invalid/x`. */
const SITES = ['http://a.invalid', 'http://b.invalid'];

/**
 * A redirect to a path of this site, or by `URL` to anywhere: `redirect('/login')`, `redirect(new URL(partner), 303)`.
 *
 * A text never leads to another site, so that one from a request (`?next=//evil.example`) can't.
 *
 * @throws {TypeError} for a text that leads off this site (`//host`, `/\host`, a scheme), or has a control character
 * @throws {RangeError} for a status that is not a redirect
 *
 * @example
 * app.get('/old', () => redirect('/new', 301));
 */
export function redirect<Status extends RedirectStatus = 302>(
  location: string | URL,
  status: Status = 302 as Status,
): Reply<undefined, Status> {
  if (!STATUSES.includes(status)) {
    throw new RangeError(`${String(status)} is not a redirect; use one of ${STATUSES.join(', ')}`);
  }
  const target = location instanceof URL ? location.href : pathOf(location);
  return reply(undefined, { status, headers: { location: target } });
}

function pathOf(location: unknown): string {
  if (typeof location !== 'string' || location === '')
    throw new TypeError(`a redirect to ${JSON.stringify(location)} leads nowhere; give a path, or a URL object`);
  const isHere = SITES.every((site) => URL.canParse(location, site) && new URL(location, site).origin === site);
  if (CONTROL.test(location) || SCHEME.test(location) || !isHere)
    throw new TypeError(`a redirect to ${JSON.stringify(location)} could leave this site; give a URL object for that`);
  return location.toWellFormed().replace(/[^!-~]+/g, encodeURIComponent);
}
