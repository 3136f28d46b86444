/**
 * What a handler sees of one request. Everything beyond method, path and parameters is made when it is first asked for.
 */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { bindLogger, type Logger } from '../log.js';
import type { ServiceClient, ServiceDirectory } from '../mesh/service.js';
import { decodePath, type Params } from '../routing/router.js';
import { Body } from './body.js';
import type { AddressResolver } from './client-address.js';
import type { Reply, Stream } from './reply.js';
import { parseParameters, requestId, type Target } from './request.js';

/** What every request of one application shares. @internal */
export interface Environment {
  readonly logger: Logger;
  readonly bodyLimitBytes: number;
  readonly parameterLimit: number;
  readonly resolveAddress: AddressResolver;
  readonly services: ServiceDirectory;
}

/** Whatever a handler may return. */
export type HandlerResult = Reply | Response | Uint8Array | Stream | object | string | number | boolean | null | undefined | void;

/** A route's function: a context in, a value or a promise of one out. */
export type Handler<P = Params> = (ctx: Context<P>) => HandlerResult | Promise<HandlerResult>;

/** Runs around a handler; `next()` gives its reply, or rejects with what it threw. */
export type Middleware = (ctx: Context, next: () => Promise<Reply>) => HandlerResult | Promise<HandlerResult>;

/** One request, as its handler sees it. */
export class Context<P = Params> {
  /** Upper-case. */
  readonly method: string;
  /** Path parameters, percent-decoded. */
  readonly params: P;

  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #target: Target;
  readonly #env: Environment;
  readonly #awaitsContinue: boolean;
  #path: string | undefined;
  #query: URLSearchParams | undefined;
  #id: string | undefined;
  #ip: string | undefined;
  #state: Record<string, unknown> | undefined;
  #abort: AbortController | undefined;
  #log: Logger | undefined;
  #body: Body | undefined;

  /** @internal */
  constructor(req: IncomingMessage, res: ServerResponse, target: Target, params: P, env: Environment, awaitsContinue: boolean) {
    this.method = req.method as string;
    this.params = params;
    this.#req = req;
    this.#res = res;
    this.#target = target;
    this.#env = env;
    this.#awaitsContinue = awaitsContinue;
  }

  /** The request-target, as sent. @internal */
  get target(): Target {
    return this.#target;
  }

  /** The underlying pair of `node:http`. A handler that writes to `res` itself has its return value ignored. */
  get raw(): { readonly req: IncomingMessage; readonly res: ServerResponse } {
    return { req: this.#req, res: this.#res };
  }

  /** Percent-decoded, without the query. */
  get path(): string {
    return (this.#path ??= decodePath(this.#target.path));
  }

  /** Parsed from what follows the first `?` of the target. @throws {HttpError} 400 for more parameters than the limit */
  get query(): URLSearchParams {
    return (this.#query ??= parseParameters(this.#target.search, this.#env.parameterLimit, 400));
  }

  /** Names in lower case, as in `node:http`. */
  get headers(): IncomingHttpHeaders {
    return this.#req.headers;
  }

  /** The request's `x-request-id` if it matches `[A-Za-z0-9._-]{1,128}`, else a new one. */
  get id(): string {
    return (this.#id ??= requestId(this.#req));
  }

  /** The client's address; behind a proxy of `trustProxy` the one that `x-forwarded-for` tells. */
  get ip(): string {
    return (this.#ip ??= this.#env.resolveAddress(this.#req.socket.remoteAddress ?? '', joined(this.headers['x-forwarded-for'])));
  }

  /** A bag of this request's own, without a prototype. */
  get state(): Record<string, unknown> {
    return (this.#state ??= Object.create(null) as Record<string, unknown>);
  }

  /** Aborts when the client leaves before its reply is complete. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      const abort = new AbortController();
      const [req, res] = [this.#req, this.#res];
      const onClose = (): void => {
        if (!res.writableFinished) abort.abort();
      };
      if (res.destroyed || res.closed) onClose();
      else res.once('close', onClose);
      // Behind an early reply, a body may break off.
      if (!req.complete) {
        req.once('close', () => {
          if (!req.complete) abort.abort();
        });
      }
      this.#abort = abort;
    }
    return this.#abort.signal;
  }

  /** The application's logger, with `request_id` in every entry. */
  get log(): Logger {
    return (this.#log ??= bindLogger(this.#env.logger, { request_id: this.id }));
  }

  /**
   * A client for another service, which passes this request's id and trace on.
   *
   * @throws {TypeError} when no connection of that name is configured
   */
  service(name: string): ServiceClient {
    return this.#env.services.client(name, { id: this.id, headers: this.headers });
  }

  /**
   * The body, parsed as JSON. The caller names its type and vouches for it: nothing is checked but the syntax.
   *
   * @throws {HttpError} 415 for another content type, 413 beyond the limit, 400 for what is not JSON in UTF-8
   */
  json<T = unknown>(): Promise<T> {
    return handled(this.#bodyOnce().json() as Promise<T>);
  }

  /** The body as text. @throws {HttpError} 413 beyond the limit */
  text(): Promise<string> {
    return handled(this.#bodyOnce().text());
  }

  /** The body as it came. @throws {HttpError} 413 beyond the limit */
  bytes(): Promise<Uint8Array> {
    return handled(this.#bodyOnce().bytes());
  }

  /** The body as `application/x-www-form-urlencoded`. @throws {HttpError} 415 for another content type, 413 beyond the limit */
  form(): Promise<URLSearchParams> {
    return handled(this.#bodyOnce().form());
  }

  /** The body as a stream, which fails with a 413 beyond the limit. */
  stream(): Readable {
    return this.#bodyOnce().stream();
  }

  #bodyOnce(): Body {
    return (this.#body ??= new Body(this.#req, this.#env, () => {
      if (!this.#awaitsContinue) return;
      const send = (): void => {
        if (!this.#res.headersSent) this.#res.writeContinue();
      };
      // Behind replies that are not out yet, node:http would put it between this one's head and body.
      if (this.#res.socket === null) this.#res.once('socket', send);
      else send();
    }));
  }
}

/** A handler may wait for something else first: until then a body that fails must not end the process. */
function handled<T>(body: Promise<T>): Promise<T> {
  body.catch(() => undefined);
  return body;
}

function joined(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(',') : header;
}
