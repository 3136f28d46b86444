/* Prepares `req` and `res` of node:http for a handler that asks for them (`ctx.raw`) to use as it likes. */

import type { ServerResponse } from 'node:http';
import { isCut, type Exchange } from './exchange.js';

type WriteHead = (status: number, ...rest: unknown[]) => ServerResponse;

/** Must be called before a handler gets `req` and `res`. */
export function exposeRaw(exchange: Exchange): void {
  if (exchange.raw !== 'unused') return;
  exchange.raw = 'exposed';
  const { req, res } = exchange;
  // Without a listener an error, such as writing after the end of a reply, would end the process.
  res.on('error', () => undefined);
  res.once('pipe', () => {
    exchange.raw = 'piped';
  });
  res.once('close', () => {
    if (isCut(res)) exchange.leave();
  });
  frameWell(exchange);
  exchange.connection.watch();
  // While an earlier reply is open, node:http would count the bytes that a handler writes. With 16 to 64 KiB it would
  // stop reading from the connection, and a disconnect would go unnoticed. The connection counts by itself. Not
  // documented: if a later Node.js has no such function, this does nothing.
  if (res.socket === null && '_onPendingData' in res) res._onPendingData = () => undefined;
  if (!exchange.awaitsContinue) return;
  // Whichever way a handler reads the body, the stream calls `_read` for it (Node.js documentation,
  // "readable._read(size)"). With the first call, the client is told to send.
  const read = req._read.bind(req);
  req._read = (size) => {
    req._read = read;
    exchange.beginReading();
    read(size);
  };
}

/**
 * Corrects the framing of a head, also a handler's: never both `content-length` and `transfer-encoding` (RFC 9112,
 * section 6.2), neither of them on a 204 (RFC 9110, section 8.6, RFC 9112, section 6.1), no chunks for HTTP/1.0.
 */
function frameWell(exchange: Exchange): void {
  const { req, res } = exchange;
  const writeHead = res.writeHead.bind(res) as WriteHead;
  const write: WriteHead = (status, ...rest) => {
    exchange.witness?.headSent();
    if (exchange.connection.endsWith(exchange)) res.shouldKeepAlive = false;
    const at = typeof rest[0] === 'string' ? 1 : 0;
    // As node:http does, but only if a header was set before. Those who look at the reply later find them in `res`.
    const given = toPairs(rest[at]);
    for (const [name] of given) res.removeHeader(name);
    for (const [name, value] of given) res.appendHeader(name, value);
    const drop = (name: string): unknown => res.hasHeader(name) && res.removeHeader(name);
    if (status === 204) drop('content-length');
    const isWhole = status === 204 || status === 304 || res.hasHeader('content-length');
    if (isWhole || req.httpVersionMinor === 0) drop('transfer-encoding');
    return writeHead(status, ...rest.slice(0, at));
  };
  res.writeHead = write as typeof res.writeHead;
}

/** The headers that `writeHead` was given, in any form that it takes. */
function toPairs(headers: unknown): [name: string, value: string][] {
  if (!Array.isArray(headers)) return Object.entries(headers ?? {});
  if (Array.isArray(headers[0])) return headers;
  return headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]]] : []));
}
