/**
 * A service played in memory, for tests: by another application, or by a function from request to response.
 */

import { Readable } from 'node:stream';
import { PeerAnswer, type AnswerSource } from './peer-answer.js';
import type { Peer, PeerRequest } from './peer.js';
import { toReadable } from './request-body.js';
import { callError } from './service-error.js';
import type { TryLimit } from './try-limit.js';

/** What answers calls in memory: an application, or a function that does what `fetch` does. */
export type ServiceStandIn =
  | { request(target: string, init: RequestInit): Promise<Response> }
  | ((request: Request) => Response | Promise<Response>);

/** Whether a value can stand in for a service. */
export function isStandIn(value: unknown): value is ServiceStandIn {
  return (
    typeof value === 'function' || (value instanceof Object && typeof Reflect.get(value, 'request') === 'function')
  );
}

/** A service that is answered for in memory. */
export class StandInPeer implements Peer {
  readonly #standIn: ServiceStandIn;

  constructor(standIn: ServiceStandIn) {
    this.#standIn = standIn;
  }

  /** What it throws is a 502, as is a value that is no response: a service of its own would have answered so. */
  open(request: PeerRequest, limit: TryLimit): Promise<PeerAnswer> {
    return new Promise((resolve, reject) => {
      const abort = new AbortController();
      let fail = reject;
      const end = (reason: unknown): void => {
        limit.release();
        fail(reason);
      };
      limit.whenEnded((reason) => {
        abort.abort(reason);
        end(reason);
      });
      const answered = async (): Promise<void> => {
        const source = await this.#ask(request, abort.signal);
        const answer = new PeerAnswer(request, source, end, limit);
        fail = (reason) => {
          answer.fail(reason);
          source.destroy();
        };
        if (limit.isOver) fail(abort.signal.reason);
        resolve(answer);
      };
      answered().catch(end);
    });
  }

  close(): void {}

  async #ask(request: PeerRequest, signal: AbortSignal): Promise<AnswerSource> {
    const standIn = this.#standIn;
    const { service, target } = request;
    try {
      const init = toInit(request, signal);
      // Not every name is a host's: a URL would take "7" for an address.
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
