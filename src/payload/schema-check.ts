/*
 * Runs a schema on a value, and writes its findings in a form that may leave the service: bounded, on one line, without
 * the value. Of an issue only message and path are read: validators keep what the client sent in other members.
 */

import type { Finding } from '../base/errors.js';
import { ignoreRejection } from '../base/promises.js';
import type { SchemaIssue, SchemaResult, StandardProps } from './standard-schema.js';

/** A schema failed to say whether a value fits. Its error is the `cause`, which only the log has. */
class SchemaFailure extends Error {
  override readonly name = 'SchemaFailure';
}

/**
 * Checks a value; returns a promise if the schema does.
 *
 * @param what for the message: `body of POST /users`
 * @throws {SchemaFailure} when the schema throws, rejects, or returns something else than a result
 */
export function check(what: string, schema: StandardProps, value: unknown): SchemaResult | Promise<SchemaResult> {
  const fail = (cause: unknown): never => {
    ignoreRejection(cause);
    throw new SchemaFailure(`the schema for the ${what} failed`, { cause });
  };
  try {
    const result = schema.validate(value);
    const isLater = result instanceof Promise || 'then' in result;
    return isLater ? Promise.resolve(result).then(toChecked).catch(fail) : toChecked(result);
  } catch (cause) {
    return fail(cause);
  }
}

/** Some validators give issues and a value at once; the issues count. */
function toChecked(result: SchemaResult): SchemaResult {
  const { issues } = result;
  if (issues !== undefined && issues !== null) {
    if (!Array.isArray(issues)) throw new TypeError('issues is not a list');
    return { issues: issues.length === 0 ? [{ message: '' }] : issues };
  }
  if (!('value' in result)) throw new TypeError('neither a value nor issues');
  return result;
}

const MAX_DETAIL = 200;
/** A pointer that would be longer ends at the last member that fits: names of members may come from the client. */
const MAX_POINTER = 512;
/** Control characters, line and paragraph separators. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;

export function toFinding(issue: SchemaIssue): Finding {
  return { pointer: `#${issuePathOf(issue, encodeURIComponent)}`, detail: detailOf(issue) };
}

/**
 * For people: `body/address/street: Too small (and 2 more)`.
 *
 * @param count of all findings; the first issue is the one that is described
 */
export function describeFindings(where: string, [first]: readonly SchemaIssue[], count: number): string {
  const issue = first ?? { message: '' };
  const more = count === 1 ? '' : ` (and ${count - 1} more)`;
  return `${where}${issuePathOf(issue, oneLine)}: ${detailOf(issue)}${more}`;
}

function detailOf({ message }: SchemaIssue): string {
  const text = oneLine(typeof message === 'string' ? message.slice(0, MAX_DETAIL * 4) : '').trim();
  if (text === '') return 'Invalid.';
  return text.length <= MAX_DETAIL ? text : `${text.slice(0, MAX_DETAIL - 1).replace(/\p{Cs}$/u, '')}…`;
}

function issuePathOf({ path }: SchemaIssue, encode: (text: string) => string): string {
  let pointer = '';
  for (const item of path ?? []) {
    const key = typeof item === 'object' && item !== null ? item.key : item;
    const name = String(key);
    if (name.length > MAX_POINTER) break;
    const next = `${pointer}/${encode(name.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1'))}`;
    if (next.length > MAX_POINTER) break;
    pointer = next;
  }
  return pointer;
}

function oneLine(text: string): string {
  return text.toWellFormed().replace(UNPRINTABLE, ' ');
}
