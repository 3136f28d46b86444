/*
 * Schemas of any validator that implements Standard Schema, version 1 (https://standardschema.dev).
 *
 * A schema is known by its property `~standard`, not by its class: schemas of arktype are functions.
 */

/** Any schema, as far as the compiler has to know it: each member more would cost it time on every route. */
export interface AnySchema {
  /** The part of Standard Schema that the compiler reads. */
  readonly '~standard': { readonly types?: { readonly input: unknown; readonly output: unknown } | undefined };
}

/** A schema in full, for those who write one by hand. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  /** The validator, as Standard Schema defines it. */
  readonly '~standard': StandardProps<Input, Output>;
}

/** The property `~standard` of a schema. */
export interface StandardProps<Input = unknown, Output = Input> {
  /** The version of Standard Schema. */
  readonly version: 1;
  /** The name of the library that made the schema. */
  readonly vendor: string;
  /** Validates a value. */
  readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
  /** Only for the compiler. */
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  /** The sibling specification, Standard JSON Schema; not every validator has it. */
  readonly jsonSchema?: JsonSchemaConverter | undefined;
}

/** Result of a validation: the issues, or the value if there are none. */
export type SchemaResult<Output = unknown> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/** Why a value doesn't fit, and where. */
export interface SchemaIssue {
  /** Why the value does not fit. */
  readonly message: string;
  /** Where the value does not fit: keys from the outside in. Default: the value itself. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Writes a schema as JSON Schema; throws if JSON Schema cannot express it. */
export interface JsonSchemaConverter {
  /** Returns the JSON Schema of the input. */
  readonly input: (options: JsonSchemaOptions) => Record<string, unknown>;
  /** Returns the JSON Schema of the output. */
  readonly output: (options: JsonSchemaOptions) => Record<string, unknown>;
}

/** How a schema is written as JSON Schema. */
export interface JsonSchemaOptions {
  /** A version of JSON Schema, such as `draft-2020-12`. */
  readonly target: string;
  /** Options of the library of the schema. */
  readonly libraryOptions?: Record<string, unknown> | undefined;
}

/** Type of a schema's input. */
export type InputOf<S extends AnySchema> = NonNullable<S['~standard']['types']>['input'];

/** Type of a schema's output. */
export type OutputOf<S extends AnySchema> = NonNullable<S['~standard']['types']>['output'];

/**
 * @param what whose schema it is, for the message: `body of POST /users`
 * @throws {TypeError} when `value` is not a schema
 */
export function assertSchema(what: string, value: unknown): void {
  if (propsOf(value) === undefined)
    throw new TypeError(`${what} is not a schema; pass one that has ~standard, such as one of zod, valibot or arktype`);
}

/** The property `~standard` of a schema; undefined for anything else. */
export function propsOf(schema: unknown): StandardProps | undefined {
  const props = (schema as Partial<StandardSchemaV1> | null | undefined)?.['~standard'];
  return typeof props?.validate === 'function' ? props : undefined;
}
