/*
 * Runs a schema on a value.
 */

import type { SchemaIssue, SchemaResult, StandardProps } from './standard-schema.js';

/** A value that fits, as the schema gives it, or issues. */
export type Checked =
  { readonly value: unknown; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/** A schema failed to say whether a value fits. What it threw is the `cause`, for the log alone. */
export class SchemaFailure extends Error {
  override readonly name = 'SchemaFailure';
}

/**
 * Checks a value; a promise where the schema gives one.
 *
 * @param what for the message: `body of POST /users`
 * @throws {SchemaFailure} when the schema throws, rejects, or gives what is no result
 */
export function check(what: string, schema: StandardProps, value: unknown): Checked | Promise<Checked> {
  let result: SchemaResult | Promise<SchemaResult>;
  try {
    result = schema.validate(value);
    if (result instanceof Promise || 'then' in result) return settle(what, result);
    return toChecked(result);
  } catch (cause) {
    throw failure(what, cause);
  }
}

async function settle(what: string, result: PromiseLike<SchemaResult> | SchemaResult): Promise<Checked> {
  try {
    return toChecked(await result);
  } catch (cause) {
    throw failure(what, cause);
  }
}

/** Some validators give issues and a value at once; the issues count. */
function toChecked(result: SchemaResult): Checked {
  const { issues } = result;
  if (issues !== undefined && issues !== null) {
    if (!Array.isArray(issues)) throw new TypeError('issues is no list');
    return { issues: issues.length === 0 ? [{ message: '' }] : issues };
  }
  if (!('value' in result)) throw new TypeError('neither a value nor issues');
  return result;
}

function failure(what: string, cause: unknown): SchemaFailure {
  return new SchemaFailure(`the schema for the ${what} failed`, { cause });
}
