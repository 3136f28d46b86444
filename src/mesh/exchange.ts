/**
 * One request to another service and its whole answer, bounded in time and size.
 */

import { request as httpRequest, type Agent, type ClientRequest, type IncomingMessage } from 'node:http';
import { Bytes } from '../payload/bytes.js';
import { createAgent } from './agent.js';
import { statusError, type Answer } from './answer.js';
import type { ServiceError } from './service-error.js';

/** One request. */
export interface ExchangeRequest {
  readonly method: string;
  /** From the `/` on, query included; goes behind the path of the service's URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** From before the connection to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Most bytes of the answer's body; its head may have 16 KiB. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal | undefined;
}

/** A connected service, with its pool of connections. */
export class Peer {
  readonly service: string;
  readonly #url: URL;
  #agent: Agent | undefined;

  /** @param url without query or trailing slash */
  constructor(service: string, url: string) {
    this.service = service;
    this.#url = new URL(url);
  }

  /**
   * Sends a request once and waits for the whole answer, whatever its status.
   *
   * @throws {ServiceError} 503 when the connection fails, before the answer or in it, 504 when time is up, 502 for an
   * answer that is too large or breaks HTTP
   * @throws the reason of `signal` when it aborts
   */
  exchange(request: ExchangeRequest): Promise<Answer> {
    const { signal, timeoutMs } = request;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const req = this.#begin(request);
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const fail = (error: unknown): void => {
        settle();
        reject(error);
        req.destroy();
      };
      const onAbort = (): void => fail(signal?.reason);
      const timer = setTimeout(() => fail(statusError(this.service, 504, `${this.service} did not answer within ${timeoutMs} ms`)), timeoutMs);
      signal?.addEventListener('abort', onAbort);
      // Both stay to the end: an error after the outcome must not go uncaught.
      req.on('error', (error) => fail(this.#connectionError(error, false)));
      req.on('upgrade', (_res, socket) => {
        socket.destroy();
        fail(this.#badAnswer('switched to another protocol'));
      });
      req.on('response', (res) => {
        this.#collect(res, request.maxBytes, fail, (answer) => {
          settle();
          resolve(answer);
        });
      });
      req.end(request.body);
    });
  }

  /** Cuts every connection, in use or not. */
  close(): void {
    this.#agent?.destroy();
    this.#agent = undefined;
  }

  #begin({ method, path, headers }: ExchangeRequest): ClientRequest {
    const url = this.#url;
    const tls = url.protocol === 'https:';
    const send = tls ? process.getBuiltinModule('node:https').request : httpRequest;
    const { hostname, port } = process.getBuiltinModule('node:url').urlToHttpOptions(url);
    this.#agent ??= createAgent(tls);
    const base = url.pathname === '/' ? '' : url.pathname;
    const req = send({ agent: this.#agent, hostname, port, method, path: base + path, headers, maxHeaderSize: 16_384 });
    // Fields beyond the default would be dropped in silence, with those that frame the body among them.
    req.maxHeadersCount = 0;
    return req;
  }

  #collect(res: IncomingMessage, maxBytes: number, fail: (error: unknown) => void, done: (answer: Answer) => void): void {
    const status = res.statusCode ?? 0;
    const length = Number(res.headers['content-length'] ?? 0);
    const body = new Bytes(maxBytes, length);
    res.on('error', (error) => fail(this.#connectionError(error, true)));
    res.on('data', (chunk: Buffer) => {
      if (!body.add(chunk)) fail(this.#badAnswer(`answered with more than ${maxBytes} bytes`));
    });
    res.on('end', () => done({ status, headers: res.headers, rawHeaders: res.rawHeaders, body: body.read() }));
    if (status < 200 || status > 599) fail(this.#badAnswer(`answered with the status ${status}`));
    else if (length > maxBytes) fail(this.#badAnswer(`answered with more than ${maxBytes} bytes`));
  }

  #badAnswer(what: string, cause?: unknown): ServiceError {
    return statusError(this.service, 502, `${this.service} ${what}`, { cause });
  }

  #connectionError(cause: Error, answering: boolean): ServiceError {
    if ('code' in cause && String(cause.code).startsWith('HPE_')) return this.#badAnswer('answered with malformed HTTP', cause);
    return statusError(this.service, 503, `${this.service} ${answering ? 'broke off its answer' : 'is unreachable'}`, { cause });
  }
}
