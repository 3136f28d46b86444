/*
 * What a route takes and gives, by schema, and what the compiler makes of that.
 */

import { assertSchema, type AnySchema, type InputOf } from '../payload/standard-schema.js';

/** A schema, or none. */
export type SchemaOrNone = AnySchema | undefined;

/** Schemas by name, which are not a schema yet: {@link Given} says what to do. */
type Shape = Readonly<Record<string, AnySchema>>;

/** What a caller may give as a schema; a shape gets a message. */
export type MaybeSchema = AnySchema | Shape | undefined;

/** The schema; for a shape, a message in its place. */
type Given<S> = S extends SchemaOrNone ? S : 'these are several schemas: make them one, z.object({ ... })';

/** Schemas by status; null for a reply without a body. */
export type SchemasByStatus = Readonly<Record<number, AnySchema | null>>;

/** What a 2xx reply is: one schema for all of them, or those that there are. */
export type MaybeResponse = AnySchema | SchemasByStatus | undefined;

/** The schemas of a route; checked before the handler runs, params, query and headers together, then the body. */
export interface Schemas<
  P extends MaybeSchema,
  Q extends MaybeSchema,
  H extends MaybeSchema,
  B extends MaybeSchema,
  R extends MaybeResponse,
> {
  /** Of the parameters of the path, each a string. */
  readonly params?: Given<P> | undefined;
  /** Of the query: a string for each name, or a list where it is repeated or the schema says so. */
  readonly query?: Given<Q> | undefined;
  /** Of the headers, names in lower case. */
  readonly headers?: Given<H> | undefined;
  /** Of the body, which is JSON; undefined where a request has none. */
  readonly body?: Given<B> | undefined;
  /** Of 2xx replies; held to by the compiler, and while the service runs with the option `validateResponses`. */
  readonly response?: R | undefined;
}

/** What a handler gets beside its context: what the schemas gave, under exactly the names that were declared. */
// Looked up in place and not by an alias: that is a tenth of what a route costs the compiler.
export type HandlerInput<
  P extends MaybeSchema,
  Q extends MaybeSchema,
  H extends MaybeSchema,
  B extends MaybeSchema,
> = (P extends AnySchema ? { readonly params: NonNullable<P['~standard']['types']>['output'] } : unknown) &
  (Q extends AnySchema ? { readonly query: NonNullable<Q['~standard']['types']>['output'] } : unknown) &
  (H extends AnySchema ? { readonly headers: NonNullable<H['~standard']['types']>['output'] } : unknown) &
  (B extends AnySchema ? { readonly body: NonNullable<B['~standard']['types']>['output'] } : unknown);

/** A schema of a reply as it goes out: what it takes. */
export type BodyOf<S> = S extends AnySchema ? InputOf<S> : undefined;

/** Parts of a request, in the order in which they are checked. @internal */
export const PARTS = ['params', 'query', 'headers', 'body'] as const;
/** @internal */
export type Part = (typeof PARTS)[number];

/** The schemas of a route, whatever they are. */
export interface AnySchemas extends Schemas<SchemaOrNone, SchemaOrNone, SchemaOrNone, SchemaOrNone, MaybeResponse> {}

/**
 * @param what whose schemas they are, for the message
 * @throws {TypeError} for one that is none, and for a status that is no 2xx
 *
 * @internal
 */
export function assertSchemas(what: string, schemas: AnySchemas): void {
  for (const part of PARTS) if (schemas[part] !== undefined) assertSchema(`${part} of ${what}`, schemas[part]);
  const { response } = schemas;
  if (response === undefined) return;
  if (isSchema(response)) return assertSchema(`response of ${what}`, response);
  if (typeof response !== 'object' || response === null)
    throw new TypeError(
      `response of ${what} is no schema; give one, or one for each status: { 200: schema, 204: null }`,
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
