/*
 * Exports a span for each request of an application, and for each attempt of the calls made for it. It subscribes to
 * the tracing channels `postern.request` and `postern.call`, as any program can.
 *
 * Spec: OpenTelemetry, "Semantic conventions for HTTP spans" (stable).
 */

import { tracingChannel } from 'node:diagnostics_channel';
import { Date, monotonicNow, timeOrigin } from '../base/clock.js';
import { logSafely, type Logger } from '../base/log.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import { Context, type Environment } from '../http/context.js';
import type { CallTraceMessage } from '../mesh/call-tracing.js';
import type { Registry } from '../metrics/registry.js';
import type { RequestTraceMessage } from '../http/request-tracing.js';
import { isSampled, requestSpanOf, type TraceSpan } from '../propagation/trace-context.js';
import { readVariables } from './otel-variables.js';
import { CLIENT, SERVER, toAttributes, toSpan, type Pair } from './otlp-span.js';
import { SpanExporter } from './span-exporter.js';

/** Options of the application whose spans are exported. */
export interface TraceExportOptions {
  readonly name: string;
  readonly version: string;
  readonly attachMonitorEndpoints: boolean;
  readonly logger: Logger;
  /** `true` exports even if an OpenTelemetry SDK is registered. */
  readonly tracing?: boolean | undefined;
}

/** An export that has begun. */
export interface TraceExport {
  /** Sends what is left, for at most a second. */
  close(): Promise<void>;
}

/** Span times follow the system clock again when they are this far from it, in ms. */
const MAX_DRIFT_MS = 50;
/** Methods that the semantic conventions know; a span's name has no other, so that clients cannot invent names. */
const METHODS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE']);

/**
 * @param environment of the requests whose spans are exported; their log lines get the ids of the trace
 * @param registry counts dropped spans
 * @returns undefined if the variables or an OpenTelemetry SDK turn the export off
 */
export function startTraceExport(
  options: TraceExportOptions,
  environment: Environment,
  registry: Registry,
  variables: NodeJS.ProcessEnv,
): TraceExport | undefined {
  const { name, version, logger } = options;
  const api = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1')) as { trace?: unknown } | undefined;
  if (options.tracing !== true && api?.trace !== undefined) {
    const message = 'an OpenTelemetry SDK is registered, so Postern exports no traces; tracing: true exports them too';
    logSafely(logger, 'info', {}, message);
    return undefined;
  }
  const settings = readVariables(variables, (message) => logSafely(logger, 'warn', {}, message));
  if (settings === undefined) return undefined;
  const sdk: Pair[] = ['name', 'language', 'version'].map((key, i) => [
    `telemetry.sdk.${key}`,
    ['postern', 'nodejs', FRAMEWORK_VERSION][i],
  ]);
  const resource = new Map([['service.name', name], ['service.version', version], ...sdk, ...settings.resource]);
  const dropped = registry.counter({ name: 'otel_spans_dropped_total', help: 'Spans that could not be exported.' });
  const exporter = new SpanExporter(settings, toAttributes(resource), (count) => dropped.inc(count), logger);
  const unsubscribe = subscribe(options, environment, settings.sample, (span) => exporter.add(span));
  environment.logsTraces = true;
  return {
    close() {
      unsubscribe();
      return exporter.close();
    },
  };
}

/** @param add gets each span when it has ended @returns a function that unsubscribes */
function subscribe(
  { name, attachMonitorEndpoints }: TraceExportOptions,
  environment: Environment,
  sample: (trace: TraceSpan) => boolean,
  add: (span: string) => void,
): () => void {
  const monitoring = new Set(['health', 'metrics', 'ping', 'openapi'].map((path) => `/${name}/${path}/`));
  /** Start times of this application's requests and of their attempts. */
  const started = new WeakMap<TraceSpan, number>();
  let originMs = timeOrigin;
  const nowMs = (): number => originMs + monotonicNow();
  const end = (trace: TraceSpan | undefined, toFields: () => Parameters<typeof toSpan>[3]): void => {
    const startMs = trace === undefined ? undefined : started.get(trace);
    if (trace !== undefined && startMs !== undefined && isSampled(trace))
      add(toSpan(trace, startMs, nowMs(), toFields()));
  };
  const onRequest = ({ ctx, trace, route }: RequestTraceMessage): void => {
    const isMonitoring = attachMonitorEndpoints && route !== null && monitoring.has(route.path);
    if (Context.environmentOf(ctx) !== environment || isMonitoring) return;
    if (Math.abs(Date.now() - nowMs()) > MAX_DRIFT_MS) originMs = Date.now() - monotonicNow();
    const flags = Number.parseInt(trace.flags, 16);
    trace.flags = `0${sample(trace) ? flags | 1 : flags & ~1}`;
    started.set(trace, nowMs());
  };
  const onRequestEnd = (message: RequestTraceMessage): void => {
    // Without a status, `end` reports that the handler has returned a promise.
    if (message.statusCode !== undefined) end(message.trace, () => serverFields(message));
  };
  const onCall = ({ trace }: CallTraceMessage): void => {
    const request = trace === undefined ? undefined : requestSpanOf(trace);
    if (trace !== undefined && request !== undefined && started.has(request)) started.set(trace, nowMs());
  };
  const onCallEnd = (message: CallTraceMessage): void => end(message.trace, () => clientFields(message));
  const requests = tracingChannel<RequestTraceMessage, RequestTraceMessage>('postern.request');
  const calls = tracingChannel<CallTraceMessage, CallTraceMessage>('postern.call');
  const subscribed = [
    [requests.start, onRequest],
    [requests.end, onRequestEnd],
    [requests.asyncEnd, onRequestEnd],
    [calls.start, onCall],
    [calls.asyncEnd, onCallEnd],
  ] as [ReturnType<typeof tracingChannel>['start'], (message: unknown) => void][];
  for (const [channel, listener] of subscribed) channel.subscribe(listener);
  return () => {
    for (const [channel, listener] of subscribed) channel.unsubscribe(listener);
  };
}

function serverFields({ ctx, method, route, statusCode = 0, errorCode, error }: RequestTraceMessage) {
  let url: URL | undefined;
  try {
    url = ctx.url;
  } catch {
    // The target or Host is malformed; the span has no address.
  }
  const errorType = statusCode >= 500 ? (errorCode?.name ?? String(statusCode)) : undefined;
  const { name, pairs } = commonFields(method, route?.path, url, statusCode, errorType);
  pairs.push(
    ['http.route', route?.path],
    ['url.path', url?.pathname],
    ['url.scheme', url?.protocol.slice(0, -1)],
    ['client.address', ctx.ip],
    ['user_agent.original', ctx.headers['user-agent']],
    ['network.protocol.version', Context.requestOf(ctx).httpVersion],
  );
  const exception = statusCode === 500 ? error : undefined;
  return { kind: SERVER, name, pairs, isError: errorType !== undefined, exception };
}

function clientFields({ method, route, url, attempt, statusCode, errorCode, error }: CallTraceMessage) {
  const failure = Object(error) as { errorCode?: typeof errorCode; name?: string };
  const isError = error !== undefined || (statusCode ?? 0) >= 400;
  const errorType = isError ? String((errorCode ?? failure.errorCode)?.name ?? failure.name ?? statusCode) : undefined;
  const { name, pairs } = commonFields(method, route, new URL(url), statusCode, errorType);
  pairs.push(['url.full', url], ['http.request.resend_count', attempt > 1 ? attempt - 1 : undefined]);
  if (statusCode !== undefined) pairs.push(['network.protocol.version', '1.1']);
  return { kind: CLIENT, name, pairs, isError, exception: undefined };
}

function commonFields(
  method: string,
  route: string | undefined,
  url: URL | undefined,
  statusCode: number | undefined,
  errorType: string | undefined,
): { name: string; pairs: Pair[] } {
  const isKnown = METHODS.has(method);
  const name = isKnown ? method : 'HTTP';
  const pairs: Pair[] = [
    ['http.request.method', isKnown ? method : '_OTHER'],
    ['http.request.method_original', isKnown ? undefined : method],
    ['http.response.status_code', statusCode],
    ['server.address', url?.hostname],
    ['server.port', url === undefined ? undefined : Number(url.port) || (url.protocol === 'https:' ? 443 : 80)],
    ['error.type', errorType],
  ];
  return { name: route === undefined ? name : `${name} ${route}`, pairs };
}
