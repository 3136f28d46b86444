/*
 * Declarations of a route besides method, path and handler: checked once, merged, and frozen into one record.
 *
 * Options come with the route, or on its handler, which carries them as `routeOptions`. A route's option overrides its
 * handler's.
 */

import { Date } from '../base/clock.js';
import { TIME_LIMIT } from '../base/deadline.js';
import { ANYTHING, assertOptions, isRecord, listOf, OBJECT, oneOf, STRING } from '../base/options-check.js';
import { wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import { assertComplete, carry, exposureOf, toExposure } from './public-facing.js';
import type { AnyFunction, Exposure, PublicOptions } from './public-facing.js';
import { assertSchemas } from './schemas.js';
import type { MaybeResponse, MaybeSchema, OneSchema, Part, SchemaOrNone } from './schemas.js';

/** When a route was or will be given up; its replies carry these dates. */
export interface Deprecation {
  /** Since or from when it is deprecated; sent as `Deprecation` (RFC 9745). */
  readonly at?: Date | string | undefined;
  /** When it will cease to answer, not before `at`; sent as `Sunset` (RFC 8594). */
  readonly sunset?: Date | string | undefined;
  /** Where people read about it; sent as `Link` with `rel="deprecation"`. */
  readonly link?: URL | string | undefined;
}

/** A type of `ApiError`, by the members that all of its errors have in common. */
export interface ErrorType extends Function {
  /** The status of its errors. */
  readonly statusCode: number;
  /** The code of its errors. */
  readonly errorCode: { readonly name: string; readonly value: number };
  /** The message of its errors. */
  readonly message: string;
  /** The description of its errors. Default: the message. */
  readonly description: string | undefined;
  readonly prototype: Error;
}

/** Overload protection refuses `low` before `normal`, and `normal` before `high`. */
export type Priority = 'low' | 'normal' | 'high';

const DATE: Kind = {
  accepts: (value) => (value instanceof Date || typeof value === 'string') && !Number.isNaN(new Date(value).getTime()),
  give: 'a date',
};
const URL_TEXT: Kind = { accepts: (value) => URL.canParse(String(value)), give: 'a URL' };

/** Options of a route, which its group may declare for all of its routes. `M`: the type of middleware. */
// The type of middleware is not known on this floor.
export interface GroupOptions<M = AnyFunction> {
  /** Whether a gateway may let the public in; overrides the flag of `publicFacing` on the handler. */
  readonly public?: boolean | PublicOptions | undefined;
  /** Around the handler; a group's is around its routes, outside of what its `use` adds. The first is outermost. */
  readonly middleware?: readonly M[] | undefined;
  /** Maximum bytes of a request's body; may exceed the application's limit. A longer body is answered with 413. */
  readonly bodyLimit?: number | undefined;
  /**
   * Time limit in ms, from the start of the middleware. Then `ctx.signal` aborts and the reply is a 504, unless the
   * head of a stream is sent already.
   */
  readonly timeout?: number | undefined;
  /** Types of errors that the handler may throw, for documents and for typed calls. */
  readonly errors?: readonly ErrorType[] | undefined;
  /** Tags of the operation in the OpenAPI document; the tags of its groups are added. */
  readonly tags?: readonly string[] | undefined;
  /** `true` marks the route in the OpenAPI document; dates and a link are also sent with its replies. */
  readonly deprecated?: boolean | Deprecation | undefined;
  /** The order in which overload protection refuses requests. Default: `normal`. */
  readonly priority?: Priority | undefined;
  /** Merged into the operation of the OpenAPI document, last; `false` leaves the route out of the document. */
  readonly openapi?: object | false | undefined;
  /** The user's own data; available in `ctx.route.meta` and in `router.routes`. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

const GROUP: Kinds<GroupOptions> = {
  public: ANYTHING,
  middleware: listOf(isMiddleware, 'a list of functions (ctx, next) => reply; connect() adapts (req, res, next)'),
  bodyLimit: wholeNumber(0),
  timeout: TIME_LIMIT,
  errors: listOf(isErrorType, 'a list of ApiError types'),
  tags: listOf(STRING.accepts, 'a list of strings'),
  deprecated: {
    accepts: (value) => typeof value === 'boolean' || (typeof value === 'object' && value !== null),
    give: 'true, or { at, sunset, link }',
  },
  priority: oneOf(['low', 'normal', 'high']),
  openapi: { accepts: (value) => value === false || isRecord(value), give: 'an object, or false' },
  meta: OBJECT,
};

/** All options of a route. Its schemas are checked before the handler runs: the body last. */
export interface DeclaredOptions<
  P extends MaybeSchema = SchemaOrNone,
  Q extends MaybeSchema = SchemaOrNone,
  H extends MaybeSchema = SchemaOrNone,
  B extends MaybeSchema = SchemaOrNone,
  R extends MaybeResponse = MaybeResponse,
  M = AnyFunction,
> extends GroupOptions<M> {
  /** Schema of the path's parameters; each is a string. */
  readonly params?: OneSchema<P> | undefined;
  /** Schema of the query: a string for each name, or a list if the name is repeated or the schema says so. */
  readonly query?: OneSchema<Q> | undefined;
  /** Schema of the headers, names in lower case. */
  readonly headers?: OneSchema<H> | undefined;
  /** Schema of the body, which is JSON; undefined for a request without one. */
  readonly body?: OneSchema<B> | undefined;
  /** Schema of 2xx replies. The compiler checks it; with the option `validateResponses` the running service does. */
  readonly response?: R | undefined;
  /** One line for the OpenAPI document. */
  readonly summary?: string | undefined;
  /** CommonMark for the OpenAPI document. */
  readonly description?: string | undefined;
  /** Unique in the OpenAPI document. */
  readonly operationId?: string | undefined;
}

/** The options of a route besides its schemas. @internal */
export const WITHOUT_SCHEMAS: Kinds<Omit<DeclaredOptions, Part | 'response'>> = {
  ...GROUP,
  summary: STRING,
  description: STRING,
  operationId: STRING,
};

const ROUTE: Kinds<DeclaredOptions> = {
  ...WITHOUT_SCHEMAS,
  params: ANYTHING,
  query: ANYTHING,
  headers: ANYTHING,
  body: ANYTHING,
  response: ANYTHING,
};

/** A handler that carries options. */
export interface Carrier {
  /** The options that the handler carries. */
  readonly routeOptions: DeclaredOptions;
}

const DEPRECATION_KINDS: Kinds<Deprecation> = { at: DATE, sunset: DATE, link: URL_TEXT };

/**
 * Makes a handler carry options on top of those that it has; the handler passed in is not changed.
 *
 * @param given the handler, or the arguments of a decorator
 * @throws {TypeError} for an unknown or invalid option, and for a value that is not a function or method
 * @internal
 */
export function carryOptions(options: DeclaredOptions, given: readonly unknown[]): unknown {
  const checked = checkOptions('endpoint()', options);
  const exposure = toExposure('endpoint()', checked.public);
  const flag = exposure === undefined ? {} : { scope: exposure.public ? 'public' : undefined, params: exposure.params };
  return carry('endpoint', given, (handler) => ({ routeOptions: mergeOptions(checked, carriedBy(handler)), ...flag }));
}

const NOTHING: DeclaredOptions = Object.freeze({});
const UNEXPOSED: Exposure = { public: false, params: null };

/**
 * Reads what a route declares.
 *
 * @param what the route, for messages: `GET /users`
 * @param handler whose options and public flag apply where `given` leaves something out
 * @param shared defaults of its groups, checked
 * @returns its options, frozen, and who may reach it
 * @throws {TypeError} for an unknown or invalid option
 * @internal
 */
export function readDeclaration(
  what: string,
  handler: unknown,
  given?: DeclaredOptions,
  shared: DeclaredOptions = NOTHING,
): readonly [DeclaredOptions, Exposure] {
  assertComplete(what, handler);
  const carried = carriedBy(handler);
  const own = given === undefined ? carried : mergeOptions(checkOptions(what, given), carried);
  const exposure = toExposure(what, own.public) ?? exposureOf(handler) ?? toExposure(what, shared.public) ?? UNEXPOSED;
  return [addTo(shared, own), exposure];
}

/** Options of the inner one override the outer one's; `errors` and `tags` add up, the outer one's first. */
function addTo(outer: DeclaredOptions, inner: DeclaredOptions): DeclaredOptions {
  if (outer === NOTHING) return inner;
  const errors = union(outer.errors, inner.errors);
  return Object.freeze({ ...outer, ...inner, errors, tags: union(outer.tags, inner.tags) });
}

function union<T>(outer: readonly T[] = [], inner: readonly T[] = []): readonly T[] {
  return outer.length === 0 ? inner : Object.freeze([...new Set([...outer, ...inner])]);
}

/** An option of the outer one overrides the inner one's; middleware of both runs, the outer one's outside. */
function mergeOptions(outer: DeclaredOptions, inner: DeclaredOptions): DeclaredOptions {
  const middleware = [...(outer.middleware ?? []), ...(inner.middleware ?? [])];
  return Object.freeze({ ...inner, ...outer, middleware: Object.freeze(middleware) });
}

/**
 * Checks the options of a group, and adds the options of the group around it as defaults.
 *
 * @throws {TypeError} for an unknown or invalid option, and for an option that describes one route
 * @internal
 */
export function shareOptions(what: string, options: GroupOptions, outer = NOTHING): DeclaredOptions {
  assertOptions(what, options, GROUP);
  // The middleware of a group is around the middleware of its routes, and not a default.
  return addTo(outer, { ...checkOptions(what, options), middleware: undefined });
}

function carriedBy(handler: unknown): DeclaredOptions {
  if (typeof handler !== 'function' || !('routeOptions' in handler)) return NOTHING;
  return checkOptions('a handler', handler.routeOptions as DeclaredOptions);
}

/** A copy that nobody can change any more, without the options that are undefined. @internal */
export function checkOptions(what: string, options: DeclaredOptions): DeclaredOptions {
  assertOptions(what, options, ROUTE);
  assertSchemas(what, options);
  const { deprecated } = options;
  if (typeof deprecated === 'object') assertDeprecation(`${what}: deprecated`, deprecated);
  const { public: isPublic, params }: Partial<Exposure> = toExposure(what, options.public) ?? {};
  // An iterable of names can be read only once.
  const given = Object.entries({ ...options, public: params ? { params } : isPublic });
  const copies = given.filter(([, value]) => value !== undefined).map(([name, value]) => [name, frozenCopy(value)]);
  return Object.freeze(Object.fromEntries(copies) as DeclaredOptions);
}

/** @throws {TypeError} for an unknown or invalid option, and for a sunset before the deprecation (RFC 9745, section 4) */
function assertDeprecation(what: string, deprecated: Deprecation): void {
  assertOptions(what, deprecated, DEPRECATION_KINDS);
  const { at = -Infinity, sunset = Infinity } = deprecated;
  if (new Date(sunset) < new Date(at))
    throw new TypeError(`sunset of ${what} is ${String(sunset)}, before at, ${String(at)}; give a later sunset`);
}

/** Middleware for Connect takes a third parameter. @internal */
export function isMiddleware(value: unknown): value is AnyFunction {
  return typeof value === 'function' && value.length < 3;
}

function isErrorType(type: unknown): boolean {
  if (typeof type !== 'function' || !('statusCode' in type) || !('errorCode' in type)) return false;
  return type.prototype instanceof Error && typeof type.statusCode === 'number' && typeof type.errorCode === 'object';
}

/** A frozen copy of a list or a plain object; other values, and schemas, unchanged. */
function frozenCopy(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze([...(value as unknown[])]);
  const isPlain = isRecord(value) && Object.getPrototypeOf(value) === Object.prototype && !('~standard' in value);
  return isPlain ? Object.freeze({ ...value }) : value;
}
