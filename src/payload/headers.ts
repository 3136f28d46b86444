/* Header fields as `Headers`, and those that are not passed on. */

/** Header fields as `Headers`, repeated names joined. @param list names and values alternately */
export function fromHeaderList(list: readonly string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i < list.length; i += 2) headers.append(list[i] as string, list[i + 1] as string);
  return headers;
}

/** Headers of a received response that do not fit its body as `fetch` hands it out: decoded. */
export const CODING_HEADERS: readonly string[] = ['content-encoding', 'content-length'];

/** Headers that belong to one connection (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = [
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Removes the headers of the connection that a message came on, also those that `connection` names. */
export function dropConnectionHeaders(headers: Headers): void {
  const named = (headers.get('connection') ?? '').split(',').map((name) => name.trim());
  const names = named.filter((name) => /^[\w!#$%&'*+.^`|~-]+$/.test(name));
  for (const name of [...HOP_BY_HOP, ...names]) headers.delete(name);
}
