/*
 * Exports a span for each request of an application, and for each attempt of the calls made for it. It subscribes to
 * `postern.call`, as any program can, and to `postern.export`, a channel of its own: a subscriber to `postern.request`
 * records the requests of every application of the process, but an exporter the requests of one.
 * Spec: OpenTelemetry, "Semantic conventions for HTTP spans" (stable).
 */

import * as diagnostics from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { Date, monotonicNow, monotonicOrigin } from '../base/clock.js';
import { logSafely } from '../base/log.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import { requestOrigin } from '../answer/client-address.js';
import type { Context, ServingOptions } from '../answer/context.js';
import type { RequestTraceMessage } from '../answer/tracing.js';
import type { CallTraceMessage } from '../mesh/call-tracing.js';
import type { Registry } from '../metrics/registry.js';
import { isSampled, type CallSpan, type TraceSpan } from '../propagation/trace-context.js';
import type { MatchedRoute } from '../routing/router.js';
import { readVariables } from './otel-variables.js';
import { Attributes, beginFields, toSpan, type SpanFields } from './otlp-span.js';
import { startSpanExporter } from './span-exporter.js';

const WARN_EVERY_MS = 60_000;
/** Span times follow the system clock again when they are this far from it, in ms. */
const MAX_DRIFT_MS = 50;

/** The application whose spans are exported. */
interface TracedApplication extends ServingOptions {
  readonly name: string;
  readonly version: string;
  /** `true` exports even if an OpenTelemetry SDK is registered. */
  readonly tracing?: boolean | undefined;
}

/**
 * Classes of the application. They are passed, not imported: a tool may load what `import()` asks for with a second
 * copy of every file (tsx with CommonJS), and the classes of a copy recognise no request of the application.
 */
interface TracedClasses {
  readonly Context: typeof Context;
  readonly CallSpan: typeof CallSpan;
}

/**
 * @param app whose requests' log lines get the ids of their traces
 * @param registry counts dropped spans
 * @returns a function that sends what is left, for at most a second; undefined if the variables or an OpenTelemetry SDK
 * turn the export off
 */
export function startTraceExport(
  app: TracedApplication,
  registry: Registry,
  variables: NodeJS.ProcessEnv,
  { Context, CallSpan }: TracedClasses,
): (() => Promise<void>) | undefined {
  const { name, version, logger, tracing } = app;
  const api = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1')) as { trace?: unknown } | undefined;
  if (tracing !== true && api?.trace !== undefined) {
    const message = 'an OpenTelemetry SDK is registered, so Postern exports no traces; tracing: true exports them too';
    logSafely(logger, 'info', {}, message);
    return undefined;
  }
  const settings = readVariables(variables, (message) => logSafely(logger, 'warn', {}, message));
  if (settings === undefined) return undefined;
  const { sample } = settings;
  const resource = new Attributes();
  const own = { 'service.name': name, 'service.version': version, 'telemetry.sdk.name': 'postern' };
  const sdk = { 'telemetry.sdk.language': 'nodejs', 'telemetry.sdk.version': FRAMEWORK_VERSION };
  for (const [key, value] of Object.entries({ ...own, ...sdk, ...settings.resource })) resource.add(key, value);
  const scope = `{"name":"postern","version":"${FRAMEWORK_VERSION}"}`;
  const head = `{"resourceSpans":[{"resource":{${resource.toString()}},"scopeSpans":[{"scope":${scope},"spans":[`;
  const dropped = registry.counter({ name: 'otel_spans_dropped_total', help: 'Spans that could not be exported.' });
  let unreported = 0;
  let warnedMs = -Infinity;
  const exporter = startSpanExporter(settings, head, (count, reason) => {
    if (count === 0) return;
    dropped.inc(count);
    unreported += count;
    if (monotonicNow() < warnedMs + WARN_EVERY_MS) return;
    logSafely(logger, 'warn', { spans: unreported, reason }, 'spans could not be exported and were dropped');
    unreported = 0;
    warnedMs = monotonicNow();
  });

  const isExported = (ctx: object): ctx is Context =>
    ctx instanceof Context && Context.optionsOf(ctx) === app && !Context.isMonitoring(ctx);
  let originMs = monotonicOrigin();
  const add = (trace: TraceSpan, startedAtMs: number, fields: SpanFields): void => {
    const endedAtMs = monotonicNow();
    if (Math.abs(Date.now() - originMs - endedAtMs) > MAX_DRIFT_MS) originMs = Date.now() - endedAtMs;
    exporter.add(toSpan(trace, originMs + startedAtMs, originMs + endedAtMs, fields));
  };
  const unsubscribers: (() => void)[] = [];
  const on = <Message>(event: string, listener: (message: Message) => void): void => {
    const channel = `tracing:postern.${event}`;
    const untyped = listener as diagnostics.ChannelListener;
    diagnostics.subscribe(channel, untyped);
    unsubscribers.push(() => diagnostics.unsubscribe(channel, untyped));
  };
  const latest: LatestFields = new Map();
  on('export:end', (message: RequestTraceMessage) => {
    const { ctx, trace } = message;
    if (!isSampled(trace) || !isExported(ctx)) return;
    if (!exporter.hasRoomOrDrops()) return;
    const { req, startedAtMs } = ctx.exchange;
    add(trace, startedAtMs, toServerFields(message, req, requestOrigin(req, ctx.target, app.trustProxy), latest));
  });
  on('call:asyncEnd', (message: CallTraceMessage) => {
    const { trace } = message;
    const origin = trace === undefined ? undefined : CallSpan.originOf(trace);
    if (trace === undefined || origin === undefined || !isSampled(trace) || !isExported(origin.caller)) return;
    if (exporter.hasRoomOrDrops()) add(trace, origin.startedAtMs, toClientFields(message));
  });
  if (sample !== undefined)
    on('export:start', ({ ctx, trace }: RequestTraceMessage) => {
      if (isExported(ctx) && sample(trace) !== isSampled(trace)) trace.flags = `0${Number(`0x${trace.flags}`) ^ 1}`;
    });
  app.exportsTraces = true;
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
    return exporter.close();
  };
}

/** For each route, the part of its latest span that its next request may have as well, and what that depends on. */
type LatestFields = Map<MatchedRoute | null, { readonly key: string; readonly fields: SpanFields }>;

function toServerFields(
  { ctx, method, route, statusCode = 0, errorCode, error }: RequestTraceMessage,
  { httpVersion }: IncomingMessage,
  origin: string,
  latest: LatestFields,
): SpanFields {
  const errorType = statusCode >= 500 ? (errorCode?.name ?? String(statusCode)) : undefined;
  const key = `${method} ${statusCode} ${errorType} ${httpVersion} ${origin}`;
  let last = latest.get(route);
  if (last?.key !== key) {
    const fields = beginFields(true, method, route?.path, origin, statusCode, errorType);
    fields.attributes.add('http.route', route?.path).add('url.scheme', /^https?/.exec(origin)?.[0]);
    fields.attributes.add('network.protocol.version', httpVersion);
    latest.set(route, (last = { key, fields }));
  }
  const { isServer, head, attributes } = last.fields;
  const own = new Attributes(attributes)
    .add('url.path', ctx.target.path)
    .add('client.address', ctx.ip)
    .add('user_agent.original', ctx.headers['user-agent']);
  return { isServer, head, attributes: own, exception: statusCode === 500 ? error : undefined };
}

function toClientFields({ method, route, url, attempt, statusCode, errorCode, error }: CallTraceMessage): SpanFields {
  const failure = Object(error) as { errorCode?: typeof errorCode; name?: string };
  const isError = error !== undefined || (statusCode ?? 0) >= 400;
  const errorType = String((errorCode ?? failure.errorCode)?.name ?? failure.name ?? statusCode ?? '_OTHER');
  const fields = beginFields(false, method, route, url, statusCode, isError ? errorType : undefined);
  fields.attributes.add('url.full', url).add('http.request.resend_count', attempt > 1 ? attempt - 1 : undefined);
  fields.attributes.add('network.protocol.version', statusCode === undefined ? undefined : '1.1');
  return fields;
}
