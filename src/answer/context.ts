/* One request, as a handler sees it. Everything but method, scope and path parameters is computed on first access. */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import type { ErrorCode } from '../base/error-codes.js';
import { assertLogger, bindLogger, type Logger, type SafeLogger } from '../base/log.js';
import { booleanOr, converted, LIST, option, wholeNumber } from '../base/options-check.js';
import type { Kind, OptionTable, Resolved } from '../base/options-check.js';
import type { CallExport } from '../mesh/call-tracing.js';
import type { ServiceClient, ServiceClients } from '../mesh/service-client.js';
import { readCaller, type Caller } from '../propagation/caller.js';
import { CALLS_HEADER, DEADLINE_HEADER, readDeadlineHeader } from '../propagation/mesh-headers.js';
import { formatCalls, type CallTuple } from '../story/calls.js';
import type { Story } from '../story/story.js';
import { outgoingHeaders, traceIds, type Sampler, type TraceSpan } from '../propagation/trace-context.js';
import { decodePath, type MatchedRoute, type Params, type Route } from '../routing/router.js';
import { release, type Admission } from './admission.js';
import { Body } from './body.js';
import { clientAddress, requestUrl, trustNetworks } from './client-address.js';
import type { Reply } from './reply.js';
import { parseParameters, type Target } from './target.js';
import type { Exchange } from '../wire/exchange.js';
import { exposeRaw } from '../wire/raw.js';
import type { Scope } from '../wire/scope.js';
import type { ServerLimits } from '../wire/server.js';

/** How requests are read, answered and logged. */
export interface AnswerOptions {
  /** Maximum bytes of a request body; a larger body is a 413. Default: 1,048,576. */
  bodyLimit?: number | undefined;
  /** Maximum parameters of a query (more give 400) or of a form (more give 413). Default: 1,000. */
  parameterLimit?: number | undefined;
  /** CIDRs of the proxies whose `x-forwarded-*` headers are believed; `unix`: peers of Unix sockets. Default: none. */
  trustProxy?: readonly string[] | undefined;
  /**
   * Whether each request is logged at info, except successful requests to monitoring endpoints; `'all'` logs these,
   * too. Default: true if stderr is a terminal, else false.
   */
  accessLog?: boolean | 'all' | undefined;
  /**
   * Whether 2xx replies must match the `response` schema of their route. With `'output'`, what the schema returns is
   * sent: a member that it drops never leaves the process. Streams, bytes and the body of a `Response` are not checked.
   * Default: false.
   */
  validateResponses?: boolean | 'output' | undefined;
  /**
   * An absolute URL that ends in `/` or `#`, at which people read about error codes. Followed by the name of the code
   * it is the `type` of problem details (RFC 9457). Default: the `type` is `about:blank`.
   */
  errorTypes?: string | URL | undefined;
}

const ERROR_TYPES: Kind = {
  accepts: (value) => /[/#]$/.test(String(value)) && URL.canParse(String(value)),
  give: 'an absolute URL that ends in / or #',
};

/** @internal */
export const ANSWER = {
  bodyLimit: option(wholeNumber(0), 1_048_576),
  parameterLimit: option(wholeNumber(0), 1_000),
  trustProxy: converted(LIST, trustNetworks),
  // A person who looks at a terminal wants to see the requests.
  accessLog: converted(booleanOr('all'), (given?: boolean | 'all') => given ?? process.stderr.isTTY === true),
  validateResponses: option(booleanOr('output'), false),
  errorTypes: converted(ERROR_TYPES, (given?: string | URL) => (given === undefined ? null : new URL(given).href)),
} satisfies OptionTable<AnswerOptions>;

/** Options and services that all requests of one application share. @internal */
export interface ServingOptions extends ServerLimits, Resolved<typeof ANSWER> {
  readonly logger: Logger;
  /** Follows the requests that fail or are slow. */
  readonly story: Story;
  /** Aborts when the application stops to accept requests and jobs. */
  readonly closing: AbortSignal;
  readonly services: ServiceClients;
  /** Exports the spans of requests and jobs; null while nothing does. */
  spanExport: SpanExport | null;
}

/** Message to subscribers: one object for all events of a request. */
export interface RequestTraceMessage {
  /** The request. */
  readonly ctx: Context;
  /** The method, upper-case. */
  readonly method: string;
  /** Its span, in the caller's trace or a new one; the calls that it makes are below it. */
  readonly trace: TraceSpan;
  /** The matched route; null for a 404, a 405 and the like. */
  readonly route: MatchedRoute | null;
  /** The thrown value of a reply with a status of 500 or more, from the event `error` on. */
  error?: unknown;
  /** The code in the error body, at the last event. */
  errorCode?: ErrorCode;
  /** From the last event on: `end`, or `asyncEnd` where the handler returned a promise. */
  statusCode?: number;
}

/** A job that has ended; `error` is there if it failed, `undefined` too. */
export interface EndedJob {
  readonly job: { readonly name: string };
  readonly trace: TraceSpan;
  readonly error?: unknown;
}

/** Exports the spans of one application: log lines of a request then have the ids of its span. */
export interface SpanExport extends CallExport {
  readonly sample: Sampler;
  addRequest(request: RequestTraceMessage): void;
  /** @param startedAtMs on the clock of `performance.now()` */
  addJob(job: EndedJob, startedAtMs: number): void;
}

/** How long, in ms, a caller without a deadline is taken to wait. @internal */
export const PATIENCE_MS = 2000;

/** Whatever a handler may return. */
export type HandlerResult =
  Reply | Response | Uint8Array | AsyncIterable<unknown> | object | string | number | boolean | null | undefined | void;

/** A route's function: a context in, a value or a promise of one out. */
export type Handler<P = Params> = (ctx: Context<P>) => HandlerResult | Promise<HandlerResult>;

/**
 * Runs around a handler. `next()` returns the handler's reply, which may be changed. Of a request that failed, that is
 * the error reply, with what was thrown as its `error`. A middleware that returns nothing sends that reply.
 * @example
 * const noFrames: Middleware = async (ctx, next) => {
 *   const answered = await next();
 *   answered.headers.set('x-frame-options', 'DENY');
 *   return answered;
 * };
 */
export type Middleware = (ctx: Context, next: () => Promise<Reply>) => HandlerResult | Promise<HandlerResult>;

/** Members of `ctx.state`: `declare module 'postern' { interface State { user: User } }` names its members. */
export interface State {
  [name: string]: unknown;
}

/** A request that is published or exported. */
export interface RequestTrace {
  readonly message: RequestTraceMessage;
  /** Whether its handler has returned a promise. */
  isAsync: boolean;
}

/** One request, as its handler sees it. */
export class Context<P = Params> {
  /** Upper-case. */
  readonly method: string;
  /**
   * `'public'` for a request that only public routes answer, such as one with the header `x-postern-scope`. Middleware
   * that answers by itself must look at it.
   */
  readonly scope: Scope;
  /** Path parameters, percent-decoded. */
  readonly params: P;
  /** The request and its reply on the connection. @internal */
  readonly exchange: Exchange;
  /** The request-target, as sent. @internal */
  readonly target: Target;
  /** The span of this request, while somebody records its trace. @internal */
  span: TraceSpan | undefined;
  /** When the `timeout` of its route is over, on the clock of `performance.now()`; Infinity for never. @internal */
  timeUpMs: number = Infinity;
  /** The value of the label `route`. @internal */
  label: string = '';
  /** Null if nobody subscribes and the span of the request is not exported. @internal */
  trace: RequestTrace | null = null;
  /** Whether middleware got an error reply whose failure is not logged yet. @internal */
  hasFailed: boolean = false;
  /** The error that middleware for Express failed with: its status is the reply's, by Express's convention. @internal */
  expressError: unknown;
  /** An error that takes the place of the reply as soon as outer middleware has ended. @internal */
  late: { readonly thrown: unknown } | null = null;
  /** Whether the handler and all middleware have answered. @internal */
  isAnswered: boolean = false;
  /** The calls that were made for this request; null before the first one. @internal */
  calls: CallTuple[] | null = null;
  /** The error code of the reply; null for a reply that is not an error. @internal */
  errorCode: string | null = null;
  /** The request as the limiter of its route knows it; null without one. @internal */
  admission: Admission | null = null;

  readonly #options: ServingOptions;
  readonly #route: Route | null;
  #path: string | undefined;
  #query: URLSearchParams | undefined;
  #ip: string | undefined;
  #url: URL | undefined;
  #state: State | undefined;
  #abort: AbortController | undefined;
  #log: SafeLogger | undefined;
  #body: Body | undefined;

  /** @internal */
  constructor(exchange: Exchange, target: Target, params: P, given: ServingOptions, route: Route | null, scope: Scope) {
    this.method = exchange.method;
    this.scope = scope;
    this.params = params;
    this.exchange = exchange;
    this.target = target;
    this.#options = given;
    this.#route = route;
  }

  /** The route that was found; null for a 404, a 405 and an OPTIONS that no route answers. */
  get route(): MatchedRoute | null {
    return this.#route === null ? null : this.#route.matched;
  }

  /**
   * The underlying pair of `node:http`, to read, write and pipe as one likes. A handler that has written to `res`, or
   * pipes something to it, has its return value ignored, and counts as active until the reply is complete.
   */
  get raw(): { readonly req: IncomingMessage; readonly res: ServerResponse } {
    const { exchange } = this;
    const { req, res } = exchange;
    if (exchange.raw === 'unused') {
      const prepare = (status: number): void => {
        if (this.admission !== null) release(this.admission);
        if (exchange.outgoing !== null) return;
        const told = this.toldCalls(status, exchange.raw === 'piped');
        if (told !== null) res.setHeader(CALLS_HEADER, told);
      };
      exchange.onHead = [...exchange.onHead, prepare];
    }
    exposeRaw(exchange);
    return { req, res };
  }

  /** Percent-decoded, without the query. */
  get path(): string {
    return (this.#path ??= decodePath(this.target.path));
  }

  /**
   * Parsed from what follows the first `?` of the target.
   *
   * @throws {HttpError} 400 for more parameters than the limit
   */
  get query(): URLSearchParams {
    return (this.#query ??= parseParameters(this.target.search, this.#options.parameterLimit, 400));
  }

  /** Names in lower case, as in `node:http`. */
  get headers(): IncomingHttpHeaders {
    return this.exchange.req.headers;
  }

  /** The request's `x-request-id` if it matches `[A-Za-z0-9._-]{1,128}`, else a new one. */
  get id(): string {
    return this.exchange.id;
  }

  /** The client's address; behind a proxy of `trustProxy`, the address in `x-forwarded-for`. */
  get ip(): string {
    return (this.#ip ??= clientAddress(this.exchange.req, this.#options.trustProxy));
  }

  /**
   * The Postern service that sent the request, from its `user-agent`; undefined for any other client, and for a request
   * from the public. The caller states this name itself, so it proves nothing.
   */
  get caller(): Caller | undefined {
    return this.scope === 'public' ? undefined : readCaller(this.headers['user-agent']);
  }

  /**
   * The URL of the request, as its client knows it: of the connection and `Host`, or of `x-forwarded-proto` and
   * `x-forwarded-host` where a proxy of `trustProxy` sent them.
   *
   * @throws {HttpError} 400 when `Host` can't be part of a URL
   */
  get url(): URL {
    return (this.#url ??= requestUrl(this.exchange.req, this.target, this.#options.trustProxy));
  }

  /** A bag of this request's own, without a prototype. */
  get state(): State {
    return (this.#state ??= Object.create(null) as State);
  }

  /** Aborts when the route's `timeout` is over, the body breaks off, or nobody can receive the reply any more. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      const abort = (this.#abort = new AbortController());
      // Listeners of the signal run in the async context of this request, not in the connection's.
      this.exchange.onGone(builtin('node:async_hooks').AsyncResource.bind(() => abort.abort()));
    }
    return this.#abort.signal;
  }

  /** Whether {@link signal} is, or would be, aborted. @internal */
  get isAborted(): boolean {
    return this.exchange.isGone || this.#abort?.signal.aborted === true;
  }

  /** Aborts {@link signal}. @internal */
  abort(reason: Error): void {
    if (!this.signal.aborted) this.#abort?.abort(reason);
  }

  /**
   * The application's logger, with `request_id` in every entry. One set in its place gets what is logged of this
   * request from then on, by the framework too: `ctx.log = ctx.log.child({ user })`. Its calls never throw.
   *
   * @throws {TypeError} when it is replaced by something without debug, info, warn and error
   * @example ctx.log = ctx.log.child({ user: 7 });
   */
  get log(): SafeLogger {
    if (this.#log !== undefined) return this.#log;
    return (this.#log = bindLogger(this.#options.logger, { request_id: this.id, ...traceIds(this) }));
  }

  set log(logger: Logger) {
    assertLogger(logger, 'ctx.log');
    this.#log = bindLogger(logger, {});
  }

  /** Null for a monitoring endpoint, too. @internal */
  get spanExport(): SpanExport | null {
    return this.#route?.isMonitoring === true ? null : this.#options.spanExport;
  }

  /** Values that the context shares with the other requests of the application. @internal */
  static optionsOf(ctx: Context): ServingOptions {
    return ctx.#options;
  }

  /** The body as JSON; undefined if it has no byte. @internal */
  static jsonOf(ctx: Context): Promise<unknown> {
    return ctx.#bodyOnce().jsonIfAny();
  }

  /** Whether a monitoring endpoint answers: then the request is neither traced nor logged. @internal */
  static isMonitoring(ctx: Context): boolean {
    return ctx.#route?.isMonitoring === true;
  }

  /** Where the framework logs: the log of this request if someone asked for it, else the application's. @internal */
  static loggerOf(ctx: Context): Logger {
    return ctx.#log ?? (ctx.#options.spanExport === null ? ctx.#options.logger : ctx.log);
  }

  /**
   * When calls that this request makes of other services have to end: with the `timeout` of its route, or when its
   * caller stops waiting, whichever is sooner; Infinity for never. @internal
   */
  get deadlineMs(): number {
    const { req, startedAtMs } = this.exchange;
    if (req.headers[DEADLINE_HEADER] === undefined) return this.timeUpMs;
    return Math.min(startedAtMs + (readDeadlineHeader(req.headers) ?? Infinity), this.timeUpMs);
  }

  /** How long, in ms, its caller is taken to wait: a request is slow after half of it. @internal */
  get patienceMs(): number {
    return readDeadlineHeader(this.headers) ?? PATIENCE_MS;
  }

  /** Its calls for `x-postern-calls`, if it failed or was slow and another service has sent it; else null. @internal */
  toldCalls(status: number, isStream: boolean): string | null {
    const { calls, exchange, patienceMs } = this;
    const isSlow = !isStream && monotonicNow() - exchange.startedAtMs > patienceMs / 2;
    // The caller last: to read its name costs more than the rest.
    return calls !== null && (status >= 500 || isSlow) && this.caller !== undefined ? formatCalls(calls) : null;
  }

  /**
   * Returns a client for another service. Its calls pass on this request's id and trace, and end with it.
   *
   * @throws {TypeError} when no connection of that name is configured
   * @example const { body } = await ctx.service('billing').get('/invoices/7', { timeout: 500 });
   */
  service(name: string): ServiceClient {
    return this.#options.services.client(name, this);
  }

  /**
   * Returns the id and the trace of this request, as headers for a message or for a request of one's own.
   * @example await mails.add({ to: 'ada@example.com', headers: ctx.outgoingHeaders() });
   */
  outgoingHeaders(): Record<string, string> {
    return outgoingHeaders(this, this.span);
  }

  /**
   * The body, parsed as JSON. The caller names its type and vouches for it: nothing is checked but the syntax.
   *
   * @throws {HttpError} 400 for an empty body and for text that is not JSON in UTF-8, 415 if the content type is absent
   * or not JSON, 413 beyond the limit
   * @example const { name } = await ctx.json<{ name: string }>();
   */
  json<T = unknown>(): Promise<T> {
    return handled(this.#bodyOnce().json() as Promise<T>);
  }

  /** The body as text. @throws {HttpError} 413 beyond the limit */
  text(): Promise<string> {
    return handled(this.#bodyOnce().text());
  }

  /** The body as bytes. @throws {HttpError} 413 beyond the limit */
  bytes(): Promise<ReturnType<typeof Uint8Array.of>> {
    return handled(this.#bodyOnce().bytes());
  }

  /**
   * The body as `application/x-www-form-urlencoded`.
   *
   * @throws {HttpError} 415 for another content type, 413 beyond the limit
   */
  form(): Promise<URLSearchParams> {
    return handled(this.#bodyOnce().form());
  }

  /** The body as a stream, which fails with a 413 beyond the limit. */
  stream(): Readable {
    return this.#bodyOnce().stream();
  }

  #bodyOnce(): Body {
    const bodyLimit = this.#route?.options.bodyLimit ?? this.#options.bodyLimit;
    return (this.#body ??= new Body(this.exchange, bodyLimit, this.#options.parameterLimit));
  }
}

/** Handles the rejection of a body that nobody awaits yet, which would end the process otherwise. */
// const body = ctx.json(); await loadUser(); use(await body);
function handled<T>(body: Promise<T>): Promise<T> {
  body.catch(() => undefined);
  return body;
}
