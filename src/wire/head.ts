/*
 * Reads what a head says before its request is answered: version, `Host`, framing.
 *
 * `node:http` lets through what RFC 9112 forbids: two `Host` headers, a version it never heard of, transfer codings
 * that nobody decodes, header fields beyond its own limit. Each is refused here.
 */

import type { IncomingMessage } from 'node:http';
import { builtin } from '../base/builtin.js';
import { HttpError } from '../base/errors.js';
import { enterPublicScope, SCOPE_HEADER } from './scope.js';

const { METHODS } = builtin('node:http');

/**
 * uri-host [ ":" port ] (RFC 3986, section 3.2.2; RFC 9110, section 7.2), but without a comma: a gateway that reads
 * `Host` as a list would compare another name than the one that is served.
 */
export const HOST: RegExp =
  /^(?:(?:[A-Za-z0-9._~!$&'()*+;=-]|%[0-9A-Fa-f]{2})+|\[(?:[0-9A-Fa-f]{0,4}:){2,8}[0-9A-Fa-f.]*\])(?::(?:\d{0,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]))?$/;

/** How many header fields node:http keeps in a server without a `maxHeadersCount`; with 0 it keeps all. */
const DEFAULT_KEPT = 1000;

/** Methods of HTTP. node:http's parser also lets methods of RTSP pass (RFC 2326): `DESCRIBE / RTSP/1.0`. */
const HTTP_METHODS: ReadonlySet<string | undefined> = new Set(METHODS);

/**
 * Makes the check that refuses requests whose heads break RFC 9112 (sections 3.2 and 6.1). It remembers the last
 * well-formed `Host`, which most requests have again, so that it need not be matched each time.
 *
 * @param maxFields maximum header fields
 * @returns a check of a request, and of the `maxHeadersCount` of its server. It throws an {@link HttpError}, or returns
 * whether the connection ends with its request. `Upgrade` ends it: it is answered as HTTP/1.1, but `node:http` takes
 * what follows in the same packet for the other protocol and drops it, so that the next packet may begin in the middle
 * of a request
 */
export function createHeadCheck(maxFields: number): (req: IncomingMessage, kept?: number | null) => boolean {
  let knownHost: string | undefined;
  return (req, kept) => {
    const { method, httpVersion, rawHeaders } = req;
    if (httpVersion !== '1.1' && httpVersion !== '1.0') {
      if (httpVersion === '0.9') throw new HttpError(400, 'The request line has no HTTP version.');
      throw new HttpError(505, `HTTP/${httpVersion} is not served; use HTTP/1.1.`);
    }
    if (!HTTP_METHODS.has(method) || (method === 'SOURCE' && httpVersion === '1.0')) throw otherProtocol();
    // node:http drops the fields that its server does not keep: a second `Host` or `x-postern-scope` could be one.
    const most = kept === 0 ? maxFields : Math.min(maxFields, (kept ?? DEFAULT_KEPT) - 1);
    if (rawHeaders.length > most * 2)
      throw new HttpError(431, `A request may have at most ${most} header fields.`);
    let hosts = 0;
    let host = '';
    let asksForUpgrade = false;
    let isPublic = false;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] as string;
      const { length } = name;
      if (length === 4) {
        const lower = name.toLowerCase();
        if (lower === 'host') {
          hosts += 1;
          host = rawHeaders[i + 1] as string;
        } else if (lower === 'cseq' && httpVersion === '1.0') throw otherProtocol();
      } else if (length === 7 && name.toLowerCase() === 'upgrade') asksForUpgrade = true;
      else if (length === 15 && name.toLowerCase() === SCOPE_HEADER) isPublic = true;
      else if (length === 17 && name.toLowerCase() === 'transfer-encoding') {
        if (httpVersion === '1.0') throw new HttpError(400, 'HTTP/1.0 has no transfer codings.');
        if (rawHeaders[i + 1]?.toLowerCase() !== 'chunked')
          throw new HttpError(501, 'No transfer coding but chunked is read.');
      }
    }
    if (isPublic) enterPublicScope(req);
    if (hosts > 1) throw new HttpError(400, 'The request has more than one Host header.');
    if (hosts === 0 && httpVersion === '1.1') throw new HttpError(400, 'The request has no Host header.');
    if (hosts === 1 && host !== knownHost) {
      if (!HOST.test(host)) throw new HttpError(400, 'The Host header is malformed.');
      knownHost = host;
    }
    return asksForUpgrade;
  };
}

/** Methods of RFC 9110, PATCH (RFC 5789) and QUERY (RFC 10008). A label or a span has no name that a client made up. */
export const STANDARD_METHOD: RegExp = /^(?:CONNECT|DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|QUERY|TRACE)$/;

/**
 * The parser hides the name of the protocol: `GET / RTSP/1.0` and `SOURCE / ICE/1.0` look like HTTP/1.0. They differ
 * by their methods, and RTSP also by `CSeq`, a field that each of its requests has (RFC 2326, section 12.17).
 */
function otherProtocol(): HttpError {
  return new HttpError(400, 'The request line is of another protocol than HTTP.');
}

/** Whether the trailers after a chunked body end the connection: node:http parses no request after them. */
// "0\r\nConnection: close\r\n\r\n"
export function closesByTrailer({ rawTrailers }: IncomingMessage): boolean {
  for (let i = 0; i < rawTrailers.length; i += 2) {
    if (/^(?:proxy-)?connection$/i.test(rawTrailers[i] as string) && /\bclose\b/i.test(rawTrailers[i + 1] as string))
      return true;
  }
  return false;
}
