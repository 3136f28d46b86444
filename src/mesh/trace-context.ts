/**
 * The trace that a request belongs to, on its way from one service to the next.
 *
 * Source: W3C "Trace Context" (level 2: with the random flag) and "Baggage".
 */

import type { IncomingHttpHeaders } from 'node:http';

/** What is passed on of a request's trace. */
export interface TraceContext {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** The flags that are defined, sampled (1) and random (2), as two hex digits. */
  readonly flags: string;
  readonly tracestate: string | undefined;
  readonly baggage: string | undefined;
}

/** version "-" trace-id "-" parent-id "-" flags; a later version may add more after a dash (section 4.3). */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?$/;

/** One member of tracestate (section 3.3.2). Fixed lengths keep it linear. */
const STATE_MEMBER = /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

const MAX_STATE_MEMBERS = 32;
const MAX_BAGGAGE_BYTES = 8192;
const KNOWN_FLAGS = 0x03;
const RANDOM_FLAG = '02';

/** Reads the trace of a request: an invalid or missing `traceparent` begins a new one, without a `tracestate`. */
export function parseTraceContext(headers: IncomingHttpHeaders): TraceContext {
  const baggage = parseBaggage(textOf(headers['baggage']));
  const [, version, traceId = '', parentId = '', flags = '', rest] = TRACEPARENT.exec(textOf(headers['traceparent'])) ?? [];
  const valid = version !== undefined && version !== 'ff' && !(version === '00' && rest !== undefined) && !isZero(traceId) && !isZero(parentId);
  if (!valid) return { traceId: randomHex(16), flags: RANDOM_FLAG, tracestate: undefined, baggage };
  const known = (Number.parseInt(flags, 16) & KNOWN_FLAGS).toString(16).padStart(2, '0');
  return { traceId, flags: known, tracestate: parseTracestate(textOf(headers['tracestate'])), baggage };
}

/** The headers of one request of the trace, each with a parent id of its own. */
export function traceHeaders({ traceId, flags, tracestate, baggage }: TraceContext): Record<string, string> {
  return {
    traceparent: `00-${traceId}-${randomHex(8)}-${flags}`,
    ...(tracestate === undefined ? {} : { tracestate }),
    ...(baggage === undefined ? {} : { baggage }),
  };
}

/** The list as it came, or undefined when it is empty or breaks the grammar (section 3.3.1). */
function parseTracestate(text: string): string | undefined {
  let members = 0;
  for (const part of text.split(',')) {
    const member = trimOws(part);
    if (member === '') continue;
    members += 1;
    if (members > MAX_STATE_MEMBERS || !STATE_MEMBER.test(member)) return undefined;
  }
  return members === 0 ? undefined : text;
}

/** As it came, or undefined when it is longer than every platform passes on, or holds what no member may. */
function parseBaggage(text: string): string | undefined {
  return text !== '' && text.length <= MAX_BAGGAGE_BYTES && /^[\t\x20-\x7e]*$/.test(text) ? text : undefined;
}

function textOf(header: string | string[] | undefined): string {
  return Array.isArray(header) ? header.join(',') : (header ?? '');
}

/** A regular expression that trims the end would be quadratic on runs of spaces. */
function trimOws(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isOws(text, start)) start += 1;
  while (end > start && isOws(text, end - 1)) end -= 1;
  return text.slice(start, end);
}

function isOws(text: string, index: number): boolean {
  return text[index] === ' ' || text[index] === '\t';
}

function isZero(id: string): boolean {
  return /^0+$/.test(id);
}

function randomHex(bytes: number): string {
  return process.getBuiltinModule('node:crypto').randomBytes(bytes).toString('hex');
}
