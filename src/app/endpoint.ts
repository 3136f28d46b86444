/* Handlers that carry the schemas and options of their route. */

import type { Context, HandlerResult, Middleware } from '../answer/context.js';
import type { ApiError, HttpError } from '../base/errors.js';
import type { Reply } from '../answer/reply.js';
import type { Sendable } from '../answer/sendable.js';
import type { AnySchema } from '../payload/standard-schema.js';
import { waiting, type AnyFunction } from '../endpoint/public-facing.js';
import { carryOptions, type Carrier, type DeclaredOptions } from '../endpoint/route-options.js';
import type { Params } from '../routing/router.js';
import type { BodyOf, HandlerInput, MaybeResponse, MaybeSchema, SchemaOrNone } from '../endpoint/schemas.js';

/** Options of a route; they are checked when the route is registered. */
export type RouteOptions<
  P extends MaybeSchema = SchemaOrNone,
  Q extends MaybeSchema = SchemaOrNone,
  H extends MaybeSchema = SchemaOrNone,
  B extends MaybeSchema = SchemaOrNone,
  R extends MaybeResponse = MaybeResponse,
> = DeclaredOptions<P, Q, H, B, R, Middleware>;

/** Statuses that a `response` does not cover. */
type OtherStatus = 300 | 301 | 302 | 303 | 304 | 307 | 308 | 400 | 401 | 403 | 404 | 409 | 410 | 412 | 422 | 429 | 503;
type Success = 200 | 201 | 202 | 203 | 206;
/** Statuses that handlers may mean to send without declaring them: {@link Declared} says what to do. */
type Known = Success | 204 | 205 | 402 | 405 | 406 | 408 | 413 | 415 | 416 | 418 | 423 | 424 | 428 | 451 | ServerStatus;
type ServerStatus = 500 | 501 | 502 | 504;

/** Result of a handler with a declared `response`: input of its schemas, or any reply outside 2xx. */
export type ResultOf<R> = R extends undefined
  ? HandlerResult
  : R extends AnySchema
    ? Undeclared<R> | BodyOf<R> | Reply<BodyOf<R>, Success>
    : Undeclared<R> | OfStatuses<R>;

type Undeclared<R> =
  Reply<unknown, OtherStatus | Exclude<Known, DeclaredStatus<R>>> | ApiError | HttpError | Response;

type DeclaredStatus<R> = R extends AnySchema ? Success : keyof R;

/** Resolves to a message for a reply with a status that `response` does not have. */
export type Declared<Result, R> = R extends undefined
  ? unknown
  : // The type of all results, which the compiler takes when a handler does not fit.
    ResultOf<R> extends Result
    ? unknown
    : true extends RepliesUndeclared<Result, R>
    ? 'response does not have the status of this reply: add it, { 202: schema }, or throw an ApiError'
    : unknown;

/** The compiler asks with `any` in place of a generic type: then nothing is known. */
type RepliesUndeclared<Result, R> = [unknown] extends [Result]
  ? false
  : Result extends Reply<unknown, infer Status>
    ? IsUndeclared<Status, R>
    : false;

type IsUndeclared<Status, R> = Status extends OtherStatus | DeclaredStatus<R> ? false : true;

type OfStatuses<R> = {
  [Status in keyof R]: Status extends number ? OfStatus<R[Status], Status> : never;
}[keyof R];

/** A plain value is a 200, and nothing a 204, also where 200 has no body. */
type OfStatus<S, Status extends number> =
  | Reply<BodyOf<S>, Status>
  | (Status extends 200 ? (S extends null ? never : BodyOf<S>) : Status extends 204 ? undefined | void : never);

/** The type of every handler whose result has nothing that JSON loses, and no status that `response` lacks. */
export type Sends<Handles extends AnyFunction, R = undefined> = (
  ...args: never[]
) => Sendable<ReturnType<Handles>> & Declared<Awaited<ReturnType<Handles>>, R>;

/**
 * A route's function; it gets the results of the schemas in its options.
 *
 * `Handles` is the type of the function itself: a result that cannot be sent makes it a message.
 */
// The check is beside the function: in its result, it would hide literals. It reads `Handles`, because the compiler
// takes a spread promise for a promise, and the promised value for `Result`. No value is both a literal and a function:
// it makes compilers before TypeScript 6.0 keep the literal of `() => 'a'`, which would become a string.
export type EndpointHandler<Path, P, Q, H, B, R, Result = ResultOf<R>, Handles = unknown> = ((
  ctx: Context<Path>,
  input: HandlerInput<P, Q, H, B>,
) => Result | Promise<Result> | (('' | 0 | true) & AnyFunction) | ([R] extends [undefined] ? unknown : never)) &
  // For the type that a wrapper should return, a compiler before TypeScript 5.9 puts `never` in place of the handler.
  ([Handles] extends [(...args: never[]) => never]
    ? unknown
    : Handles extends (...args: never[]) => infer Returned
      ? Sendable<Returned> & Declared<Awaited<Returned>, R>
      : // The compiler infers `Handles` here. Beside the function, it would hide where a result is wrong.
        Handles);

/** Gives a handler, or a method that it decorates, options. */
export interface EndpointFlag<P, Q, H, B, R> {
  /** Gives a handler options; the handler passed in is not changed. */
  <F extends EndpointMethod<P, Q, H, B, R>>(handler: F & Sends<F, R>): F & Carrier;
  /** Gives the method of a view that it decorates options. */
  // A result would be compared with the method: a second error, which hides the first.
  <F extends EndpointMethod<P, Q, H, B, R>>(method: F & Sends<F, R>, context: ClassMethodDecoratorContext): void;
  /** Does the same with `experimentalDecorators`. */
  <F extends EndpointMethod<P, Q, H, B, R>>(
    target: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<F & Sends<F, R>>,
  ): void;
}

/** A method or function that an {@link EndpointFlag} takes. */
export type EndpointMethod<P, Q, H, B, R> = (
  ctx: never,
  input: HandlerInput<P, Q, H, B>,
) => ResultOf<R> | Promise<ResultOf<R>>;

/**
 * A handler that carries route options, as a wrapper or as a standard (TC39) method decorator.
 *
 * The function passed in is not changed. The options of the route, and of an `endpoint` around it, override the options
 * that a handler carries; middleware adds up.
 *
 * @throws {TypeError} for an unknown or invalid option, and for anything but a function or method
 *
 * @example
 * export const create = endpoint({ body: NewUser }, (_ctx, { body }) => users.create(body));
 * app.post('/users', create);
 */
export function endpoint<
  Path = Params,
  P extends MaybeSchema = undefined,
  Q extends MaybeSchema = undefined,
  H extends MaybeSchema = undefined,
  B extends MaybeSchema = undefined,
  R extends MaybeResponse = undefined,
  const Result extends ResultOf<R> = ResultOf<R>,
  Handles = unknown,
>(
  options: RouteOptions<P, Q, H, B, R>,
  handler: EndpointHandler<Path, P, Q, H, B, R, Result, Handles>,
): CarryingHandler<Path, HandlerInput<P, Q, H, B>>;
/** Gives the method of a view that it decorates options, or the handler that the result is called with. */
export function endpoint<
  P extends MaybeSchema = undefined,
  Q extends MaybeSchema = undefined,
  H extends MaybeSchema = undefined,
  B extends MaybeSchema = undefined,
  R extends MaybeResponse = undefined,
>(options: RouteOptions<P, Q, H, B, R>): EndpointFlag<P, Q, H, B, R>;
export function endpoint(options: RouteOptions, handler?: (ctx: Context, input: never) => HandlerResult): unknown {
  if (handler !== undefined) return carryOptions(options, [handler]);
  return waiting((...given: readonly unknown[]) => carryOptions(options, given));
}

/** Result of {@link endpoint}; the pipeline passes the input to it, and so may a test. */
export type CarryingHandler<Path, Input> = ((
  ctx: Context<Path>,
  input?: Input,
) => HandlerResult | Promise<HandlerResult>) &
  Carrier;

/** Methods that a view may have, and that applications and groups have functions for. */
export const VERBS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const;
