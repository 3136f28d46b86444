/*
 * Makes a span of each request and each job of an application, and of each attempt of the calls made for them.
 * Spec: OpenTelemetry, "Semantic conventions for HTTP spans" (stable).
 */

import { Date, monotonicNow, monotonicOrigin } from '../base/clock.js';
import { requestOrigin } from '../answer/client-address.js';
import type { EndedJob, RequestTraceMessage, ServingOptions } from '../answer/context.js';
import type { CallTraceMessage } from '../mesh/call-tracing.js';
import { isSampled, type Sampler, type TraceSpan } from '../propagation/trace-context.js';
import type { MatchedRoute } from '../routing/router.js';
import { STANDARD_METHOD } from '../wire/head.js';
import { ITEM, type Exporter } from './exporter.js';
import {
  ATTRIBUTES, encodeAttributes, FIXED_32, ID, list, message, NUMBER, tagOf, TEXT, TIME, type Attributes,
  type Form, type Structure,
} from '../payload/protobuf.js';

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

const EVENT = { timeUnixNano: [1, TIME], name: [2, TEXT], attributes: [3, ATTRIBUTES] } as const;
const SPAN = message({
  traceId: [1, ID], spanId: [2, ID], parentSpanId: [4, ID], flags: [16, FIXED_32], name: [5, TEXT], kind: [6, NUMBER],
  startTimeUnixNano: [7, TIME], endTimeUnixNano: [8, TIME], attributes: [9, ATTRIBUTES],
  events: [11, list(message(EVENT))], status: [15, message({ code: [3, NUMBER] })],
});
const ATTRIBUTE = tagOf(9);

/** Begins to export spans. @returns a function that ends it */
export function exportSpans(app: ServingOptions, exporter: Exporter, sample: Sampler): () => void {
  const { form } = exporter.settings;
  let originMs = monotonicOrigin();
  const add = (kind: number, trace: TraceSpan | undefined, startedAtMs: number, toFields: () => SpanFields): void => {
    if (trace === undefined || !isSampled(trace) || !exporter.hasRoomOrDrops()) return;
    const endedAtMs = monotonicNow();
    if (Math.abs(Date.now() - originMs - endedAtMs) > MAX_DRIFT_MS) originMs = Date.now() - endedAtMs;
    exporter.add(encodeSpan(form, kind, trace, originMs + startedAtMs, originMs + endedAtMs, toFields()));
  };
  const latest: LatestFields = new Map();
  app.spanExport = {
    sample,
    addRequest(request) {
      const { ctx, trace } = request;
      const { req, startedAtMs } = ctx.exchange;
      const toOrigin = (): string => requestOrigin(req, ctx.target, app.trustProxy);
      add(SERVER, trace, startedAtMs, () => toServerFields(request, toOrigin(), latest, form));
    },
    addJob(ended, startedAtMs) {
      add(CONSUMER, ended.trace, startedAtMs, () => toJobFields(ended));
    },
    addCall(message, startedAtMs) {
      add(CLIENT, message.trace, startedAtMs, () => toClientFields(message));
    },
  };
  return () => {
    app.spanExport = null;
  };
}

/** The parts of a span besides its ids, its kind and its times. */
export interface SpanFields {
  readonly name: string;
  /** A text: encoded. */
  readonly attributes: Attributes | string;
  readonly isError: boolean;
  /** A thrown value, `undefined` too, which becomes an event. */
  readonly thrown?: { readonly error?: unknown } | undefined;
}

/** @param startMs since the Unix epoch, as is `endMs` @returns a Span of the protocol */
export function encodeSpan(
  form: Form, kind: number, trace: TraceSpan, startMs: number, endMs: number, of: SpanFields,
): string {
  const { traceId, spanId, parentId, flags } = trace;
  const { name, attributes, isError, thrown } = of;
  const remote = kind !== CLIENT && parentId !== undefined ? IS_REMOTE : 0;
  const span = {
    traceId, spanId, parentSpanId: parentId, flags: HAS_IS_REMOTE | remote | Number(`0x${flags}`),
    name, kind, startTimeUnixNano: startMs, endTimeUnixNano: endMs, attributes,
    events: thrown === undefined ? undefined : toEvents(thrown.error, endMs),
    status: isError ? { code: ERROR } : {},
  };
  return SPAN[form](span, ITEM);
}

/** For each route, the parts of its latest span that its next request may have as well, and what they depend on. */
type LatestFields = Map<MatchedRoute | null, SpanFields & Latest>;

interface Latest {
  readonly key: string;
  /** Encoded, without the attributes of the client. */
  readonly attributes: string;
  path?: string;
  ip?: string;
  agent?: string | undefined;
  /** Encoded. */
  all?: string;
}

function toServerFields(ended: RequestTraceMessage, origin: string, latest: LatestFields, form: Form): SpanFields {
  const { ctx, statusCode = 0, errorCode } = ended;
  const { method, route, target, ip, headers } = ctx;
  const { httpVersion } = ctx.exchange.req;
  const errorType = statusCode >= 500 ? (errorCode?.name ?? String(statusCode)) : undefined;
  const key = `${method} ${statusCode} ${errorType} ${httpVersion} ${origin}`;
  let last = latest.get(route);
  if (last?.key !== key) {
    const scheme = /^https?/.exec(origin)?.[0];
    const more = { 'http.route': route?.path, 'url.scheme': scheme, 'network.protocol.version': httpVersion };
    const { attributes, ...fields } = toFields(method, route?.path, origin, statusCode, errorType, more);
    latest.set(route, (last = { key, ...fields, attributes: flatten(encodeAttributes(form, attributes, ATTRIBUTE)) }));
  }
  const { path } = target;
  const agent = headers['user-agent'];
  let { all } = last;
  if (all === undefined || last.path !== path || last.ip !== ip || last.agent !== agent) {
    const own = cut({ 'url.path': path, 'client.address': ip, 'user_agent.original': agent });
    all = flatten(encodeAttributes(form, own, ATTRIBUTE, last.attributes));
    Object.assign(last, { path, ip, agent, all });
  }
  const { name, isError } = last;
  return { name, isError, attributes: all, thrown: statusCode === 500 && 'error' in ended ? ended : undefined };
}

function toClientFields(message: CallTraceMessage): SpanFields {
  const { service, method, route, url, attempt, statusCode, errorCode } = message;
  const isError = 'error' in message || (statusCode ?? 0) >= 400;
  const errorType = errorCode?.name ?? ('error' in message ? typeOf(message.error) : String(statusCode));
  return toFields(method, route, url, statusCode, isError ? errorType : undefined, {
    'url.full': url,
    'service.peer.name': service,
    'http.request.resend_count': attempt > 1 ? attempt - 1 : undefined,
    'network.protocol.version': statusCode === undefined ? undefined : '1.1',
  });
}

function toJobFields(ended: EndedJob): SpanFields {
  const { name } = ended.job;
  if (!('error' in ended)) return { name, isError: false, attributes: {} };
  return { name, isError: true, thrown: ended, attributes: cut({ 'error.type': typeOf(ended.error) }) };
}

/** The name of an error's code, or else of its class. */
function typeOf(error: unknown): string {
  try {
    const { errorCode, name } = Object(error) as { errorCode?: { name: unknown }; name?: unknown };
    return String(errorCode?.name ?? name ?? '_OTHER');
  } catch {
    // A Proxy, or a name that is not a text.
    return '_OTHER';
  }
}

/** The fields that spans of requests and of calls share. @param errorType undefined for no error */
function toFields(
  method: string, route: string | undefined, origin: string, statusCode: number | undefined,
  errorType: string | undefined, more: Texts,
): SpanFields & { readonly attributes: Attributes } {
  const isKnown = STANDARD_METHOD.test(method);
  const attributes = cut({
    'http.request.method': isKnown ? method : '_OTHER',
    'http.request.method_original': isKnown ? undefined : method,
    'http.response.status_code': statusCode,
    ...toServer(origin),
    'error.type': errorType,
    ...more,
  });
  const name = (isKnown ? method : 'HTTP') + (route === undefined ? '' : ` ${route}`);
  return { name, isError: errorType !== undefined, attributes };
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
    return [{ name: 'exception', timeUnixNano, attributes: cut(given) }];
  } catch {
    // A getter of the thrown value threw, such as `stack` with Error.prepareStackTrace.
    return [];
  }
}

type Texts = Readonly<Record<string, string | number | undefined>>;

/** Cuts texts that are too long. Anything but a whole number becomes a text. */
function cut(given: Texts): Attributes {
  const attributes: Record<string, string | number> = {};
  for (const key in given) {
    const value = given[key];
    const max = key === 'exception.stacktrace' ? MAX_STACK_LENGTH : MAX_LENGTH;
    // A thrown error may have a message that is an object.
    if (value !== undefined) attributes[key] = Number.isSafeInteger(value) ? value : String(value).slice(0, max);
  }
  return attributes;
}

/** V8 keeps a text that was put together as a tree of its parts, and each copy visits all of them. */
function flatten(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('latin1');
}
