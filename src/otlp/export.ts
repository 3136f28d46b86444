/*
 * Exports the telemetry of an application by OpenTelemetry's protocol, as the environment says. It is loaded only if
 * the environment asks for it.
 */

import { builtin } from '../base/builtin.js';
import { monotonicNow, randomUuid } from '../base/clock.js';
import type { Settings } from '../mesh/settings.js';
import type { ServingOptions } from '../answer/context.js';
import { logSafely, type JsonLogger } from '../base/log.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import type { Counter } from '../metrics/counter.js';
import { Registry } from '../metrics/registry.js';
import { startExporter, type Exporter } from './exporter.js';
import { exportLogs } from './logs.js';
import { exportMetrics } from './metrics.js';
import { exportSpans } from './spans.js';
import { readVariables, type Signal } from './variables.js';

const WARN_EVERY_MS = 60_000;
/** The value of `service.instance.id` of every application of the process. */
const INSTANCE_ID = randomUuid();

/** The application whose telemetry is exported. */
interface ExportedApplication extends ServingOptions {
  readonly name: string;
  readonly version: string;
  readonly settings: Settings;
  /** `true` exports even if an OpenTelemetry SDK is registered. */
  readonly tracing?: boolean | undefined;
}

/**
 * @param registry is exported, and counts what is dropped
 * @param log the default logger; undefined if the application has a logger of the user's
 * @returns a function that sends what is left, for at most a second; undefined if the variables or an OpenTelemetry SDK
 * turn the export off
 */
export function startExport(
  app: ExportedApplication, registry: Registry, log: JsonLogger | undefined, variables: NodeJS.ProcessEnv,
): (() => Promise<void>) | undefined {
  const { name, version, logger, tracing } = app;
  const api = Object(Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'))) as Record<string, unknown>;
  if (tracing !== true && (api['trace'] ?? api['metrics']) !== undefined) {
    const message = 'an OpenTelemetry SDK is registered, so Postern exports nothing; tracing: true exports all the same';
    logSafely(logger, 'info', {}, message);
    return undefined;
  }
  const settings = readVariables(variables, (message) => logSafely(logger, 'warn', {}, message));
  const signals = settings?.signals.filter(({ signal }) => signal !== 'logs' || log !== undefined) ?? [];
  if (settings === undefined || signals.length === 0) return undefined;
  const resource = {
    'service.name': name, 'service.version': version, 'service.instance.id': INSTANCE_ID,
    'host.name': builtin('node:os').hostname(), 'process.pid': process.pid,
    'telemetry.sdk.name': 'postern', 'telemetry.sdk.language': 'nodejs', 'telemetry.sdk.version': FRAMEWORK_VERSION,
    ...settings.resource,
  };
  const dropped = countDropped(registry);
  let unreported: Partial<Record<Signal, number>> = {};
  let warnedMs = -Infinity;
  let isWarning = false;
  const drop = (signal: Signal, count: number, reason: string): void => {
    if (count === 0) return;
    dropped.inc({ signal }, count);
    unreported[signal] = (unreported[signal] ?? 0) + count;
    if (monotonicNow() < warnedMs + WARN_EVERY_MS) return;
    const entry = { ...unreported, reason };
    unreported = {};
    warnedMs = monotonicNow();
    isWarning = true;
    logSafely(logger, 'warn', entry, 'telemetry could not be exported and was dropped');
    isWarning = false;
  };
  const begin: Readonly<Record<Signal, (exporter: Exporter) => (() => void) | undefined>> = {
    traces: (exporter) => exportSpans(app, exporter, settings.sample),
    logs: (exporter) => log && exportLogs(log, exporter, () => isWarning),
    metrics: (exporter) => exportMetrics(app, registry, exporter, settings.intervalMs),
  };
  const ends = signals.map((of) => {
    dropped.labels(of.signal);
    const exporter = startExporter(of, resource, (count, reason) => drop(of.signal, count, reason));
    const end = begin[of.signal](exporter);
    return () => {
      end?.();
      return exporter.close();
    };
  });
  return async () => {
    await Promise.all(ends.map((end) => end()));
  };
}

/** The counter of what is dropped. A metric of the user's may have its name; then nobody sees it. */
function countDropped(registry: Registry): Counter<'signal'> {
  const help = 'Spans, log records and data points of metrics that could not be exported.';
  const definition = { name: 'otel_dropped_total', help, labelNames: ['signal'] } as const;
  try {
    return registry.counter(definition);
  } catch {
    return new Registry().counter(definition);
  }
}
