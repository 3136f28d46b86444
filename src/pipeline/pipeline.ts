/*
 * One request in, one reply out: head, route, middleware, handler, reply or error, observation.
 *
 * A handler runs where `node:http` emitted its request, in that request's async context, and so does everything after
 * it: the reply, the access log, the events of its trace. Replies that keep their connections are written together at
 * the end of the turn: that costs less than writing each from inside the parser.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Bag } from '../base/bag.js';
import { builtin } from '../base/builtin.js';
import type { HttpError } from '../base/errors.js';
import { Backlog } from '../http/backlog.js';
import { Connection } from '../http/connection.js';
import { Context, type HandlerResult, type ServingOptions } from '../http/context.js';
import {
  errorToOutgoing,
  forScope,
  headersOfUnsent,
  mapError,
  type ParserError,
  withHeaders,
} from '../http/error-mapper.js';
import { CLIENT_CLOSED_REQUEST, isCut } from '../http/exchange.js';
import { isThenable, toOutgoing, type Outgoing } from '../http/reply.js';
import { createHeadCheck, parseTarget, requestId } from '../http/request.js';
import { scopeOf } from '../http/scope.js';
import { discard, sendRaw, type ReplyOutcome } from '../http/writer.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import { isStream } from '../payload/bytes.js';
import { UnsendableError } from '../payload/lost-members.js';
import type { CompiledRoutes } from './compiled-routes.js';
import { routeNameOf } from './middleware.js';
import { countBytes, Observer, PipelineExchange, type Steps } from './observer.js';
import { Outbox } from './outbox.js';
import { isTraced, RequestTrace } from '../http/request-tracing.js';

const CONNECTED: unique symbol = Symbol('postern.connection');
type Connected = Duplex & { [CONNECTED]?: Connection };

/** The path of a request through one listener of an application. Its methods never throw. */
export class Pipeline implements Steps {
  isDraining = false;
  readonly #routes: CompiledRoutes;
  readonly #options: ServingOptions;
  readonly #assertHead: (req: IncomingMessage) => boolean;
  readonly #observer: Observer;
  readonly #backlog: Backlog;
  readonly #outbox = new Outbox();
  /** Requests whose handlers still run, although their clients have disconnected. */
  readonly #left = new Bag<PipelineExchange>();
  #active = 0;
  #whenIdle: (() => void)[] = [];

  constructor(routes: CompiledRoutes, requests: RequestMetrics, options: ServingOptions) {
    this.#routes = routes;
    this.#options = options;
    this.#assertHead = createHeadCheck(options.maxHeadersCount);
    this.#observer = new Observer(options, requests);
    this.#backlog = new Backlog(options.sendTimeout);
  }

  /** Number of requests without a complete reply, also of those whose clients disconnected while their handlers run. */
  get active(): number {
    return this.#active;
  }

  /** From now on a connection ends with its latest reply, and requests whose clients have disconnected are over. */
  closeConnections(): void {
    this.isDraining = true;
    for (const exchange of this.#left) if (exchange.move('stop')) this.#end(exchange, CLIENT_CLOSED_REQUEST);
  }

  /** Resolves as soon as {@link active} is 0. After {@link closeConnections}, a disconnect ends a request. */
  idle(): Promise<void> {
    if (this.#active === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** @param refused the error to answer with; null to run the request */
  readonly handle = (
    req: IncomingMessage,
    res: ServerResponse,
    awaitsContinue = false,
    refused: HttpError | null = null,
  ): void => {
    // A proxy in front may have read another length or another host in a head that is refused. What it takes for the
    // body of this request may be the next request for us, so nothing after it is answered.
    let isLast = true;
    let refusal: unknown = refused;
    try {
      if (refused === null) isLast = this.#assertHead(req);
    } catch (thrown) {
      refusal = thrown;
    }
    const connection = this.#connectionOf(req.socket);
    const exchange = new PipelineExchange(req, res, awaitsContinue, connection, this, refusal);
    if (this.#options.accessLog) exchange.bytes = countBytes(req, res);
    this.#active += 1;
    // As few calls as possible lead to the handler: each is a frame in the stack of every error that it creates.
    if (connection.accept(exchange, isLast)) this.run(exchange);
    else this.#outbox.flushBehind();
  };

  /** @param error null to answer nothing */
  refuseSocket(req: IncomingMessage, error: HttpError | null): void {
    const { socket } = req;
    // node:http lets go of the socket: without a listener its next error would end the process.
    socket.on('error', () => socket.destroy());
    const connection = this.#connectionOf(socket);
    if (error === null) return connection.refuse(null);
    const write = (isOpen: boolean): void => {
      if (isOpen) this.#refuseRaw(req, socket, error);
      else this.#observer.refused(req, requestId(req), null, 0);
    };
    connection.refuse(builtin('node:async_hooks').AsyncResource.bind(write));
  }

  /** Hands a request for another protocol to its listeners, unless it is refused, or replies before it are open. */
  upgrade(req: IncomingMessage, proceed: () => void): void {
    let refusal: HttpError | null;
    try {
      this.#assertHead(req);
      refusal = this.#routes.refuseUpgrade(req);
    } catch (error) {
      refusal = error as HttpError;
    }
    // The replies of this turn, which are written at its end, would land inside the other protocol.
    this.#outbox.flush();
    if (refusal === null && this.#connectionOf(req.socket).isFree) proceed();
    else this.refuseSocket(req, refusal);
  }

  handleParserError(error: ParserError, socket: Duplex): void {
    this.#connectionOf(socket).breakOff(error, (failure) => this.#refuseRaw(null, socket, failure));
  }

  #connectionOf(socket: Connected): Connection {
    return (socket[CONNECTED] ??= new Connection(socket, this.#options, this.#backlog));
  }

  /** @param req null for one that could not be parsed */
  #refuseRaw(req: IncomingMessage | null, socket: Duplex, error: HttpError): void {
    const id = req === null ? null : requestId(req);
    const outgoing = errorToOutgoing(error, id, req?.headers.accept, this.#options.errorTypes);
    this.#observer.refused(req, id, error, outgoing.length);
    sendRaw(socket, outgoing);
  }

  run(exchange: PipelineExchange): void {
    if (!exchange.move('run')) return;
    const { req } = exchange;
    let result: HandlerResult | Promise<HandlerResult>;
    try {
      if (exchange.refusal !== null) throw exchange.refusal;
      const target = parseTarget(req.url as string, req.method as string);
      // `GET http://a.example/ HTTP/1.1`: the host of such a target goes before `Host` (RFC 9112, section 3.2.2).
      if (target.authority !== undefined) req.headers.host = target.authority;
      const scope = scopeOf(req);
      const { route, params } = this.#routes.router.match(req.method as string, target.path, scope);
      const compiled = this.#routes.of(route, target.path, scope);
      exchange.label = compiled.label;
      const ctx = (exchange.ctx = new Context(exchange, target, params, this.#options, route, scope));
      if (isTraced()) result = (exchange.trace = new RequestTrace(ctx)).run(compiled.run);
      else result = compiled.run(ctx);
      // Inside the try: reading the value can throw, for example from a Proxy.
      if (!isThenable(result)) return this.#finish(exchange, result);
    } catch (thrown) {
      return this.fail(exchange, thrown);
    }
    exchange.trace?.suspend();
    Promise.resolve(result).then(
      (value) => this.#finish(exchange, value as HandlerResult),
      (thrown: unknown) => this.fail(exchange, thrown),
    );
  }

  /**
   * Answers with an error, unless a reply is known.
   *
   * @param unsent the headers of a reply that could not be sent
   */
  fail(exchange: PipelineExchange, thrown: unknown, unsent: Outgoing['headers'] = []): void {
    const { req, res, id, connection, isAnswered } = exchange;
    if (isAnswered || exchange.outgoing !== null) return;
    const error = mapError(thrown);
    const hasLeft = exchange.state === 'left' || isCut(res);
    this.#observer.failed(exchange, thrown, error, hasLeft ? CLIENT_CLOSED_REQUEST : error.statusCode);
    if (exchange.move('stop')) this.#end(exchange, CLIENT_CLOSED_REQUEST);
    else if (res.destroyed || res.headersSent || res.writableEnded) {
      const status = res.writableEnded ? res.statusCode : error.statusCode;
      exchange.move('write');
      if (!res.writableEnded) connection.cutBehind(exchange);
      this.settle(exchange, status, hasLeft ? 'aborted' : 'sent');
    } else {
      const shown = forScope(exchange.ctx?.scope, thrown, error);
      const outgoing = errorToOutgoing(shown, id, req.headers.accept, this.#options.errorTypes);
      this.#outbox.put(exchange, unsent.length === 0 ? outgoing : withHeaders(unsent, outgoing));
    }
  }

  /** An error of the connection takes the place of a reply that is not begun. */
  supersede(exchange: PipelineExchange, error: HttpError): void {
    const { outgoing, res } = exchange;
    if (exchange.isAnswered || (res.headersSent && outgoing !== null && !isStream(outgoing.body))) return;
    this.#outbox.discard(exchange);
    if (!res.headersSent) exchange.move('fail');
    this.fail(exchange, error);
  }

  /** Nobody can receive the reply to this request any more. */
  abandon(exchange: PipelineExchange): void {
    const { connection, res } = exchange;
    this.#outbox.discard(exchange);
    if (exchange.state === 'left' && !this.isDraining) {
      // A handler that still runs counts as active until it ends, but a drain does not wait for it.
      exchange.leftMember = this.#left.add(exchange);
      if (isCut(res)) connection.cutBehind(exchange);
      return;
    }
    exchange.move('stop');
    this.#end(exchange, CLIENT_CLOSED_REQUEST);
  }

  #finish(exchange: PipelineExchange, value: HandlerResult): void {
    const { req, res, raw, state, ctx, failure } = exchange;
    try {
      if (state !== 'running') {
        discard(value);
        if (exchange.move('stop')) this.#end(exchange, CLIENT_CLOSED_REQUEST);
      } else if (value instanceof Error) this.fail(exchange, value);
      else if (raw === 'piped' || res.headersSent || res.destroyed || res.writableEnded) {
        // Nobody ends a reply whose handler has failed.
        if (failure !== null && raw !== 'piped' && !res.writableEnded) return this.fail(exchange, failure.thrown);
        this.#reportFailure(exchange);
        discard(value);
        this.#leaveToHandler(exchange);
      } else {
        const outgoing = toOutgoing(value, req.method as string);
        if (outgoing.body === null) discard(value);
        this.#reportFailure(exchange, outgoing.status);
        this.#outbox.put(exchange, outgoing);
      }
    } catch (thrown) {
      discard(value);
      this.#reportFailure(exchange, 500);
      // Not asked of a Proxy, which may throw once more.
      const isError = builtin('node:util').types.isNativeError(thrown);
      if (isError && thrown instanceof UnsendableError && ctx !== null)
        thrown.message = `${routeNameOf(ctx)}: ${thrown.message}`;
      this.fail(exchange, thrown, headersOfUnsent(value));
    }
  }

  /** Reports the failure whose error reply middleware got. */
  #reportFailure(exchange: PipelineExchange, status?: number): void {
    const { failure } = exchange;
    if (failure === null) return;
    exchange.failure = null;
    const error = mapError(failure.thrown);
    this.#observer.failed(exchange, failure.thrown, error, status ?? error.statusCode);
  }

  /** The handler writes the reply itself: the exchange is over when that reply is. */
  #leaveToHandler(exchange: PipelineExchange): void {
    const { res } = exchange;
    exchange.move('write');
    const settle = (): void => this.settle(exchange, res.statusCode, isCut(res) ? 'aborted' : 'sent');
    const isWritten = res.writableEnded && res.writableLength === 0 && res.socket !== null;
    if (res.destroyed || res.writableFinished || isWritten) settle();
    else res.once('close', () => exchange.inContext(settle));
  }

  /** A reply is sent, or its client has disconnected. */
  settle(exchange: PipelineExchange, statusCode: number, outcome: ReplyOutcome): void {
    if (outcome === 'aborted' && !exchange.res.writableFinished) exchange.leave();
    else if (exchange.move('end')) this.#end(exchange, statusCode);
  }

  /** The exchange is over. */
  #end(exchange: PipelineExchange, statusCode: number): void {
    exchange.connection.settle(exchange);
    exchange.outgoing = null;
    if (exchange.leftMember !== null) this.#left.delete(exchange.leftMember);
    this.#observer.settled(exchange, statusCode);
    this.#active -= 1;
    if (this.#active === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
