/*
 * The trace that a request belongs to, on its way from one service to the next.
 *
 * A service that records no spans passes the headers on unchanged. With a span id of its own, the next service would
 * name a parent that nobody has recorded. Only where spans are recorded does each request and each call get one.
 *
 * Source: W3C "Trace Context" (level 2: with the random flag) and "Baggage".
 */

import type { IncomingHttpHeaders } from 'node:http';
import { random, randomHex } from '../base/clock.js';

/** A span: one request, or one attempt of a call. */
export interface TraceSpan {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  /** The span that this one is a part of; undefined at the root of a trace. */
  readonly parentId: string | undefined;
  /**
   * The flags sampled (1) and random (2), as two hex digits. A subscriber to `postern.request` may set them at `start`.
   */
  flags: string;
}

/** version "-" trace-id "-" parent-id "-" flags, no id all zeros; a later version may add more (section 3.2.4). */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?$/;

/**
 * One key=value of tracestate, or nothing, with the blanks around it (section 3.3.2). A value may have blanks, but not
 * at its end. The maximum lengths keep matching linear: a run of blanks is read in at most 256 ways.
 */
const STATE_MEMBER =
  /^[ \t]*(?:([a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])[ \t]*)?$/;

/** Headers that carry a trace, and what applications add to it. */
export const TRACE_HEADERS = ['traceparent', 'tracestate', 'baggage'] as const;

const MAX_STATE_MEMBERS = 32;
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
/** Sampled and random. */
const KNOWN_FLAGS = 0x03;
/** Flags of a trace that begins here: its id is random, and it is sampled, since somebody records its spans. */
const SAMPLED_RANDOM = '03';

/** Decides whether a trace is recorded; undefined: as its flags say. */
export type Sampler = ((span: RequestSpan) => boolean) | undefined;

/** Begins a span of a request or a job: in the trace of its headers or, where they hold no valid one, in a new one. */
export function beginRequestSpan(headers: IncomingHttpHeaders, sample?: Sampler): TraceSpan {
  const { traceId, spanId, parentId, flags } = new RequestSpan(headers, sample);
  return { traceId, spanId, parentId, flags };
}

/** The same, with ids that are made when they are first read: a request that is not sampled seldom needs its own. */
export class RequestSpan implements TraceSpan {
  readonly parentId: string | undefined;
  flags: string;
  #traceId: string | undefined;
  #spanId: string | undefined;
  #chance: number | undefined;

  constructor(headers: IncomingHttpHeaders, sample?: Sampler) {
    const given = parseTraceparent(headers);
    this.#traceId = given?.traceId;
    this.parentId = given?.parentId;
    this.flags = given?.flags ?? SAMPLED_RANDOM;
    if (sample !== undefined && sample(this) !== isSampled(this)) this.flags = `0${Number(this.flags) ^ 1}`;
  }

  get traceId(): string {
    if (this.#traceId === undefined) {
      const id = randomHex(TRACE_BYTES);
      const chance = this.#chance?.toString(16).padStart(12, '0') ?? id.slice(18, 30);
      this.#traceId = id.slice(0, 18) + chance + id.slice(30);
    }
    return this.#traceId;
  }

  get spanId(): string {
    return (this.#spanId ??= randomHex(SPAN_BYTES));
  }

  /**
   * A whole number below 2 ** 48: digits 18 to 29 of the trace id. The last 14 digits are random in every trace id (W3C
   * Trace Context, level 2), so services that decide by them decide alike.
   */
  get chance(): number {
    const given = this.#traceId;
    return (this.#chance ??= given === undefined ? Math.floor(random() * 2 ** 48) : parseInt(given.slice(18, 30), 16));
  }
}

/** The id of the sampled trace that a request belongs to, by its span or else by its headers. */
export function sampledTraceId(span: TraceSpan | undefined, headers: IncomingHttpHeaders): string | undefined {
  const trace = span ?? parseTraceparent(headers);
  return trace !== undefined && isSampled(trace) ? trace.traceId : undefined;
}

/** Begins the span of one attempt of a call, a child of the span of its caller's request. */
export function beginCallSpan({ traceId, spanId, flags }: TraceSpan): TraceSpan {
  return { traceId, spanId: randomHex(SPAN_BYTES), parentId: spanId, flags };
}

/** The ids of the span of a request or a job, as members of its log lines; no members if nothing exports the span. */
export function traceIds(of: { readonly span: TraceSpan | undefined; readonly spanExport: object | null }): object {
  const { span, spanExport } = of;
  return span === undefined || spanExport === null ? {} : { trace_id: span.traceId, span_id: span.spanId };
}

/** Whether a trace is recorded. */
export function isSampled({ flags }: Pick<TraceSpan, 'flags'>): boolean {
  return /[13579bdf]$/i.test(flags);
}

/**
 * The id and the trace of a request, for what is sent on its behalf.
 *
 * @param span the innermost span that somebody records; without one the trace is passed on unchanged
 */
export function outgoingHeaders(
  { id, headers }: { readonly id: string; readonly headers: IncomingHttpHeaders },
  span: TraceSpan | undefined,
): Record<string, string> {
  const sent: Record<string, string> = { 'x-request-id': id };
  for (const name of TRACE_HEADERS)
    if (headers[name] !== undefined) sent[name] = String(headers[name]);
  if (span === undefined) return sent;
  sent['traceparent'] = `00-${span.traceId}-${span.spanId}-${span.flags}`;
  // Another trace's tracestate, or a broken one, is not sent. Baggage belongs to the application, so it always is.
  const isOfTrace = parseTraceparent(headers)?.traceId === span.traceId;
  if (!isOfTrace || !isTracestate(sent['tracestate'])) delete sent['tracestate'];
  return sent;
}

/** Undefined without the header, and if it is invalid; of its flags, `flags` has only the known ones. */
function parseTraceparent({ traceparent }: IncomingHttpHeaders): Omit<TraceSpan, 'spanId'> | undefined {
  if (traceparent === undefined) return undefined;
  const [, version, traceId = '', parentId = '', flags = '', rest] = TRACEPARENT.exec(String(traceparent)) ?? [];
  if (version === undefined || (version === '00' && rest !== undefined)) return undefined;
  return { traceId, parentId, flags: `0${Number.parseInt(flags, 16) & KNOWN_FLAGS}` };
}

/** Whether the text is a list with at least one member (section 3.3.2). */
function isTracestate(text = ''): boolean {
  let members = 0;
  for (const part of text.split(',')) {
    const found = STATE_MEMBER.exec(part);
    if (found?.[1] !== undefined) members += 1;
    if (found === null || members > MAX_STATE_MEMBERS) return false;
  }
  return members > 0;
}
