/* Schemas of a route's input and replies, and the types that the compiler derives from them. */

import type { AnyFunction } from './public-facing.js';
import { assertSchema, type AnySchema, type InputOf } from '../payload/standard-schema.js';

/** A schema, or undefined. */
export type SchemaOrNone = AnySchema | undefined;

/** A schema as a caller may pass it; several schemas by name are rejected with the message of {@link OneSchema}. */
export type MaybeSchema = AnySchema | Readonly<Record<string, AnySchema>> | undefined;

/** The schema; for several schemas by name, a message in its place. */
export type OneSchema<S> = S extends SchemaOrNone ? S : 'these are several schemas: make them one, z.object({ ... })';

/** Schemas by status; null for a reply without a body. */
export type SchemasByStatus = Readonly<Record<number, AnySchema | null>>;

/** Schema of the 2xx replies: one for all of them, or one for each status. */
export type MaybeResponse = AnySchema | SchemasByStatus | undefined;

/** Input of a handler besides its context: the schemas' results, under exactly the names that were declared. */
// Looked up in place and not by an alias: that is a tenth of what a route costs the compiler. In a tuple, since it puts
// `never` in place of a missing schema to learn which function a wrapper should return.
export type HandlerInput<P, Q, H, B> = ([P] extends [undefined]
  ? unknown
  : P extends AnySchema
    ? { readonly params: NonNullable<P['~standard']['types']>['output'] }
    : unknown) &
  ([Q] extends [undefined]
    ? unknown
    : Q extends AnySchema
      ? { readonly query: NonNullable<Q['~standard']['types']>['output'] }
      : unknown) &
  ([H] extends [undefined]
    ? unknown
    : H extends AnySchema
      ? { readonly headers: NonNullable<H['~standard']['types']>['output'] }
      : unknown) &
  ([B] extends [undefined]
    ? unknown
    : B extends AnySchema
      ? { readonly body: NonNullable<B['~standard']['types']>['output'] }
      : unknown);

/** Body as a handler returns it: the input of the reply's schema. */
// Without `strictNullChecks`, null extends any type.
export type BodyOf<S> = S extends null ? undefined : S extends AnySchema ? Fixed<InputOf<S>> : undefined;

/** A type that also takes what was written in place, of which the compiler knows each literal, read-only. */
// With `T`, since of a generic type the compiler knows only that it is itself.
export type Fixed<T> =
  | T
  | (T extends AnyFunction ? never : T extends object ? { readonly [Name in keyof T]: Fixed<T[Name]> } : never);

/** Parts of a request, in the order in which they are checked. @internal */
export const PARTS = ['params', 'query', 'headers', 'body'] as const;
/** @internal */
export type Part = (typeof PARTS)[number];

/**
 * @param what whose schemas they are, for the message
 * @throws {TypeError} if one is not a schema, and for a status outside 2xx
 * @internal
 */
export function assertSchemas(
  what: string,
  schemas: { readonly [Name in Part]?: unknown } & { readonly response?: MaybeResponse },
): void {
  for (const part of PARTS) if (schemas[part] !== undefined) assertSchema(`${part} of ${what}`, schemas[part]);
  const { response } = schemas;
  if (response === undefined) return;
  if (isSchema(response)) return assertSchema(`response of ${what}`, response);
  if (typeof response !== 'object' || response === null)
    throw new TypeError(
      `response of ${what} is not a schema; pass one, or one for each status: { 200: schema, 204: null }`,
    );
  if (Object.keys(response).length === 0)
    throw new TypeError(`response of ${what} has no status; give at least one, { 200: schema }`);
  for (const [status, schema] of Object.entries(response)) {
    if (!/^2\d\d$/.test(status))
      throw new TypeError(`response of ${what} has the status ${JSON.stringify(status)}; give those from 200 to 299`);
    if (schema !== null) assertSchema(`response ${status} of ${what}`, schema);
  }
}

/** The schema of a status; null where it has no body, undefined where it is not declared. @internal */
export function responseSchema(response: AnySchema | SchemasByStatus, status: number): AnySchema | null | undefined {
  return isSchema(response) ? response : Object.hasOwn(response, status) ? response[status] : undefined;
}

/** Whether a response is one schema for every status. @internal */
export function isSchema(response: AnySchema | SchemasByStatus): response is AnySchema {
  return (
    (typeof response === 'object' || typeof response === 'function') && response !== null && '~standard' in response
  );
}
