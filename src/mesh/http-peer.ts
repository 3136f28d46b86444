/*
 * A service behind a URL: sends requests to it over a pool of kept-alive connections.
 */

import { request as httpRequest, type Agent, type ClientRequest, type IncomingMessage } from 'node:http';
import { builtin } from '../base/builtin.js';
import { toReadable } from '../payload/stream.js';
import { createAgent } from './agent.js';
import { PeerAnswer } from './peer-answer.js';
import { isIdempotent, type Peer, type PeerRequest } from './peer.js';
import type { ServiceStream } from './request-body.js';
import { callError } from './service-error.js';
import type { TryLimit } from './try-limit.js';

/** Errors of a kept-alive connection that the other end closed while it was idle. */
const STALE_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);

const MAX_HEAD_BYTES = 16_384;

/**
 * A connected service with its connections.
 *
 * @param address without query or trailing slash
 * @param maxAgeMs after which a connection is retired, ± 10 %
 */
export function createHttpPeer(address: string, maxAgeMs: number): Peer {
  const url = new URL(address);
  let agent: Agent | undefined;

  /** @param fresh to have a connection that was not used before */
  const begin = ({ method, target, headers }: PeerRequest, fresh: boolean): ClientRequest => {
    const tls = url.protocol === 'https:';
    const send = tls ? builtin('node:https').request : httpRequest;
    const { hostname, port } = builtin('node:url').urlToHttpOptions(url);
    agent ??= createAgent(tls, maxAgeMs);
    const path = url.pathname === '/' ? target : url.pathname + target;
    const options = { hostname, port, method, path, headers, maxHeaderSize: MAX_HEAD_BYTES };
    const req = send({ ...options, agent: fresh ? false : agent });
    // Header fields beyond the default limit would be dropped in silence: `content-length` could be one of them.
    req.maxHeadersCount = 0;
    return req;
  };

  /** Sends a request; once more on a fresh connection if an idle one was closed meanwhile, and it is idempotent. */
  const open = (request: PeerRequest, limit: TryLimit): Promise<PeerAnswer> =>
    new Promise((resolve, reject) => {
      let answer: PeerAnswer | undefined;
      let req = begin(request, false);
      const pool = agent;
      limit.whenEnded((reason) => {
        if (answer === undefined) reject(reason);
        else answer.fail(reason);
        req.destroy();
      });
      const onResponse = (res: IncomingMessage): void => {
        try {
          answer = new PeerAnswer(request, res, limit);
        } catch (error) {
          return limit.end(error);
        }
        // A service that has answered will not read the rest of a body that is still being sent.
        res.on('end', () => {
          if (!req.writableEnded) req.destroy();
        });
        resolve(answer);
      };
      const onUpgrade = (_res: IncomingMessage, socket: { destroy(): void }): void => {
        socket.destroy();
        limit.end(callError(request, 502, `${request.service} switched to another protocol`));
      };
      const send = (mayResend: boolean): void => {
        const sent = req;
        let bytesBefore = 0;
        sent.on('socket', ({ bytesRead }) => (bytesBefore = bytesRead));
        // No listener is taken off: an error after the outcome would go uncaught, and end the process.
        sent.on('error', (error) => {
          if (sent !== req) return;
          const isStale = sent.reusedSocket && sent.socket?.bytesRead === bytesBefore && STALE_CODES.has(codeOf(error));
          // A request is not sent again if this end has cut its connection, by `close` or the limit.
          if (mayResend && isStale && answer === undefined && agent === pool && !limit.isOver) {
            req = begin(request, true);
            send(false);
          } else limit.end(connectionError(request, error, answer !== undefined));
        });
        sent.on('upgrade', onUpgrade);
        sent.on('response', onResponse);
        const content = request.body?.content;
        if (content === undefined || content instanceof Uint8Array) sent.end(content);
        else sendStream(content, sent, limit.end);
      };
      send(isIdempotent(request));
    });

  const close = (): void => {
    agent?.destroy();
    agent = undefined;
  };

  return { open, close };
}

/** What the connection of a request failed with, as an error of its call. */
function connectionError(request: PeerRequest, cause: Error, isAnswering: boolean): Error {
  const { service } = request;
  if (String(codeOf(cause)).startsWith('HPE_'))
    return callError(request, 502, `${service} answered with malformed HTTP`, { cause });
  const what = isAnswering ? 'broke off its answer' : 'is unreachable';
  return callError(request, 503, `${service} ${what}`, { cause });
}

function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : undefined;
}

/** Sends a body as it comes, no faster than it is taken; frees its source with the request. */
function sendStream(stream: ServiceStream, req: ClientRequest, fail: (reason: unknown) => void): void {
  const source = toReadable(stream);
  let ended = false;
  source.on('error', fail);
  source.on('data', (chunk: unknown) => {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array))
      fail(new TypeError(`the body's stream gave a chunk of type ${typeof chunk}; give strings or bytes`));
    else if (chunk.length > 0 && !req.destroyed && !req.write(chunk)) source.pause();
  });
  source.on('end', () => {
    ended = true;
    req.end();
  });
  source.on('close', () => {
    if (!ended && !req.destroyed) fail(new TypeError("the body's stream was destroyed before its end"));
  });
  req.on('drain', () => source.resume());
  req.on('close', () => source.destroy());
}
