/**
 * Turns a call's path, query, headers and JSON into a request that says what the caller meant, and nothing else.
 */

/** One value of a query; null and undefined are left out. */
export type QueryValue = string | number | boolean | bigint | null | undefined;

/** A query: an array gives its name once for each value. */
export type Query = URLSearchParams | Readonly<Record<string, QueryValue | readonly QueryValue[]>>;

/** Headers, as `Headers`, as pairs, or by name; undefined values are left out. */
export type OutgoingHeaders = Iterable<readonly [string, string]> | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Headers that belong to one connection (RFC 9110, section 7.6.1), or to the framing that is not the caller's. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection', 'content-length', 'expect', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade',
]);

/**
 * A path with its query, percent-encoded where it must be: `('/a b', { q: [1, 2] })` gives `/a%20b?q=1&q=2`.
 *
 * @throws {TypeError} for a path that starts with anything but one `/`, has a `.` or `..` segment in any spelling, or holds
 * a backslash, a fragment or a control character: what is put together from a request must not lead elsewhere
 */
export function formatTarget(path: string, query: Query | undefined): string {
  if (typeof path !== 'string' || !/^\/(?!\/)/.test(path)) throw new TypeError(`path ${JSON.stringify(path)} must start with one /`);
  if (/[\\#\x00-\x1f\x7f]/.test(path)) throw new TypeError(`path ${JSON.stringify(path)} has a backslash, a # or a control character; encode it`);
  const mark = path.indexOf('?');
  const segments = (mark === -1 ? path : path.slice(0, mark)).split('/');
  if (segments.some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) throw new TypeError(`path ${JSON.stringify(path)} has a dot segment; give the path it leads to`);
  const search = query === undefined ? '' : toSearchParams(query).toString();
  const encoded = encodePath(path);
  return search === '' ? encoded : `${encoded}${mark === -1 ? '?' : '&'}${search}`;
}

/**
 * The caller's headers, names in lower case, without those of a connection and those that its `connection` names.
 *
 * @throws {TypeError} for a name or value that HTTP can't carry
 */
export function formatHeaders(given: OutgoingHeaders | undefined): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  if (given === undefined) return headers;
  const checked = new Headers();
  for (const [name, value] of isIterable(given) ? given : Object.entries(given)) {
    for (const one of typeof value === 'object' ? value : [value]) if (one !== undefined) checked.append(name, one);
  }
  const named = (checked.get('connection') ?? '').toLowerCase().split(',').map((name) => name.trim());
  for (const [name, value] of checked) {
    if (!CONNECTION_HEADERS.has(name) && !named.includes(name)) headers[name] = value;
  }
  return headers;
}

/** @throws {TypeError} for a value that has no JSON form */
export function formatJson(value: unknown): Uint8Array {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`json is a ${typeof value}, which has no JSON form`);
  return Buffer.from(text);
}

function toSearchParams(query: Query): URLSearchParams {
  if (query instanceof URLSearchParams) return query;
  const params = new URLSearchParams();
  for (const [name, given] of Object.entries(query)) {
    for (const value of isArray(given) ? given : [given]) {
      if (value !== undefined && value !== null) params.append(name, String(value));
    }
  }
  return params;
}

/** Escapes that are there already stay as they are. */
function encodePath(path: string): string {
  try {
    return encodeURI(path).replaceAll('%25', '%');
  } catch {
    throw new TypeError(`path ${JSON.stringify(path)} has half a surrogate pair`);
  }
}

function isIterable(headers: OutgoingHeaders): headers is Iterable<readonly [string, string]> {
  return Symbol.iterator in headers;
}

/** `Array.isArray` does not know readonly arrays. */
function isArray(value: QueryValue | readonly QueryValue[]): value is readonly QueryValue[] {
  return Array.isArray(value);
}
