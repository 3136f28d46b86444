/* The options of an application: the options of each room, and its own. */

import { ANSWER, type AnswerOptions } from '../answer/context.js';
import { findClashes, isErrorCode, type ErrorCode } from '../base/error-codes.js';
import { FrameworkErrorCodes } from '../base/errors.js';
import { createLogger, LOG, type LogOptions } from '../base/log.js';
import { BOOLEAN, converted, isRecord, listOf, OBJECT, option, resolve, STRING } from '../base/options-check.js';
import type { OptionTable } from '../base/options-check.js';
import { DOCUMENT, type DocumentOptions } from '../endpoint/document-settings.js';
import { assertServiceName, MESH, parseSettings, type MeshOptions } from '../mesh/settings.js';
import { MONITORING, type MonitoringOptions } from '../monitor/monitoring-options.js';
import { OVERLOAD, type OverloadOptions } from '../overload/overload.js';
import { headersTimeoutOf, LIMITS, type ConnectionLimits } from '../wire/server.js';
import { resolveMonitor, type MonitorOptions } from './address.js';

/** The options of `new Postern(name, options)`. Times are in ms. */
export interface PosternOptions
  extends
    AnswerOptions,
    ConnectionLimits,
    DocumentOptions,
    LogOptions,
    MeshOptions,
    MonitoringOptions,
    OverloadOptions {
  /** The application's version. Default: `APPLICATION_VERSION` from the environment, else `UNKNOWN`. */
  version?: string | undefined;
  /** Whether the monitoring endpoints are served: health, metrics, ping and openapi. Default: true. */
  attachMonitorEndpoints?: boolean | undefined;
  /**
   * A second, private listener. Metrics and OpenAPI are then served there only, health and ping on both listeners.
   * Default: the port in `MONITOR_PORT`, else no second listener.
   */
  monitor?: MonitorOptions | undefined;
  /** The application's own error codes, for `postern errors`. Default: none. */
  errorCodes?: readonly Readonly<Record<string, ErrorCode>>[] | undefined;
  /**
   * Whether telemetry is exported if `OTEL_EXPORTER_OTLP_ENDPOINT` is in the environment. `true`: always; `false`:
   * never. Default: unless an OpenTelemetry SDK is registered.
   */
  tracing?: boolean | undefined;
}

/** @internal */
export const OPTIONS = {
  ...ANSWER,
  ...LIMITS,
  ...DOCUMENT,
  ...LOG,
  ...MESH,
  ...MONITORING,
  ...OVERLOAD,
  version: option(STRING),
  attachMonitorEndpoints: option(BOOLEAN, true),
  monitor: option({ ...OBJECT, give: 'an object, { port: 9100 }' }),
  errorCodes: converted(listOf(isEnumeration, 'a list of results of defineErrorCodes'), toCodes),
  tracing: option(BOOLEAN),
} satisfies OptionTable<PosternOptions>;

/** The values in use. @internal */
export type ResolvedOptions = ReturnType<typeof resolveOptions>;

/**
 * @param env where settings come from that the options leave out
 * @throws {TypeError} for an invalid name or environment, an unknown option, or an option with a wrong value
 * @internal
 */
export function resolveOptions(name: string, options: PosternOptions, env: NodeJS.ProcessEnv) {
  assertServiceName(name);
  const given = resolve('new Postern()', options, OPTIONS);
  const { attachMonitorEndpoints, monitor, requestTimeout, headersTimeout, connections } = given;
  if (!attachMonitorEndpoints && monitor !== undefined)
    throw new TypeError('monitor is set, but attachMonitorEndpoints: false leaves nothing to serve there; remove one');
  return {
    ...given,
    name,
    version: given.version || env['APPLICATION_VERSION'] || 'UNKNOWN',
    monitor: attachMonitorEndpoints ? resolveMonitor(monitor, env) : null,
    settings: parseSettings(given.settings, env, connections.keys()),
    logger: createLogger(given, name, env),
    headersTimeout: headersTimeoutOf(requestTimeout, headersTimeout),
  };
}

function isEnumeration(codes: unknown): boolean {
  return isRecord(codes) && Object.values(codes).every(isErrorCode);
}

function toCodes(enumerations: readonly Readonly<Record<string, ErrorCode>>[] = []): readonly ErrorCode[] {
  const codes = enumerations.flatMap((each) => Object.values(each));
  const own = Object.values(FrameworkErrorCodes);
  const taken = codes.find((code) => own.some(({ name, value }) => name === code.name || value === code.value));
  if (taken !== undefined)
    throw new TypeError(
      `errorCodes has ${taken.name} (${taken.value}), whose name or value is the framework's own; change it`,
    );
  const [[a, b] = []] = findClashes(codes);
  if (a !== undefined && b !== undefined)
    throw new TypeError(`errorCodes has ${a.name} (${a.value}) and ${b.name} (${b.value}); change one of them`);
  return codes;
}
