/*
 * Listeners of other frameworks that answer what no route does, below a prefix: to move a service over piece by piece.
 */

import { show } from '../base/options-check.js';
import { compilePath } from '../endpoint/pattern.js';
import type { Middleware } from './context.js';
import { adapt, type ConnectMiddleware } from './connect.js';

/** A listener with its prefix. */
export interface Mount {
  /** `/legacy`; empty for `/`. */
  readonly prefix: string;
  /** The segments of the prefix, decoded; none for `/`. */
  readonly segments: readonly string[];
  readonly listener: ConnectMiddleware;
}

/**
 * Adds a mount; of nested prefixes, the longer one comes first.
 *
 * @throws {TypeError} for a prefix that has a parameter, ends in a slash or is taken, and for a value that is not a
 * function
 */
export function addMount(mounts: Mount[], path: string, listener: ConnectMiddleware): void {
  const prefix = path === '/' ? '' : path;
  const fail = (what: string, remedy: string): never => {
    throw new TypeError(`mount at ${show(path)} ${what}; ${remedy}`);
  };
  if (compilePath(path).some(({ kind }) => kind !== 'static')) fail('has a parameter', 'give a static prefix');
  if (prefix.endsWith('/')) fail('ends in a slash', `give ${show(prefix.slice(0, -1))}`);
  if (mounts.some((other) => other.prefix === prefix)) fail('is there already', 'remove one');
  if (typeof listener !== 'function') fail(`has ${show(listener)} as listener`, 'give a function (req, res)');
  mounts.push({ prefix, segments: prefix.split('/').slice(1), listener });
  mounts.sort((a, b) => b.segments.length - a.segments.length);
}

/** Finds the mount of a percent-encoded path, whose escapes are well-formed. */
export function findMount(mounts: readonly Mount[], path: string): Mount | undefined {
  if (!path.startsWith('/')) return undefined;
  const parts = path.split('/', (mounts[0]?.segments.length ?? 0) + 1);
  return mounts.find(({ segments }) => isBelow(parts, segments));
}

/** Makes middleware of a mount, whose listener sees a URL without the prefix. */
export function mountMiddleware({ prefix, segments, listener }: Mount): Middleware {
  return adapt((req, res, next) => {
    Object.assign(req, withoutPrefix(req.url ?? '', segments));
    // A third parameter may be anything: polka takes its `info`.
    const takesNext = 'handle' in listener && typeof listener.handle === 'function';
    return Reflect.apply(listener, undefined, takesNext ? [req, res, next] : [req, res]) as unknown;
  }, `${prefix}/*`);
}

/** A URL as a mount sees it. Middleware may have rewritten it: one that is not below the prefix has none to remove. */
// "/legacy/x?a=1" → "/x?a=1"
function withoutPrefix(target: string, segments: readonly string[]): { url: string; baseUrl: string } {
  const [, path = '', search = ''] = /^(?:https?:\/\/[^/?]*)?([^?]*)(.*)$/is.exec(target) ?? [];
  const parts = path.replace(/^\/?/, '/').split('/');
  const above = isBelow(parts, segments) ? parts.splice(1, segments.length) : [];
  return { url: (parts.join('/') || '/') + search, baseUrl: ['', ...above].join('/') };
}

/** Whether the parts of a path begin with some segments. */
function isBelow([, ...parts]: readonly string[], segments: readonly string[]): boolean {
  try {
    return segments.every((text, i) => text === decodeURIComponent(parts[i] ?? ''));
  } catch {
    // Middleware may leave a malformed escape in what it rewrites.
    return false;
  }
}
