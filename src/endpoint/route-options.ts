/*
 * What is declared of a route besides method, path and handler: checked once, merged, and frozen into one record.
 *
 * Options come with the route, or on its handler, which carries them as `routeOptions`; where both have one, the
 * route's wins.
 */

import { Date } from '../base/clock.js';
import { TIME_LIMIT } from '../base/deadline.js';
import {
  ANYTHING,
  assertOptions,
  listOf,
  OBJECT,
  STRING,
  wholeNumber,
  type Kind,
  type Kinds,
} from '../base/options-check.js';
import {
  carry,
  exposureOf,
  isPublic,
  toExposure,
  type AnyFunction,
  type Exposure,
  type PublicOptions,
} from './public-facing.js';
import { assertSchemas, type AnySchemas } from './schemas.js';

/** When a route was or will be given up, told on its replies. */
export interface Deprecation {
  /** Since or from when it is deprecated; sent as `Deprecation` (RFC 9745). */
  readonly at?: Date | string | undefined;
  /** When it will cease to answer; sent as `Sunset` (RFC 8594). */
  readonly sunset?: Date | string | undefined;
  /** Where people read about it; sent as `Link` with `rel="deprecation"`. */
  readonly link?: URL | string | undefined;
}

/** A type of `ApiError`, by what its raises have in common. */
export interface ErrorType extends Function {
  readonly statusCode: number;
  readonly errorCode: { readonly name: string; readonly value: number };
  readonly message: string;
  readonly description: string | undefined;
  readonly prototype: Error;
}

/** What may be declared of any route, schemas aside. */
export interface RouteSettings {
  /** Whether a gateway may let the public in, as `publicFacing` says; the option wins where both speak. */
  readonly public?: boolean | PublicOptions | undefined;
  /** Most bytes of a request's body, also more than the application's; beyond it 413. */
  readonly bodyLimit?: number | undefined;
  /** In ms from the arrival of a request; then `ctx.signal` aborts and the reply is a 504. */
  readonly timeout?: number | undefined;
  /** Types of errors that the handler may throw, for documents and for typed calls. */
  readonly errors?: readonly ErrorType[] | undefined;
  /** One line for the OpenAPI document. */
  readonly summary?: string | undefined;
  /** CommonMark for the OpenAPI document. */
  readonly description?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  /** Unique in the OpenAPI document. */
  readonly operationId?: string | undefined;
  /** `true` marks the route in the OpenAPI document; dates and a link also go out with its replies. */
  readonly deprecated?: boolean | Deprecation | undefined;
  /** The user's own; in `ctx.route.meta` and in `router.routes`. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** All of it, with functions around the handler whose types are not known here. */
export interface DeclaredOptions extends RouteSettings, AnySchemas {
  readonly middleware?: readonly AnyFunction[] | undefined;
}

/** The record of one route, frozen. @internal */
export interface RouteRecord extends Exposure {
  readonly schemas: AnySchemas;
  readonly middleware: readonly AnyFunction[];
  readonly bodyLimit: number | undefined;
  readonly timeout: number | undefined;
  readonly errors: readonly ErrorType[];
  readonly summary: string | undefined;
  readonly description: string | undefined;
  readonly tags: readonly string[];
  readonly operationId: string | undefined;
  readonly deprecated: boolean | Deprecation;
  readonly meta: Readonly<Record<string, unknown>> | undefined;
}

/** A handler that carries options. */
export interface Carrier {
  readonly routeOptions: DeclaredOptions;
}

const DATE: Kind = {
  accepts: (value) => (value instanceof Date || typeof value === 'string') && !Number.isNaN(new Date(value).getTime()),
  give: 'a date',
};
const URL_TEXT: Kind = { accepts: (value) => URL.canParse(String(value)), give: 'a URL' };

const KINDS: Kinds<DeclaredOptions> = {
  params: ANYTHING,
  query: ANYTHING,
  headers: ANYTHING,
  body: ANYTHING,
  response: ANYTHING,
  public: ANYTHING,
  middleware: listOf((each) => typeof each === 'function', 'a list of functions (ctx, next) => reply'),
  bodyLimit: wholeNumber(0),
  timeout: TIME_LIMIT,
  errors: listOf(isErrorType, 'a list of ApiError types'),
  summary: STRING,
  description: STRING,
  tags: listOf(STRING.accepts, 'a list of strings'),
  operationId: STRING,
  deprecated: {
    accepts: (value) => typeof value === 'boolean' || (typeof value === 'object' && value !== null),
    give: 'true, or { at, sunset, link }',
  },
  meta: OBJECT,
};

const DEPRECATION_KINDS: Kinds<Deprecation> = { at: DATE, sunset: DATE, link: URL_TEXT };

/**
 * A handler that carries options on top of those that it has; the one passed in is left as it was.
 *
 * @param context given where it stands as a standard (TC39) decorator
 * @throws {TypeError} for an unknown or invalid option, and for what is no function or method
 *
 * @internal
 */
export function carryOptions<F extends AnyFunction>(
  options: DeclaredOptions,
  handler: F,
  context?: ClassMethodDecoratorContext,
): F & Carrier {
  const checked = checkOptions('endpoint()', options);
  const exposure = toExposure('endpoint()', checked.public);
  const flag = exposure === undefined ? {} : { scope: exposure.public ? 'public' : undefined, params: exposure.params };
  return carry('endpoint', handler, { routeOptions: mergeOptions(checked, carriedBy(handler)), ...flag }, context);
}

const NOTHING: DeclaredOptions = Object.freeze({});
const NONE: readonly never[] = Object.freeze([]);
const PRIVATE = createRecord(NOTHING, { public: false, params: null });

/**
 * The record of a route.
 *
 * @param what the route, for messages: `GET /users`
 * @param handler whose options and public flag count where `options` leaves something out
 * @throws {TypeError} for an unknown or invalid option
 *
 * @internal
 */
export function toRecord(what: string, handler: unknown, options?: DeclaredOptions): RouteRecord {
  const carried = carriedBy(handler);
  const declared = options === undefined ? carried : mergeOptions(checkOptions(what, options), carried);
  if (declared === NOTHING && !isPublic(handler)) return PRIVATE;
  return createRecord(declared, toExposure(what, declared.public) ?? exposureOf(handler));
}

// Spread, they would cost what all the rest of a registration does.
function createRecord(declared: DeclaredOptions, { public: isOpen, params }: Exposure): RouteRecord {
  const { bodyLimit, timeout, summary, description, operationId, meta } = declared;
  return Object.freeze({
    public: isOpen,
    params,
    schemas: declared,
    middleware: declared.middleware ?? NONE,
    bodyLimit,
    timeout,
    errors: declared.errors ?? NONE,
    summary,
    description,
    tags: declared.tags ?? NONE,
    operationId,
    deprecated: declared.deprecated ?? false,
    meta,
  });
}

/** An option of the outer one wins; middleware of both runs, the outer one's around the inner one's. */
function mergeOptions(outer: DeclaredOptions, inner: DeclaredOptions): DeclaredOptions {
  const middleware = [...(outer.middleware ?? []), ...(inner.middleware ?? [])];
  return Object.freeze({ ...inner, ...outer, middleware: Object.freeze(middleware) });
}

function carriedBy(handler: unknown): DeclaredOptions {
  if (typeof handler !== 'function' || !('routeOptions' in handler)) return NOTHING;
  return checkOptions('a handler', handler.routeOptions as DeclaredOptions);
}

/** A copy that nobody can change any more, without the options that are undefined. @internal */
export function checkOptions(what: string, options: DeclaredOptions): DeclaredOptions {
  assertOptions(what, options, KINDS);
  assertSchemas(what, options);
  const { deprecated } = options;
  if (typeof deprecated === 'object') assertOptions(`${what}: deprecated`, deprecated, DEPRECATION_KINDS);
  const open = toExposure(what, options.public);
  const given = Object.entries({ ...options, public: open === undefined ? undefined : toOption(open) });
  const copies = given.filter(([, value]) => value !== undefined).map(([name, value]) => [name, frozenCopy(value)]);
  return Object.freeze(Object.fromEntries(copies) as DeclaredOptions);
}

/** As the option that says it: an iterable of names can be read but once. */
function toOption({ public: isOpen, params }: Exposure): boolean | PublicOptions {
  return isOpen && params !== null ? { params } : isOpen;
}

function isErrorType(type: unknown): boolean {
  if (typeof type !== 'function' || !('statusCode' in type) || !('errorCode' in type)) return false;
  return type.prototype instanceof Error && typeof type.statusCode === 'number' && typeof type.errorCode === 'object';
}

/** Lists and plain objects as they are now; a schema is nobody's to copy. */
function frozenCopy(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze([...(value as unknown[])]);
  const isPlain =
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype &&
    !('~standard' in value);
  return isPlain ? Object.freeze({ ...value }) : value;
}
