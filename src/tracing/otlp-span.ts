/*
 * Spans in the JSON form of OpenTelemetry's protocol: 64-bit numbers as decimal strings, ids in hexadecimal. The text
 * is put together without objects, which takes half the time, and is ASCII, so that it is encoded by copying.
 */

import { STANDARD_METHOD } from '../wire/head.js';
import type { TraceSpan } from '../propagation/trace-context.js';

/** Flags next to the trace's own: whether it is known that the parent is remote, and whether it is. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;
/** A client may send 16 KiB in a header, and thousands of spans may wait. */
const MAX_LENGTH = 1024;
const MAX_STACK_LENGTH = 8192;

/** Attributes of a span, an event or a resource. */
export class Attributes {
  #text: string;
  #cutCount: number;

  /** @param base attributes to begin with */
  constructor(base?: Attributes) {
    this.#text = base === undefined ? '' : base.#text;
    this.#cutCount = base === undefined ? 0 : base.#cutCount;
  }

  /** @param value a whole number or a text; undefined adds nothing @param max a longer text is cut to this length */
  add(key: string, value: string | number | undefined, max: number = MAX_LENGTH): this {
    if (value === undefined) return this;
    // A thrown error may have a message that is an object, and a collector would reject the whole batch for it.
    const text = String(value);
    if (text.length > max) this.#cutCount += 1;
    const json = Number.isSafeInteger(value) ? `"intValue":"${text}"` : `"stringValue":${quote(text, max)}`;
    this.#text += `${this.#text === '' ? '{' : ',{'}"key":${quote(key)},"value":{${json}}}`;
    return this;
  }

  /** @returns members of a JSON object */
  toString(): string {
    return `"attributes":[${this.#text}]${this.#cutCount === 0 ? '' : `,"droppedAttributesCount":${this.#cutCount}`}`;
  }
}

/** The parts of a span besides its ids and times. */
export interface SpanFields {
  readonly isServer: boolean;
  /** Members of a JSON object: name, kind and status. */
  readonly head: string;
  readonly attributes: Attributes;
  /** A thrown value, which becomes an event. */
  readonly exception?: unknown;
}

/**
 * Begins the fields of a span, with the attributes that spans of requests and of calls share.
 *
 * @param origin begins with the URL's scheme, host and port
 * @param errorType undefined for no error
 */
export function beginFields(
  isServer: boolean,
  method: string,
  route: string | undefined,
  origin: string,
  statusCode: number | undefined,
  errorType: string | undefined,
): SpanFields {
  const isKnown = STANDARD_METHOD.test(method);
  const name = (isKnown ? method : 'HTTP') + (route === undefined ? '' : ` ${route}`);
  const status = errorType === undefined ? '' : '"code":2';
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  const attributes = new Attributes()
    .add('http.request.method', isKnown ? method : '_OTHER')
    .add('http.request.method_original', isKnown ? undefined : method)
    .add('http.response.status_code', statusCode)
    .add('server.address', url?.hostname)
    .add('server.port', url && (Number(url.port) || (url.protocol === 'https:' ? 443 : 80)))
    .add('error.type', errorType);
  return { isServer, head: `"name":${quote(name)},"kind":${isServer ? 2 : 3},"status":{${status}}`, attributes };
}

/** @param startMs since the Unix epoch, as is `endMs` @returns JSON */
export function toSpan(trace: TraceSpan, startMs: number, endMs: number, fields: SpanFields): string {
  const { traceId, spanId, parentId, flags } = trace;
  const { isServer, head, attributes, exception } = fields;
  const parent = parentId === undefined ? '' : `","parentSpanId":"${parentId}`;
  const remote = isServer && parentId !== undefined ? IS_REMOTE : 0;
  const end = toNanos(endMs);
  const events = exception === undefined ? '' : toEvents(exception, end);
  return (
    `{"traceId":"${traceId}","spanId":"${spanId}${parent}","flags":${HAS_IS_REMOTE | remote | Number(`0x${flags}`)},` +
    `"startTimeUnixNano":"${toNanos(startMs)}","endTimeUnixNano":"${end}",${head},${attributes.toString()}${events}}`
  );
}

function toEvents(exception: unknown, at: string): string {
  const thrown = { name: undefined, message: `a ${typeof exception} was thrown`, stack: undefined };
  try {
    const { name, message, stack } = exception instanceof Error ? exception : thrown;
    const attributes = new Attributes().add('exception.type', name).add('exception.message', message);
    attributes.add('exception.stacktrace', stack, MAX_STACK_LENGTH);
    return `,"events":[{"name":"exception","timeUnixNano":"${at}",${attributes.toString()}}]`;
  } catch {
    // A getter of the thrown value threw, such as `stack` with Error.prepareStackTrace.
    return '';
  }
}

/** @returns a JSON string of ASCII */
function quote(text: string, max = MAX_LENGTH): string {
  // Half of a surrogate pair, sent or left by the cut, has no UTF-8 form: collectors reject the whole batch for it.
  const json = JSON.stringify(text.slice(0, max).toWellFormed());
  if (!/[^\0-\x7f]/.test(json)) return json;
  return json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Formats seconds and nanoseconds apart: V8 formats whole numbers of 32 bits many times faster than larger ones. */
function toNanos(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${seconds}${String(1e9 + Math.min(999_999_999, Math.round((ms - seconds * 1000) * 1e6))).slice(1)}`;
}
