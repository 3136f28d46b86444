/*
 * A service played in memory, for tests: by another application, or by a function from request to response.
 */

import { Readable } from 'node:stream';
import { toReadable } from '../payload/stream.js';
import { PeerAnswer, type AnswerSource } from './peer-answer.js';
import type { Peer, PeerRequest } from './peer.js';
import { callError } from './service-error.js';
import type { TryLimit } from './try-limit.js';

/** What answers calls in memory: an application, or a function that does what `fetch` does. */
export type ServiceStandIn =
  | { request(target: string, init: RequestInit): Promise<Response> }
  | ((request: Request) => Response | Promise<Response>);

/** Whether a value can stand in for a service. @internal */
export function isStandIn(value: unknown): value is ServiceStandIn {
  return (
    typeof value === 'function' || (value instanceof Object && typeof Reflect.get(value, 'request') === 'function')
  );
}

/**
 * A service that is answered for in memory. If the stand-in throws, or gives a value that is no response, the call
 * fails with a 502, as it would with a broken answer over HTTP.
 *
 * @internal
 */
export function createStandInPeer(standIn: ServiceStandIn): Peer {
  const open = (request: PeerRequest, limit: TryLimit): Promise<PeerAnswer> =>
    new Promise((resolve, reject) => {
      const abort = new AbortController();
      let fail = reject;
      limit.whenEnded((reason) => {
        abort.abort(reason);
        fail(reason);
      });
      const answered = async (): Promise<void> => {
        const source = await ask(standIn, request, abort.signal);
        const answer = new PeerAnswer(request, source, limit);
        fail = (reason) => {
          answer.fail(reason);
          source.destroy();
        };
        if (limit.isOver) fail(abort.signal.reason);
        resolve(answer);
      };
      answered().catch(limit.end);
    });
  return { open, close: () => undefined };
}

async function ask(standIn: ServiceStandIn, request: PeerRequest, signal: AbortSignal): Promise<AnswerSource> {
  const { service, target } = request;
  try {
    const init = toInit(request, signal);
    // Not every name of a service can be that of a host: a URL would take "7" for the address 0.0.0.7.
    const host = /^[a-z][a-z0-9-]*$/i.test(service) ? service : 'localhost';
    const response: unknown = await (typeof standIn === 'function'
      ? standIn(new Request(`http://${host}${target}`, init))
      : standIn.request(target, init));
    if (response instanceof Response) return toSource(response);
  } catch (cause) {
    throw callError(request, 502, `${service} failed in memory`, { cause });
  }
  throw callError(request, 502, `${service} gave no Response in memory`);
}

function toInit({ method, headers, body }: PeerRequest, signal: AbortSignal): RequestInit {
  const content = body?.content;
  const init: RequestInit & { duplex?: 'half' } = { method, headers: { ...headers }, signal, redirect: 'manual' };
  if (content instanceof Uint8Array) init.body = new Uint8Array(content);
  else if (content !== undefined) {
    init.body = Readable.toWeb(toReadable(content)) as ReadableStream<Uint8Array>;
    init.duplex = 'half';
  }
  return init;
}

/** A response as `node:http` would have it. */
function toSource({ status, statusText, headers, body }: Response): AnswerSource {
  const { 'set-cookie': _cookies, ...single } = Object.fromEntries(headers);
  return Object.assign(body === null ? Readable.from([]) : toReadable(body), {
    statusCode: status,
    statusMessage: statusText,
    headers: single,
    rawHeaders: [...headers].flat(),
  });
}
