/*
 * Writes cookies as Express does (RFC 6265, section 4.1.1).
 *
 * Source: Express 5 documentation, "res.cookie"; cookie 0.7, which Express uses.
 */

import { Date } from '../base/clock.js';
import { builtin } from '../base/builtin.js';

/** Attributes of a cookie, as in Express. */
export interface CookieOptions {
  /** In ms. */
  readonly maxAge?: number | null | undefined;
  readonly expires?: Date | null | undefined;
  readonly domain?: string;
  /** Default: `/`. */
  readonly path?: string | null;
  readonly httpOnly?: boolean;
  readonly secure?: boolean;
  readonly partitioned?: boolean;
  readonly priority?: string;
  readonly sameSite?: boolean | string;
  /** With the secret that `cookie-parser` was given. */
  readonly signed?: boolean;
  /** Default: `encodeURIComponent`. */
  readonly encode?: (value: string) => string;
}

const NAME = /^[!#-'*+.^`|~\w-]+$/;
const VALUE = /^("?)[!#-+\--:<-[\]-~]*\1$/;
const DOMAIN = /^\.?[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i;
const PATH = /^[ -:=-~]*$/;
const PRIORITIES = ['Low', 'Medium', 'High'];
const SITES = ['Lax', 'Strict', 'None'];

/** The text of a value, which may be an object, signed with a secret. @throws {TypeError} if the secret is missing */
export function cookieValue(value: unknown, isSigned: boolean, secret: string | undefined): string {
  const text = typeof value === 'object' ? `j:${JSON.stringify(value)}` : String(value);
  if (!isSigned) return text;
  if (!secret) throw new TypeError('a signed cookie needs a secret; run cookie-parser with one before');
  // As `cookie-parser` reads it.
  const digest = builtin('node:crypto').createHmac('sha256', secret).update(text).digest('base64');
  return `s:${text}.${digest.replace(/=+$/, '')}`;
}

/** @throws {TypeError} for a name, a value or an attribute that would end early, and for an unknown word */
export function toCookie(name: string, text: string, options: CookieOptions): string {
  const { maxAge, domain, path, sameSite, priority, encode = encodeURIComponent } = options;
  const refuse = (what: string, value: unknown, give: string): never => {
    throw new TypeError(`${what} of the cookie ${name} is ${JSON.stringify(value)}; ${give}`);
  };
  if (!NAME.test(name))
    throw new TypeError(`${JSON.stringify(name)} cannot be the name of a cookie; use letters, digits and - _ .`);
  if (typeof encode !== 'function') refuse('encode', encode, 'give a function');
  const value = encode(text);
  if (!VALUE.test(value)) refuse('the value', value, 'leave control characters, spaces and ; out, or encode it');
  const parts = [`${name}=${value}`];
  let { expires } = options;
  if (maxAge != null) {
    const seconds = Math.floor(Number(maxAge) / 1000);
    if (!Number.isFinite(seconds)) refuse('maxAge', maxAge, 'give ms');
    expires = new Date(Date.now() + Number(maxAge));
    parts.push(`Max-Age=${seconds}`);
  }
  if (domain) {
    if (!DOMAIN.test(domain)) refuse('domain', domain, 'give the name of a host');
    parts.push(`Domain=${domain}`);
  }
  if (path !== '') {
    if (!PATH.test(path ?? '/')) refuse('path', path, 'leave control characters and ; out');
    parts.push(`Path=${path ?? '/'}`);
  }
  if (expires) {
    if (!(expires instanceof Date) || Number.isNaN(expires.getTime())) refuse('expires', expires, 'give a Date');
    parts.push(`Expires=${expires.toUTCString()}`);
  }
  if (options.httpOnly) parts.push('HttpOnly');
  if (options.secure) parts.push('Secure');
  if (options.partitioned) parts.push('Partitioned');
  const word = (attribute: string, given: unknown, words: readonly string[]): string => {
    const known = words.find((each) => each.toLowerCase() === String(given).toLowerCase());
    return `${attribute}=${known ?? refuse(attribute, given, `give one of ${words.join(', ')}`)}`;
  };
  if (priority) parts.push(word('Priority', priority, PRIORITIES));
  if (sameSite) parts.push(word('SameSite', sameSite === true ? 'Strict' : sameSite, SITES));
  return parts.join('; ');
}
