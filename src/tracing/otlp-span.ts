/*
 * Spans in the JSON form of OpenTelemetry's protocol: 64-bit numbers as decimal strings, ids in hexadecimal.
 */

import type { TraceSpan } from '../propagation/trace-context.js';

/** An attribute; one that is undefined is left out. */
export type Pair = [key: string, value: string | number | undefined];

/** Kinds of spans. */
export const SERVER = 2;
export const CLIENT = 3;

const ERROR = 2;
/** Flags beside the trace's own: whether it is known that the parent is remote, and whether it is. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;
/** A client may send 16 KiB in a header, and thousands of spans may wait. */
const MAX_LENGTH = 1024;
const MAX_STACK_LENGTH = 8192;

/** @param startMs since the Unix epoch @returns JSON */
export function toSpan(
  { traceId, spanId, parentId, flags }: TraceSpan,
  startMs: number,
  endMs: number,
  fields: { kind: number; name: string; pairs: Iterable<Pair>; isError: boolean; exception: unknown },
): string {
  const { kind, name, pairs, isError, exception } = fields;
  const remote = kind === SERVER && parentId !== undefined ? IS_REMOTE : 0;
  const other = { name: undefined, message: `a ${typeof exception} was thrown`, stack: undefined };
  const { name: type, message, stack } = exception instanceof Error ? exception : other;
  const thrown: Pair[] = [['exception.type', type], ['exception.message', message]];
  const event = { name: 'exception', timeUnixNano: toNanos(endMs) };
  return JSON.stringify({
    ...{ traceId, spanId, parentSpanId: parentId, name: cut(name, MAX_LENGTH), kind },
    flags: Number.parseInt(flags, 16) | HAS_IS_REMOTE | remote,
    startTimeUnixNano: toNanos(startMs),
    endTimeUnixNano: toNanos(endMs),
    ...toAttributes(pairs),
    events: exception === undefined ? undefined : [{ ...event, ...toAttributes(thrown, stack) }],
    status: isError ? { code: ERROR } : {},
  });
}

/** @param stack of an exception */
export function toAttributes(pairs: Iterable<Pair>, stack?: string): object {
  let cutCount = 0;
  const attributes: object[] = [];
  for (const [key, value] of pairs) {
    if (typeof value === 'number') attributes.push({ key, value: { intValue: String(value) } });
    else if (value !== undefined) {
      if (value.length > MAX_LENGTH) cutCount += 1;
      attributes.push({ key, value: { stringValue: cut(value, MAX_LENGTH) } });
    }
  }
  if (stack !== undefined)
    attributes.push({ key: 'exception.stacktrace', value: { stringValue: cut(stack, MAX_STACK_LENGTH) } });
  return cutCount === 0 ? { attributes } : { attributes, droppedAttributesCount: cutCount };
}

/** Half a surrogate pair has no form in UTF-8. */
function cut(text: string, length: number): string {
  return text.slice(0, length).replace(/\p{Surrogate}/gu, '\ufffd');
}

function toNanos(ms: number): string {
  return String(Math.round(ms * 1e6));
}
