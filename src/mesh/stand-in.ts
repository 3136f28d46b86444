/**
 * A service played in memory, for tests: by another application, or by a function from request to response.
 */

import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { Bytes } from '../payload/bytes.js';
import { hasBody, oddStatus, tooLarge, type Peer, type PeerAnswer, type PeerRequest } from './peer.js';
import { toReadable } from './request-body.js';
import { callError, type Callee } from './service-error.js';
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
  async open(request: PeerRequest, limit: TryLimit): Promise<PeerAnswer> {
    const abort = new AbortController();
    const ended = new Promise<never>((_resolve, reject) => {
      limit.whenEnded((reason) => {
        abort.abort(reason);
        reject(reason);
      });
    });
    ended.catch(() => undefined);
    const init = toInit(request, abort.signal);
    let response: unknown;
    try {
      response = await Promise.race([this.#ask(request, init), ended]);
    } catch (cause) {
      if (limit.isOver) throw abort.signal.reason;
      limit.release();
      throw callError(request, 502, `${request.service} failed in memory`, { cause });
    }
    const failure = checkResponse(request, response);
    if (failure === undefined) return new StandInAnswer(request, response as Response, ended, limit);
    limit.release();
    throw failure;
  }

  close(): void {}

  async #ask({ service, target }: PeerRequest, init: RequestInit): Promise<Response> {
    const standIn = this.#standIn;
    if (typeof standIn !== 'function') return standIn.request(target, init);
    // Not every name is a host's: a URL would take "7" for an address.
    const host = /^[a-z][a-z0-9-]*$/i.test(service) ? service : 'localhost';
    return standIn(new Request(`http://${host}${target}`, init));
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

function checkResponse(callee: Callee, response: unknown): Error | undefined {
  if (!(response instanceof Response)) return callError(callee, 502, `${callee.service} gave no Response in memory`);
  return response.status < 200 || response.status > 599 ? oddStatus(callee, response.status) : undefined;
}

/** An answer in memory. */
class StandInAnswer implements PeerAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: IncomingHttpHeaders = {};
  readonly rawHeaders: string[] = [];
  readonly #callee: Callee;
  readonly #body: ReadableStream<Uint8Array> | null;
  readonly #ended: Promise<never>;
  readonly #limit: TryLimit;

  /** @param ended rejects when the try is ended */
  constructor(callee: Callee, response: Response, ended: Promise<never>, limit: TryLimit) {
    this.status = response.status;
    this.statusText = response.statusText;
    for (const [name, value] of response.headers) {
      this.rawHeaders.push(name, value);
      if (name !== 'set-cookie') this.headers[name] = value;
    }
    this.#callee = callee;
    this.#body = hasBody(callee.method, response.status) ? response.body : null;
    this.#ended = ended;
    this.#limit = limit;
  }

  async bytes(maxBytes: number): Promise<Buffer> {
    const bytes = new Bytes(maxBytes, 0);
    const body = this.stream();
    if (body === null) return bytes.read();
    for await (const chunk of body) if (!bytes.add(Buffer.from(chunk))) throw tooLarge(this.#callee, maxBytes);
    return bytes.read();
  }

  stream(): ReadableStream<Uint8Array> | null {
    const limit = this.#limit;
    if (this.#body === null) {
      limit.release();
      return null;
    }
    const reader = this.#body.getReader();
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          const { done, value } = await Promise.race([reader.read(), this.#ended]);
          if (!done) return controller.enqueue(value);
          limit.release();
          controller.close();
        } catch (cause) {
          const { service } = this.#callee;
          const reason = limit.isOver
            ? cause
            : callError(this.#callee, 503, `${service} broke off its answer`, { cause });
          limit.release();
          void reader.cancel(reason).catch(() => undefined);
          controller.error(reason);
        }
      },
      cancel: (reason) => {
        limit.release();
        return reader.cancel(reason);
      },
    });
  }
}
