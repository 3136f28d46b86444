/*
 * Makes a span of each request and each job of an application, and of each attempt of the calls made for them. It
 * subscribes to `postern.call`, as any program can, and to `postern.export`, a channel of its own: a subscriber to
 * `postern.request` records the requests of every application of the process, but an exporter the requests of one.
 * Spec: OpenTelemetry, "Semantic conventions for HTTP spans" (stable).
 */

import * as diagnostics from 'node:diagnostics_channel';
import { Date, monotonicNow, monotonicOrigin } from '../base/clock.js';
import { requestOrigin } from '../answer/client-address.js';
import type { Context, ServingOptions } from '../answer/context.js';
import type { RequestTraceMessage } from '../answer/tracing.js';
import type { Job, JobTraceMessage } from '../job/job.js';
import type { CallTraceMessage } from '../mesh/call-tracing.js';
import { isSampled, type CallSpan, type TraceSpan } from '../propagation/trace-context.js';
import type { MatchedRoute } from '../routing/router.js';
import { STANDARD_METHOD } from '../wire/head.js';
import type { Exporter } from './exporter.js';
import {
  attributes, encodeAttributes, field, FIXED_32, ID, list, message, NUMBER, pairField, TEXT, TIME,
  type Form, type Structure,
} from '../payload/protobuf.js';
import type { ExportSettings } from './variables.js';

const SERVER = 2;
const CLIENT = 3;
const CONSUMER = 5;
const ERROR = 2;
/** Flags next to the trace's own: whether it is known that the parent is remote, and whether it is. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;
/** Span times follow the system clock again when they are this far from it, in ms. */
const MAX_DRIFT_MS = 50;
/** A client may send 16 KiB in a header, and thousands of spans may wait. */
const MAX_LENGTH = 1024;
const MAX_STACK_LENGTH = 8192;

const ATTRIBUTES = 9;
const ATTRIBUTE = pairField(ATTRIBUTES);
const EVENT = {
  timeUnixNano: field(1, TIME), name: field(2, TEXT), attributes: attributes(3),
  droppedAttributesCount: field(4, NUMBER),
};
const SPAN = message({
  traceId: field(1, ID), spanId: field(2, ID), parentSpanId: field(4, ID), flags: field(16, FIXED_32),
  name: field(5, TEXT), kind: field(6, NUMBER), startTimeUnixNano: field(7, TIME), endTimeUnixNano: field(8, TIME),
  attributes: attributes(ATTRIBUTES), droppedAttributesCount: field(10, NUMBER), events: list(11, message(EVENT)),
  status: field(15, message({ code: field(3, NUMBER) })),
});

/**
 * Classes of the application. They are passed, not imported: a tool may load what `import()` asks for with a second
 * copy of every file (tsx with CommonJS), and the classes of a copy recognise no request of the application.
 */
export interface TracedClasses {
  readonly Context: typeof Context;
  readonly CallSpan: typeof CallSpan;
  readonly Job: typeof Job;
}

/** Begins to export spans; requests' log lines get the ids of their traces. @returns a function that ends it */
export function exportSpans(
  app: ServingOptions, exporter: Exporter, sample: ExportSettings['sample'], { Context, CallSpan, Job }: TracedClasses,
): () => void {
  const isExported = (of: object): boolean =>
    of instanceof Context
      ? Context.optionsOf(of) === app && !Context.isMonitoring(of)
      : of instanceof Job && Job.optionsOf(of) === app;
  const { form } = exporter.settings;
  let originMs = monotonicOrigin();
  const add = (kind: number, trace: TraceSpan, startedAtMs: number, fields: SpanFields): void => {
    const endedAtMs = monotonicNow();
    if (Math.abs(Date.now() - originMs - endedAtMs) > MAX_DRIFT_MS) originMs = Date.now() - endedAtMs;
    exporter.add(encodeSpan(form, kind, trace, originMs + startedAtMs, originMs + endedAtMs, fields));
  };
  const unsubscribers: (() => void)[] = [];
  const on = <Message>(event: string, listener: (message: Message) => void): void => {
    const channel = `tracing:postern.${event}`;
    diagnostics.subscribe(channel, listener as diagnostics.ChannelListener);
    unsubscribers.push(() => diagnostics.unsubscribe(channel, listener as diagnostics.ChannelListener));
  };
  const latest: LatestFields = new Map();
  on('export:end', (message: RequestTraceMessage | JobTraceMessage) => {
    const { trace } = message;
    if (!isSampled(trace) || !isExported(sourceOf(message)) || !exporter.hasRoomOrDrops()) return;
    if ('job' in message) return add(CONSUMER, trace, message.job.startedAtMs, toJobFields(message));
    const { ctx } = message;
    const { req, startedAtMs } = ctx.exchange;
    const origin = requestOrigin(req, ctx.target, app.trustProxy);
    add(SERVER, trace, startedAtMs, toServerFields(message, req.httpVersion, origin, latest, form));
  });
  on('call:asyncEnd', (message: CallTraceMessage) => {
    const { trace } = message;
    const origin = trace === undefined ? undefined : CallSpan.originOf(trace);
    if (trace === undefined || origin === undefined || !isSampled(trace) || !isExported(origin.caller)) return;
    if (exporter.hasRoomOrDrops()) add(CLIENT, trace, origin.startedAtMs, toClientFields(message));
  });
  if (sample !== undefined)
    on('export:start', (message: RequestTraceMessage | JobTraceMessage) => {
      const { trace } = message;
      if (!isExported(sourceOf(message)) || sample(trace) === isSampled(trace)) return;
      trace.flags = `0${Number(`0x${trace.flags}`) ^ 1}`;
    });
  app.exportsTraces = true;
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
  };
}

/** The parts of a span besides its ids, its kind and its times. */
export interface SpanFields extends Omit<Cut, 'attributes'> {
  readonly name: string;
  /** A text: encoded. */
  readonly attributes: Texts | string;
  readonly isError: boolean;
  /** A thrown value, which becomes an event. */
  readonly exception?: unknown;
}

/** @param startMs since the Unix epoch, as is `endMs` @returns a Span of the protocol */
export function encodeSpan(
  form: Form, kind: number, trace: TraceSpan, startMs: number, endMs: number, of: SpanFields,
): string {
  const { traceId, spanId, parentId, flags } = trace;
  const { isError, exception, ...fields } = of;
  const remote = kind === SERVER && parentId !== undefined ? IS_REMOTE : 0;
  return SPAN[form]({
    traceId, spanId, parentSpanId: parentId, flags: HAS_IS_REMOTE | remote | Number(`0x${flags}`),
    kind, startTimeUnixNano: startMs, endTimeUnixNano: endMs,
    events: exception === undefined ? undefined : toEvents(exception, endMs),
    status: isError ? { code: ERROR } : {},
    ...fields,
  });
}

/** For each route, the part of its latest span that its next request may have as well, and what that depends on. */
type LatestFields = Map<MatchedRoute | null, SpanFields & { readonly key: string; readonly attributes: string }>;

function toServerFields(
  message: RequestTraceMessage, httpVersion: string, origin: string, latest: LatestFields, form: Form,
): SpanFields {
  const { ctx, method, route, statusCode = 0, errorCode, error } = message;
  const errorType = statusCode >= 500 ? (errorCode?.name ?? String(statusCode)) : undefined;
  const key = `${method} ${statusCode} ${errorType} ${httpVersion} ${origin}`;
  let last = latest.get(route);
  if (last?.key !== key) {
    const scheme = /^https?/.exec(origin)?.[0];
    const more = { 'http.route': route?.path, 'url.scheme': scheme, 'network.protocol.version': httpVersion };
    const { attributes, ...fields } = toFields(method, route?.path, origin, statusCode, errorType, more);
    latest.set(route, (last = { key, ...fields, attributes: encodeAttributes(form, ATTRIBUTE, attributes) }));
  }
  const { name, isError, attributes, droppedAttributesCount } = last;
  const userAgent = ctx.headers['user-agent'];
  const own = cut({ 'url.path': ctx.target.path, 'client.address': ctx.ip, 'user_agent.original': userAgent });
  return {
    name, isError, attributes: encodeAttributes(form, ATTRIBUTE, own.attributes, attributes),
    droppedAttributesCount: own.droppedAttributesCount ?? droppedAttributesCount,
    exception: statusCode === 500 ? error : undefined,
  };
}

function toClientFields(message: CallTraceMessage): SpanFields {
  const { service, method, route, url, attempt, statusCode, errorCode, error } = message;
  const failure = Object(error) as { errorCode?: typeof errorCode; name?: string };
  const isError = error !== undefined || (statusCode ?? 0) >= 400;
  const errorType = String((errorCode ?? failure.errorCode)?.name ?? failure.name ?? statusCode ?? '_OTHER');
  return toFields(method, route, url, statusCode, isError ? errorType : undefined, {
    'url.full': url,
    'service.peer.name': service,
    'http.request.resend_count': attempt > 1 ? attempt - 1 : undefined,
    'network.protocol.version': statusCode === undefined ? undefined : '1.1',
  });
}

function toJobFields({ job, error }: JobTraceMessage): SpanFields {
  const { name = '_OTHER' } = Object(error) as { name?: string };
  const isError = error !== undefined;
  return { name: job.name, isError, exception: error, ...cut({ 'error.type': isError ? name : undefined }) };
}

function sourceOf(message: RequestTraceMessage | JobTraceMessage): object {
  return 'job' in message ? message.job : message.ctx;
}

/** The fields that spans of requests and of calls share. @param errorType undefined for no error */
function toFields(
  method: string, route: string | undefined, origin: string, statusCode: number | undefined,
  errorType: string | undefined, more: Texts,
): SpanFields & Cut {
  const isKnown = STANDARD_METHOD.test(method);
  const all = cut({
    'http.request.method': isKnown ? method : '_OTHER',
    'http.request.method_original': isKnown ? undefined : method,
    'http.response.status_code': statusCode,
    ...toServer(origin),
    'error.type': errorType,
    ...more,
  });
  const name = (isKnown ? method : 'HTTP') + (route === undefined ? '' : ` ${route}`);
  return { name, isError: errorType !== undefined, ...all };
}

/** Attributes of the server at a URL. */
export function toServer(url = ''): { readonly 'server.address'?: string; readonly 'server.port'?: number } {
  if (!URL.canParse(url)) return {};
  const { hostname, port, protocol } = new URL(url);
  return { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) };
}

function toEvents(exception: unknown, timeUnixNano: number): Structure<typeof EVENT>[] {
  const thrown = { name: undefined, message: `a ${typeof exception} was thrown`, stack: undefined };
  try {
    const { name, message, stack } = exception instanceof Error ? exception : thrown;
    const given = { 'exception.type': name, 'exception.message': message, 'exception.stacktrace': stack };
    return [{ name: 'exception', timeUnixNano, ...cut(given) }];
  } catch {
    // A getter of the thrown value threw, such as `stack` with Error.prepareStackTrace.
    return [];
  }
}

type Texts = Readonly<Record<string, string | number | undefined>>;

interface Cut {
  readonly attributes: Texts;
  /** How many texts were cut; undefined for none. */
  readonly droppedAttributesCount: number | undefined;
}

/** Cuts texts that are too long. Anything but a whole number becomes a text. */
function cut(given: Texts): Cut {
  const attributes: Record<string, string | number> = {};
  let droppedAttributesCount: number | undefined;
  for (const key in given) {
    const value = given[key];
    if (value === undefined) continue;
    const max = key === 'exception.stacktrace' ? MAX_STACK_LENGTH : MAX_LENGTH;
    // A thrown error may have a message that is an object.
    const text = String(value);
    if (text.length > max) droppedAttributesCount = (droppedAttributesCount ?? 0) + 1;
    attributes[key] = Number.isSafeInteger(value) ? Number(value) : text.slice(0, max);
  }
  return { attributes, droppedAttributesCount };
}
