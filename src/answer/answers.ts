/*
 * Answers the requests of one listener: head, route, middleware, handler, reply or error.
 *
 * A handler may return or throw any value, and to look at one can throw, for example at a Proxy. So that happens only
 * inside the `try` blocks of this file.
 */

import type { IncomingMessage } from 'node:http';
import { monotonicNow } from '../base/clock.js';
import { isNativeError } from '../base/errors.js';
import { logSafely } from '../base/log.js';
import { isThenable } from '../base/promises.js';
import { UnsendableError } from '../payload/lost-members.js';
import { CLIENT_CLOSED_REQUEST, type Exchange } from '../wire/exchange.js';
import { requestId } from '../propagation/mesh-headers.js';
import type { Answering } from '../wire/answering.js';
import type { Outgoing } from '../wire/outgoing.js';
import { leave } from './admission.js';
import type { CompiledRoutes } from './compiled-routes.js';
import { Context, type HandlerResult, type ServingOptions } from './context.js';
import { errorToOutgoing, forScope, headersOfUnsent, mapError, SERVER_ERROR, withHeaders } from './errors.js';
import type { MappedError } from './errors.js';
import { routeNameOf } from './middleware.js';
import { endEventsWith } from './events.js';
import { logFailure, type Observer } from './observers.js';
import { discard, isError, Reply, toOutgoing } from './reply.js';
import { tellCalls } from './story.js';
import { parseTarget } from './target.js';
import { beginTrace, failTrace, finishTrace, runTraced, suspendTrace } from './tracing.js';

/** Null if the handler writes the reply itself. */
type Answer = Outgoing | null;

/** The path of a request through one listener of an application. Its methods never throw. */
export class Answers implements Answering<Context> {
  /** @param observers get the outcome of every request, once */
  constructor(
    readonly routes: CompiledRoutes,
    readonly options: ServingOptions,
    readonly observers: readonly Observer[],
  ) {}

  answer(exchange: Exchange<Context>): Answer | Promise<Answer> {
    const { req, method, scope } = exchange;
    for (const observer of this.observers) observer.begun?.(exchange);
    let result: HandlerResult | Promise<HandlerResult>;
    try {
      if (exchange.refusal !== null) throw exchange.refusal;
      const target = parseTarget(req.url as string, method);
      // `GET http://a.example/ HTTP/1.1`: the host of such a target goes before `Host` (RFC 9112, section 3.2.2).
      if (target.authority !== undefined) req.headers.host = target.authority;
      const { route, params, compiled } = this.routes.find(req, method, target.path, scope);
      const { run, label } = compiled;
      const ctx = (exchange.handling = new Context(exchange, target, params, this.options, route, scope));
      ctx.label = label;
      const trace = beginTrace(ctx);
      result = trace === null ? run(ctx) : runTraced(trace, run);
      // Inside the `try`: reading the value can throw.
      if (!isThenable(result)) return this.#finish(exchange, result);
    } catch (thrown) {
      return this.#fail(exchange, thrown);
    }
    const { trace = null } = exchange.handling ?? {};
    if (trace !== null) suspendTrace(trace);
    return Promise.resolve(result).then(
      (value) => this.#finish(exchange, value as HandlerResult),
      (thrown: unknown) => this.#fail(exchange, thrown),
    );
  }

  refuse(exchange: Exchange<Context>, thrown: unknown, unsent: Outgoing | null = null): Outgoing {
    const { req, id, handling } = exchange;
    try {
      const error = mapError(thrown, handling);
      const hasLeft = exchange.state === 'left' || exchange.isCut;
      this.#report(exchange, thrown, error, hasLeft ? CLIENT_CLOSED_REQUEST : error.statusCode);
      const shown = forScope(handling?.scope, thrown, error);
      const bare = errorToOutgoing(shown, id, req.headers.accept, this.options.errorTypes);
      const outgoing = handling === null ? bare : tellCalls(handling, bare);
      return unsent === null ? outgoing : withHeaders(unsent.headers, outgoing);
    } catch (failure) {
      logSafely(this.options.logger, 'error', { err: failure, request_id: id }, 'an error could not be answered');
      return errorToOutgoing(SERVER_ERROR, id, undefined, null);
    }
  }

  refuseSocket(req: IncomingMessage | null, thrown: Error, isOpen: boolean): Outgoing {
    const { logger, story, errorTypes } = this.options;
    const id = req === null ? null : requestId(req);
    const method = req?.method ?? null;
    const error = mapError(thrown);
    const { statusCode } = error;
    const outgoing = errorToOutgoing(error, id, req?.headers.accept, errorTypes);
    if (isOpen) logFailure(logger, story, { error, thrown, statusCode, req, id, method, handling: null });
    const [status, bytes] = isOpen ? [statusCode, outgoing.length] : [CLIENT_CLOSED_REQUEST, 0];
    for (const observer of this.observers) observer.refused?.(req, id, status, bytes);
    return outgoing;
  }

  refuseUpgrade(req: IncomingMessage): Error | null {
    return this.routes.refuseUpgrade(req);
  }

  gone({ handling }: Exchange<Context>): void {
    if (handling?.admission) leave(handling.admission);
  }

  settled(exchange: Exchange<Context>, status: number): void {
    const ms = monotonicNow() - exchange.startedAtMs;
    for (const observer of this.observers) observer.settled(exchange, status, ms);
    const { trace = null } = exchange.handling ?? {};
    if (trace !== null) finishTrace(trace, status);
  }

  /** Answers a failure of the handler, unless the request was answered in its place. */
  #fail(exchange: Exchange<Context>, thrown: unknown): Answer {
    if (exchange.state === 'running' || exchange.state === 'left') return this.refuse(exchange, thrown);
    discard(thrown);
    return null;
  }

  #finish(exchange: Exchange<Context>, value: HandlerResult): Answer {
    const { handling, method } = exchange;
    try {
      if (exchange.state !== 'running') return this.#dismiss(exchange, value);
      if (exchange.isHandedOver) return this.#handOver(exchange, value);
      if (handling !== null) {
        if (handling.late !== null) throw handling.late.thrown;
        handling.isAnswered = true;
      }
      // To return an error is to raise it, without what `throw` costs.
      if (value instanceof Error) return this.#fail(exchange, value);
      const outgoing = toOutgoing(value, method);
      if (outgoing.body === null) discard(value);
      else if (typeof outgoing.body === 'object') endEventsWith(this.options.closing, outgoing.body);
      if (handling !== null && handling.hasFailed) this.#reportFailure(exchange, value, outgoing.status);
      if (handling !== null && handling.calls !== null) return tellCalls(handling, outgoing);
      return outgoing;
    } catch (thrown) {
      // An error of another realm.
      if (thrown === value) return this.#fail(exchange, thrown);
      discard(value);
      this.#reportFailure(exchange, value, 500);
      const isOurs = isNativeError(thrown) && thrown instanceof UnsendableError;
      if (isOurs && handling !== null) thrown.message = `${routeNameOf(handling)}: ${thrown.message}`;
      const outgoing = this.refuse(exchange, thrown);
      return withHeaders(headersOfUnsent(value), outgoing);
    }
  }

  /** The client has left, or the request was answered in the handler's place. */
  #dismiss(exchange: Exchange<Context>, value: HandlerResult): Answer {
    if (exchange.state === 'left') this.#reportFailure(exchange, value, CLIENT_CLOSED_REQUEST);
    discard(value);
    return null;
  }

  /** The handler has written the reply itself, or continues to write it. */
  #handOver(exchange: Exchange<Context>, value: HandlerResult): Answer {
    const { res, raw } = exchange;
    if (isError(value)) return this.#fail(exchange, value);
    const failure = Reply.failureOf(value);
    // Nobody ends a reply whose handler has failed.
    if (failure !== undefined && raw !== 'piped' && !res.writableEnded) return this.#fail(exchange, failure.thrown);
    this.#reportFailure(exchange, value);
    discard(value);
    return null;
  }

  /** Reports the failure whose error reply middleware got. @param value that it answered with */
  #reportFailure(exchange: Exchange<Context>, value: HandlerResult, status?: number): void {
    const { handling } = exchange;
    const failure = Reply.failureOf(value);
    if (handling === null || !handling.hasFailed || failure === undefined) return;
    const { thrown } = failure;
    const error = mapError(thrown, handling);
    this.#report(exchange, thrown, error, status ?? error.statusCode);
  }

  #report(exchange: Exchange<Context>, thrown: unknown, error: MappedError, status: number): void {
    const { req, id, method, handling } = exchange;
    discard(thrown);
    if (handling !== null) {
      handling.hasFailed = false;
      handling.errorCode = error.errorCode.name;
      if (status >= 400 && handling.trace !== null) failTrace(handling.trace, thrown, error.errorCode, status);
    }
    const logger = handling === null ? this.options.logger : Context.loggerOf(handling);
    logFailure(logger, this.options.story, { error, thrown, statusCode: status, req, id, method, handling });
  }
}
