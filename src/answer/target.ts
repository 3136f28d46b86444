/* Takes the request-target and the query apart, before any route sees them. */

import { HttpError } from '../base/errors.js';
import { HOST } from '../wire/head.js';

/** A request-target, taken apart. */
export interface Target {
  /** Percent-encoded, as sent; `*` for the asterisk-form. */
  readonly path: string;
  /** The query after the `?`; empty without one. */
  readonly search: string;
  /** Host and port of the absolute-form, which `Host` gives way to (RFC 9112, section 3.2.2). */
  readonly authority?: string;
}

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/is;

/** A segment that is `.` or `..`, with either dot as `%2e`. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * Takes a request-target apart (RFC 9112, section 3.2): origin-form, absolute-form, or `*` for OPTIONS.
 *
 * @throws {HttpError} 400 for anything else, and for a path that `URL` would read as another one
 */
export function parseTarget(target: string, method: string): Target {
  if (target.includes('#')) throw new HttpError(400, 'The request target has a fragment.');
  if (target === '*' && method === 'OPTIONS') return { path: '*', search: '' };
  if (!target.startsWith('/')) {
    const [, authority = '', rest = ''] = ABSOLUTE_FORM.exec(target) ?? [];
    if (!HOST.test(authority)) throw new HttpError(400, 'The request target is malformed.');
    return { ...parseTarget(rest.startsWith('/') ? rest : `/${rest}`, method), authority };
  }
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  if (DOT_SEGMENT.test(path)) throw new HttpError(400, 'The path has a dot segment; resolve it before sending.');
  if (path.includes('\\')) throw new HttpError(400, 'The path has a backslash; send %5C.');
  return { path, search: mark === -1 ? '' : target.slice(mark + 1) };
}

/**
 * Parses `application/x-www-form-urlencoded` text, of a query or a form.
 *
 * @throws {HttpError} `tooManyStatus` for more parameters than the limit
 */
export function parseParameters(text: string, limit: number, tooManyStatus: number): URLSearchParams {
  let count = 1;
  for (let i = text.indexOf('&'); i !== -1 && count <= limit; i = text.indexOf('&', i + 1)) count += 1;
  if (count > limit && text !== '') throw new HttpError(tooManyStatus, `There may be at most ${limit} parameters.`);
  // The constructor takes one leading `?` away, which may be part of a name; so it gets one to take.
  return new URLSearchParams(`?${text}`);
}
