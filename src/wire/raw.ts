/* Prepares `req` and `res` of node:http for a handler that asks for them (`ctx.raw`) to use as it likes. */

import { endsAtHead } from '../payload/bodiless.js';
import type { Exchange } from './exchange.js';
import { HIDDEN_HEADERS } from '../propagation/mesh-headers.js';
import { beforeFirstRead, beforeHead } from './node-internals.js';

/** Must be called before a handler gets `req` and `res`. */
export function exposeRaw(exchange: Exchange): void {
  if (exchange.raw !== 'unused') return;
  exchange.raw = 'exposed';
  const { req, res, body } = exchange;
  // Without a listener an error, such as writing after the end of a reply, would end the process.
  res.on('error', () => undefined);
  res.once('pipe', () => {
    exchange.raw = 'piped';
  });
  // node:http of Node.js 20 and 22 says so even if the connection was closed with bytes still to be sent.
  res.prependOnceListener('finish', () => {
    exchange.isTorn = req.socket.destroyed;
  });
  frameWell(exchange);
  exchange.carrier.watch();
  if (body?.awaitsContinue) beforeFirstRead(req, () => body.beginReading());
}

/**
 * Corrects the framing of a head, also a handler's: never both `content-length` and `transfer-encoding` (RFC 9112,
 * section 6.2), neither of them on a 204 (RFC 9110, section 8.6, RFC 9112, section 6.1), no chunks for HTTP/1.0.
 */
function frameWell(exchange: Exchange): void {
  const { req, res } = exchange;
  beforeHead(res, (status, given) => {
    if (exchange.carrier.endsWith(exchange)) res.shouldKeepAlive = false;
    // As node:http does, but only if a header was set before. Those who look at the reply later find them in `res`.
    for (const [name] of given) res.removeHeader(name);
    for (const [name, value] of given) res.appendHeader(name, value);
    for (const listener of exchange.onHead) listener(status);
    const drop = (name: string): unknown => res.hasHeader(name) && res.removeHeader(name);
    if (exchange.scope !== undefined) HIDDEN_HEADERS.forEach(drop);
    if (status === 204) drop('content-length');
    const isWhole = endsAtHead(status) || res.hasHeader('content-length');
    if (isWhole || req.httpVersionMinor === 0) drop('transfer-encoding');
  });
}
