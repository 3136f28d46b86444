/*
 * Exports a span for each request of an application, and for each attempt of the calls made for it. It subscribes to
 * the tracing channels `postern.request` and `postern.call`, as any program can.
 *
 * Spec: OpenTelemetry, "Semantic conventions for HTTP spans" (stable).
 */

import * as diagnostics from 'node:diagnostics_channel';
import { Date, monotonicNow, timeOrigin } from '../base/clock.js';
import { logSafely, type Logger } from '../base/log.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import { Context, type Environment } from '../http/context.js';
import type { CallTraceMessage } from '../mesh/call-tracing.js';
import type { Registry } from '../metrics/registry.js';
import type { RequestTraceMessage } from '../http/request-tracing.js';
import { isSampled, requestSpanOf, type TraceSpan } from '../propagation/trace-context.js';
import { readVariables } from './otel-variables.js';
import { CLIENT, SERVER, toAttributes, toSpan, type Attributes, type SpanFields } from './otlp-span.js';
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

/** Span times follow the system clock again when they are this far from it, in ms. */
const MAX_DRIFT_MS = 50;
/** Methods that the semantic conventions know; a span's name has no other, so that clients cannot invent names. */
const METHODS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE']);

/**
 * @param environment of the requests whose spans are exported; their log lines get the ids of the trace
 * @param registry counts dropped spans
 * @returns a function that sends what is left, for at most a second; undefined if the variables or an OpenTelemetry SDK
 * turn the export off
 */
export function startTraceExport(
  options: TraceExportOptions,
  environment: Environment,
  registry: Registry,
  variables: NodeJS.ProcessEnv,
): (() => Promise<void>) | undefined {
  const { name, version, logger } = options;
  const api = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1')) as { trace?: unknown } | undefined;
  if (options.tracing !== true && api?.trace !== undefined) {
    const message = 'an OpenTelemetry SDK is registered, so Postern exports no traces; tracing: true exports them too';
    logSafely(logger, 'info', {}, message);
    return undefined;
  }
  const settings = readVariables(variables, (message) => logSafely(logger, 'warn', {}, message));
  if (settings === undefined) return undefined;
  const resource = toAttributes({
    'service.name': name,
    'service.version': version,
    'telemetry.sdk.name': 'postern',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': FRAMEWORK_VERSION,
    ...settings.resource,
  });
  const dropped = registry.counter({ name: 'otel_spans_dropped_total', help: 'Spans that could not be exported.' });
  const exporter = new SpanExporter(settings, resource, (count) => dropped.inc(count), logger);
  const unsubscribe = subscribe(options, environment, settings.sample, exporter);
  environment.logsTraces = true;
  return () => {
    unsubscribe();
    return exporter.close();
  };
}

/** @returns a function that unsubscribes */
function subscribe(
  { name, attachMonitorEndpoints }: TraceExportOptions,
  environment: Environment,
  sample: (trace: TraceSpan) => boolean,
  exporter: SpanExporter,
): () => void {
  const monitoring = new Set(['health', 'metrics', 'ping', 'openapi'].map((path) => `/${name}/${path}/`));
  /** When a span of this application began. A property: a WeakMap takes as long as half of the rest. */
  const started = Symbol('started');
  type Started = TraceSpan & { [started]?: number };
  let originMs = timeOrigin;
  const end = (trace: Started | undefined, toFields: () => SpanFields): void => {
    const startMs = trace?.[started];
    if (trace === undefined || startMs === undefined || !isSampled(trace)) return;
    const endMs = monotonicNow();
    exporter.add(() => toSpan(trace, originMs + startMs, originMs + endMs, toFields()));
  };
  const listeners = {
    'postern.request:start': ({ ctx, trace, route }: RequestTraceMessage): void => {
      const isMonitoring = attachMonitorEndpoints && route !== null && monitoring.has(route.path);
      if (Context.environmentOf(ctx) !== environment || isMonitoring) return;
      const startMs = monotonicNow();
      if (Math.abs(Date.now() - originMs - startMs) > MAX_DRIFT_MS) originMs = Date.now() - startMs;
      const flags = Number.parseInt(trace.flags, 16);
      trace.flags = `0${sample(trace) ? flags | 1 : flags & ~1}`;
      (trace as Started)[started] = startMs;
    },
    'postern.request:end': (message: RequestTraceMessage): void => {
      // Without a status, `end` reports that the handler has returned a promise.
      if (message.statusCode !== undefined) end(message.trace, () => serverFields(message));
    },
    'postern.request:asyncEnd': (message: RequestTraceMessage): void => end(message.trace, () => serverFields(message)),
    'postern.call:start': ({ trace }: CallTraceMessage): void => {
      const request: Started | undefined = trace === undefined ? undefined : requestSpanOf(trace);
      if (request?.[started] !== undefined) (trace as Started)[started] = monotonicNow();
    },
    'postern.call:asyncEnd': (message: CallTraceMessage): void => end(message.trace, () => clientFields(message)),
  };
  const channels = Object.entries(listeners) as [string, diagnostics.ChannelListener][];
  for (const [channel, listener] of channels) diagnostics.subscribe(`tracing:${channel}`, listener);
  return () => {
    for (const [channel, listener] of channels) diagnostics.unsubscribe(`tracing:${channel}`, listener);
  };
}

function serverFields({ ctx, method, route, statusCode = 0, errorCode, error }: RequestTraceMessage): SpanFields {
  let url: URL | undefined;
  try {
    url = ctx.url;
  } catch {
    // The target or Host is malformed; the span has no address.
  }
  const exception = statusCode === 500 ? error : undefined;
  return {
    kind: SERVER,
    name: nameOf(method, route?.path),
    exception,
    attributes: {
      ...commonAttributes(method, url, statusCode),
      'error.type': statusCode >= 500 ? (errorCode?.name ?? String(statusCode)) : undefined,
      'http.route': route?.path,
      'url.path': url?.pathname,
      'url.scheme': url?.protocol.slice(0, -1),
      'client.address': ctx.ip,
      'user_agent.original': ctx.headers['user-agent'],
      'network.protocol.version': Context.requestOf(ctx).httpVersion,
    },
  };
}

function clientFields({ method, route, url, attempt, statusCode, errorCode, error }: CallTraceMessage): SpanFields {
  const failure = Object(error) as { errorCode?: typeof errorCode; name?: string };
  const isError = error !== undefined || (statusCode ?? 0) >= 400;
  return {
    kind: CLIENT,
    name: nameOf(method, route),
    attributes: {
      ...commonAttributes(method, new URL(url), statusCode),
      'error.type': isError ? String((errorCode ?? failure.errorCode)?.name ?? failure.name ?? statusCode) : undefined,
      'url.full': url,
      'http.request.resend_count': attempt > 1 ? attempt - 1 : undefined,
      'network.protocol.version': statusCode === undefined ? undefined : '1.1',
    },
  };
}

function nameOf(method: string, route: string | undefined): string {
  const name = METHODS.has(method) ? method : 'HTTP';
  return route === undefined ? name : `${name} ${route}`;
}

function commonAttributes(method: string, url: URL | undefined, statusCode: number | undefined): Attributes {
  const isKnown = METHODS.has(method);
  return {
    'http.request.method': isKnown ? method : '_OTHER',
    'http.request.method_original': isKnown ? undefined : method,
    'http.response.status_code': statusCode,
    'server.address': url?.hostname,
    'server.port': url === undefined ? undefined : Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
  };
}
