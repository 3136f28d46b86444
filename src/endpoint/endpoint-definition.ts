/* An endpoint that two services share: the one that implements it, and those that call it. */

import { builtin } from '../base/builtin.js';
import type { AnySchema, InputOf, OutputOf } from '../payload/standard-schema.js';
import { compilePath, type ParamsOf } from './pattern.js';
import { checkOptions, type DeclaredOptions } from './route-options.js';
import type { MaybeResponse, MaybeSchema, SchemasByStatus } from './schemas.js';

const { METHODS } = builtin('node:http');

/** Method, path, and what goes in and out; made by {@link defineEndpoint}. */
export interface EndpointDefinition<
  Path extends string = string,
  P extends MaybeSchema = MaybeSchema,
  Q extends MaybeSchema = MaybeSchema,
  H extends MaybeSchema = MaybeSchema,
  B extends MaybeSchema = MaybeSchema,
  R extends MaybeResponse = MaybeResponse,
> {
  /** The method, upper-case. */
  readonly method: string;
  /** The path, as a route has it. */
  readonly path: Path;
  /** The schemas and the other options, without middleware: each side has its own. */
  readonly options: DeclaredOptions<P, Q, H, B, R, never>;
}

/** A member of the input, which may be left out if nothing in it has to be given. */
type InputMember<Name extends string, Input> = object extends Input
  ? { readonly [N in Name]?: Input }
  : { readonly [N in Name]: Input };

/** Input of a call: the inputs of the schemas, and the path's parameters if no schema declares them. */
// `undefined` and `null` first: without `strictNullChecks`, they extend any type.
export type CallInput<Path extends string, P, Q, H, B> = (P extends undefined
  ? InputMember<'params', { readonly [Name in keyof ParamsOf<Path>]: string | number }>
  : P extends AnySchema
    ? InputMember<'params', InputOf<P> & { readonly [Name in keyof ParamsOf<Path>]: unknown }>
    : unknown) &
  (Q extends undefined ? unknown : Q extends AnySchema ? InputMember<'query', InputOf<Q>> : unknown) &
  (H extends undefined ? unknown : H extends AnySchema ? InputMember<'headers', InputOf<H>> : unknown) &
  (B extends undefined ? unknown : B extends AnySchema ? { readonly body: InputOf<B> } : unknown);

/** Result of a call: the status with its body, as the schema of that status returns it. */
export type CallResult<R> = R extends undefined
  ? TypedResponse<number, unknown>
  : R extends AnySchema
    ? TypedResponse<number, OutputOf<R>>
    : R extends SchemasByStatus
      ? { [S in keyof R]: TypedResponse<S, OutputOrNone<R[S]>> }[keyof R]
      : never;

type OutputOrNone<S> = S extends null ? undefined : S extends AnySchema ? OutputOf<S> : undefined;

/** Result of a typed call for one status. */
export interface TypedResponse<Status, Body> {
  /** The status. */
  readonly status: Status;
  /** The headers. */
  readonly headers: Headers;
  /** The body: the output of its schema; unknown without a schema, undefined for a status that has no body. */
  readonly body: Body;
}

/**
 * Defines the input and replies of an endpoint once, for `app.implement` on one side and `service.call` on the other.
 *
 * @param method any of `http.METHODS`, upper-case
 * @throws {TypeError} for an unknown method, an invalid path, and an unknown or invalid option
 *
 * @example
 * export const getOrder = defineEndpoint('GET', '/orders/:id', { response: Order });
 * app.implement(getOrder, (ctx) => ({ id: ctx.params.id })); // in one service
 * const { body } = await ctx.service('orders').call(getOrder, { params: { id: '7' } }); // in another service
 */
export function defineEndpoint<
  const Path extends string,
  P extends MaybeSchema = undefined,
  Q extends MaybeSchema = undefined,
  H extends MaybeSchema = undefined,
  B extends MaybeSchema = undefined,
  R extends MaybeResponse = undefined,
  const Method extends string = string,
>(
  method: string extends Method ? Method : Uppercase<Method>,
  path: Path,
  options: DeclaredOptions<P, Q, H, B, R, never> = {},
): EndpointDefinition<Path, P, Q, H, B, R> {
  assertMethod(method);
  compilePath(path);
  const checked = checkOptions(`${method} ${path}`, options as DeclaredOptions);
  return Object.freeze({ method, path, options: checked as typeof options });
}

/** Whether a value has the form of the results of {@link defineEndpoint}. @internal */
export function isEndpointDefinition(value: unknown): value is EndpointDefinition {
  if (typeof value !== 'object' || value === null || !('options' in value)) return false;
  return 'method' in value && typeof value.method === 'string' && 'path' in value && typeof value.path === 'string';
}

/** @throws {TypeError} for a method that is not one of `http.METHODS`, upper-case @internal */
export function assertMethod(method: string): void {
  if (METHODS.includes(method)) return;
  const upper = String(method).toUpperCase();
  const remedy = METHODS.includes(upper) ? `write "${upper}"` : 'use one of http.METHODS';
  throw new TypeError(`unknown method ${JSON.stringify(method)}; ${remedy}`);
}
