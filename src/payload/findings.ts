/*
 * What a schema finds wrong, in a form that can leave the service: bounded, on one line, and without the value.
 *
 * Of an issue nothing is read but its message and its path: in other members, validators keep what the client sent.
 */

import type { SchemaIssue } from './standard-schema.js';

/** One finding. */
export interface Finding {
  /** RFC 6901, as a URI fragment: `#/address/street`, or `#` for the whole. */
  readonly pointer: string;
  /** In the words of the schema's author, on one line; at most 200 characters. */
  readonly detail: string;
}

const MAX_DETAIL = 200;
/** A pointer that would be longer ends at the last member that fits: names of members may come from the client. */
const MAX_POINTER = 512;
/** Control characters, line and paragraph separators; half a surrogate pair has no form in UTF-8. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;
const HALF_PAIR = /\p{Cs}/gu;

export function toFinding(issue: SchemaIssue): Finding {
  return { pointer: `#${pathOf(issue, encodeURIComponent)}`, detail: detailOf(issue) };
}

/**
 * For people: `body/address/street: Too small (and 2 more)`.
 *
 * @param count of the findings that this one stands for
 */
export function describeFindings(where: string, [first]: readonly SchemaIssue[], count: number): string {
  const issue = first ?? { message: '' };
  const more = count === 1 ? '' : ` (and ${count - 1} more)`;
  return `${where}${pathOf(issue, oneLine)}: ${detailOf(issue)}${more}`;
}

function detailOf({ message }: SchemaIssue): string {
  const text = oneLine(typeof message === 'string' ? message.slice(0, MAX_DETAIL * 4) : '').trim();
  if (text === '') return 'Invalid.';
  return text.length <= MAX_DETAIL ? text : `${text.slice(0, MAX_DETAIL - 1).replace(HALF_PAIR, '')}…`;
}

function pathOf({ path }: SchemaIssue, encode: (text: string) => string): string {
  let pointer = '';
  for (const item of path ?? []) {
    const key = typeof item === 'object' && item !== null ? item.key : item;
    const name = String(key);
    if (name.length > MAX_POINTER) break;
    const next = `${pointer}/${encode(name.replace(HALF_PAIR, '\ufffd').replaceAll('~', '~0').replaceAll('/', '~1'))}`;
    if (next.length > MAX_POINTER) break;
    pointer = next;
  }
  return pointer;
}

function oneLine(text: string): string {
  return text.replace(HALF_PAIR, '\ufffd').replace(UNPRINTABLE, ' ');
}
