/* Paths of calls: built from values, each of which stays inside the segment that it was given for. */

import { show } from '../base/options-check.js';
import { compilePath } from './pattern.js';

/** A value that would lead to another path. A client may have sent it, so uncaught it is a 400 (`http-errors`). */
class UnsafeParameter extends TypeError {
  readonly statusCode = 400;
  readonly expose = true;

  constructor(value: string, why: string) {
    super(`The path parameter ${show(value)} ${why}.`);
  }
}

/**
 * A template tag that builds a path; each value becomes a part of one segment, whatever it holds.
 *
 * `` path`/invoices/${'7/refund'}` `` is `/invoices/7%2Frefund`, where a plain template would call another endpoint.
 *
 * @throws {TypeError} for a value that is undefined, null or an object. For a text that is empty, `.`, `..` or has a
 * lone surrogate, the error has `statusCode: 400` and `expose: true`: uncaught in a handler, it is a 400
 *
 * @example
 * await ctx.service('billing').get(path`/invoices/${ctx.params.id}`);
 */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number | bigint)[]): string {
  if (!Array.isArray(parts)) throw new TypeError('path is a template tag, not a function; write path`/users/${id}`');
  let text = parts[0] ?? '';
  values.forEach((value, index) => {
    text += encodeParameter(`value ${index + 1} of the path`, value) + (parts[index + 1] ?? '');
  });
  text.split(/[/?]/).forEach(assertSegment);
  return text;
}

/** One value, percent-encoded; `where` names it in messages: `parameter "id" of "/users/:id"`. */
function encodeParameter(where: string, value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint' && typeof value !== 'boolean')
    throw new TypeError(`${where} is ${show(value)}; give a string or a number`);
  const text = String(value);
  if (text === '') throw new UnsafeParameter(text, 'is empty');
  if (!text.isWellFormed()) throw new UnsafeParameter(text, 'has a lone surrogate, which has no form in UTF-8');
  return encodeURIComponent(text);
}

/** @throws {TypeError} with the status 400 for a dot segment */
function assertSegment(segment: string): void {
  if (segment === '.' || segment === '..') throw new UnsafeParameter(segment, 'is a dot segment');
}

/**
 * The path of a call, percent-encoded: `('/users/:id', { id: 'a/b' })` → `/users/a%2Fb`.
 *
 * @throws {TypeError} for a value that is not a string, number, bigint or boolean; with the status 400 for a text that
 * is empty, has a lone surrogate or makes a dot segment
 * @internal
 */
export function formatPath(path: string, params: Readonly<Record<string, unknown>>): string {
  const encoded = compilePath(path).map((segment) => {
    if (segment.kind === 'static') return encodeURIComponent(segment.text);
    const { name } = segment;
    const value = Object.hasOwn(params, name) ? params[name] : undefined;
    const text = encodeParameter(`parameter "${name}" of "${path}"`, value);
    const parts = segment.kind === 'wildcard' ? text.split('%2F') : [text];
    parts.forEach(assertSegment);
    return parts.join('/');
  });
  const target = encoded.map((text) => `/${text}`).join('');
  if (target.startsWith('//')) throw new UnsafeParameter(target.slice(1), 'begins with a slash');
  return target;
}
