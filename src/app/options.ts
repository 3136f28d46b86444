/* The options of an application, checked once, with their defaults. */

import { MAX_TIMEOUT_MS } from '../base/deadline.js';
import { findClashes, isErrorCode, type ErrorCode } from '../base/error-codes.js';
import { FrameworkErrorCodes } from '../base/errors.js';
import { type ProxyTrust, trustNetworks } from '../answer/client-address.js';
import { createLogger, LOG_LEVELS, type Logger, type LogLevel } from '../base/log.js';
import { parseConnections, parseSettings } from '../mesh/settings.js';
import type { ConnectionOptions, Settings, SettingsOptions } from '../mesh/settings.js';
import { assertServiceName, isServiceName, type ServiceStandIn } from '../mesh/service-client.js';
import { DEFAULT_BUCKETS, toBounds } from '../metrics/histogram.js';
import type { LoadShedding, LoadSheddingOptions } from '../overload/overload.js';
import {
  ANYTHING,
  assertOptions,
  BOOLEAN,
  isRecord,
  LIST,
  listOf,
  OBJECT,
  oneOf,
  option,
  STRING,
  wholeNumber,
  withDefaults,
  type Complete,
  type Kinds,
  type OptionTable,
} from '../base/options-check.js';
import { EXTRAS, type OpenApiExtras } from '../endpoint/document-settings.js';
import { resolveMonitor, type MonitorOptions } from './address.js';

/** The options of `new Postern(name, options)`. Times are in ms. */
export interface PosternOptions {
  /** The application's version. Default: `APPLICATION_VERSION` from the environment, else `UNKNOWN`. */
  version?: string | undefined;
  /** Whether the monitoring endpoints are served: health, metrics, ping and openapi. Default: true. */
  attachMonitorEndpoints?: boolean | undefined;
  /**
   * A second, private listener. Metrics and OpenAPI are then served there only, health and ping on both listeners.
   * Default: the port in `MONITOR_PORT`, else no second listener.
   */
  monitor?: MonitorOptions | undefined;
  /** Connections to other services. Default of each setting: the environment variable of its name. */
  settings?: SettingsOptions | undefined;
  /**
   * The services that this one calls, by name, with defaults for the calls. Each is a connection, as if the setting
   * `SERVICE_CONNECTIONS` named it; the setting may give it another URL. Default: none.
   */
  connections?: Readonly<Record<string, ConnectionOptions>> | undefined;
  /** Maximum bytes of a request body; a larger body is a 413. Default: 1,048,576. */
  bodyLimit?: number | undefined;
  /** A logger in pino's argument order; `false` logs nothing. Default: JSON (on a terminal: text) on stderr. */
  logger?: Logger | false | undefined;
  /** The lowest level that the default logger writes. Default: `LOG_LEVEL` from the environment, else `info`. */
  logLevel?: LogLevel | undefined;
  /**
   * Whether each request is logged at info, except successful requests to monitoring endpoints; `'all'` logs these,
   * too. Default: true if stderr is a terminal, else false.
   */
  accessLog?: boolean | 'all' | undefined;
  /** CIDRs of the proxies whose `x-forwarded-*` headers are believed; `unix`: peers of Unix sockets. Default: none. */
  trustProxy?: readonly string[] | undefined;
  /** Maximum time for a whole request to arrive. Default: 60,000. 0: no limit. */
  requestTimeout?: number | undefined;
  /** Maximum time for the head of a request to arrive. Default: 15,000, or `requestTimeout` if that is less. */
  headersTimeout?: number | undefined;
  /** How long an idle connection stays open; longer than usual load balancers keep one. Default: 72,000. */
  keepAliveTimeout?: number | undefined;
  /** How long a client may leave a waiting reply unread. Default: 60,000. 0: no limit. */
  sendTimeout?: number | undefined;
  /** Maximum connections at a time; further connections are dropped. Default: 10,000. 0: no limit. */
  maxConnections?: number | undefined;
  /** Maximum header fields of a request; more give 431. Default: 999. */
  maxHeadersCount?: number | undefined;
  /** Maximum bytes of a request's head; more give 431, or 414 in the request line. Default: 16,384. */
  maxHeaderSize?: number | undefined;
  /** Maximum parameters of a query (more give 400) or of a form (more give 413). Default: 1,000. */
  parameterLimit?: number | undefined;
  /**
   * Limits of the process: while one is exceeded, requests are refused with 503, except monitoring endpoints. Default:
   * no such limits; `{}` sets both to their defaults. `false` also turns off the refusal of requests that would be
   * answered too late.
   */
  loadShedding?: LoadSheddingOptions | false | undefined;
  /** Age at which a connection to another service is retired, ± 10 %. Default: 60,000. */
  maxConnectionAge?: number | undefined;
  /** Maximum requests to one other service at a time, not counting pings; one more is a 503. Default: 1,024. */
  maxServiceRequests?: number | undefined;
  /** Answers calls of other services in memory, by name: an application, or a function like `fetch`. For tests. */
  services?: Readonly<Record<string, ServiceStandIn>> | undefined;
  /** Maximum `depth` of a ping. Default: 5. */
  maxPingDepth?: number | undefined;
  /** Maximum time of a ping for each level of depth. Default: 1,000. */
  pingTimeout?: number | undefined;
  /**
   * Buckets of the durations of requests and of calls to other services: upper bounds in seconds, ascending. Default: 5
   * ms to 10 s.
   */
  durationBuckets?: readonly number[] | undefined;
  /**
   * An absolute URL that ends in `/` or `#`, at which people read about error codes. Followed by the name of the code
   * it is the `type` of problem details (RFC 9457). Default: the `type` is `about:blank`.
   */
  errorTypes?: string | URL | undefined;
  /** The application's own error codes, for `postern errors`. Default: none. */
  errorCodes?: readonly Readonly<Record<string, ErrorCode>>[] | undefined;
  /**
   * Whether telemetry is exported if `OTEL_EXPORTER_OTLP_ENDPOINT` is in the environment. `true`: always; `false`:
   * never. Default: unless an OpenTelemetry SDK is registered.
   */
  tracing?: boolean | undefined;
  /**
   * Whether the process may be looked into: `POST /<name>/profile/` on the `monitor` listener, and a warning that names
   * the function which blocks the event loop for more than 300 ms (some 9 MiB). `{ token }` also lets others than
   * loopback peers ask for profiles, with `Authorization: Bearer`. Default: false.
   */
  diagnostics?: boolean | DiagnosticsOptions | undefined;
  /**
   * Whether 2xx replies must match the `response` schema of their route. With `'output'`, what the schema returns is
   * sent: a member that it drops never leaves the process. Default: false.
   */
  validateResponses?: boolean | 'output' | undefined;
  /** Merged into the OpenAPI document of the application, wherever it is created. Default: nothing. */
  openapi?: OpenApiExtras | undefined;
}

/** The option `diagnostics`. */
export interface DiagnosticsOptions {
  /** A secret, with which others than loopback peers may ask for profiles. Default: they may not. */
  token?: string | undefined;
}

const DIAGNOSTICS: Kinds<DiagnosticsOptions> = {
  token: { accepts: (value) => typeof value === 'string' && value !== '', give: 'a text that is not empty' },
};

const LOAD_SHEDDING = {
  observe: option(BOOLEAN, false),
  maxEventLoopDelay: option(wholeNumber(1), 500),
  maxMemoryPercent: option(wholeNumber(1, 100), 95),
  retryAfter: option(wholeNumber(0), 1),
} satisfies OptionTable<LoadSheddingOptions>;

/** Each option's kind and default. An option whose default depends on anything else has undefined here. */
const OPTIONS = {
  version: option(STRING),
  attachMonitorEndpoints: option(BOOLEAN, true),
  monitor: option(OBJECT),
  settings: option(OBJECT, {}),
  connections: option(OBJECT, {}),
  bodyLimit: option(wholeNumber(0), 1_048_576),
  logger: option(ANYTHING),
  logLevel: option(oneOf(LOG_LEVELS)),
  accessLog: option<boolean | 'all'>({
    accepts: (value) => typeof value === 'boolean' || value === 'all',
    give: "true, false or 'all'",
  }),
  trustProxy: option(LIST, []),
  requestTimeout: option(wholeNumber(0, MAX_TIMEOUT_MS), 60_000),
  headersTimeout: option(wholeNumber(0, MAX_TIMEOUT_MS)),
  keepAliveTimeout: option(wholeNumber(0, MAX_TIMEOUT_MS), 72_000),
  sendTimeout: option(wholeNumber(0), 60_000),
  maxConnections: option(wholeNumber(0), 10_000),
  maxHeadersCount: option(wholeNumber(1, 100_000), 999),
  maxHeaderSize: option(wholeNumber(1), 16_384),
  parameterLimit: option(wholeNumber(0), 1_000),
  loadShedding: option({ accepts: (value) => value === false || isRecord(value), give: 'false or an object' }),
  maxConnectionAge: option(wholeNumber(1), 60_000),
  maxServiceRequests: option(wholeNumber(1), 1_024),
  services: option(OBJECT, {}),
  maxPingDepth: option(wholeNumber(0), 5),
  pingTimeout: option(wholeNumber(1), 1_000),
  durationBuckets: option(LIST, DEFAULT_BUCKETS),
  errorTypes: option({
    accepts: (value) => /[/#]$/.test(String(value)) && URL.canParse(String(value)),
    give: 'an absolute URL that ends in / or #',
  }),
  errorCodes: option(listOf(isEnumeration, 'a list of results of defineErrorCodes'), []),
  tracing: option(BOOLEAN),
  diagnostics: option<boolean | DiagnosticsOptions>(
    { accepts: (value) => typeof value === 'boolean' || isRecord(value), give: 'true, false or an object' },
    false,
  ),
  validateResponses: option<boolean | 'output'>(
    { accepts: (value) => typeof value === 'boolean' || value === 'output', give: "true, false or 'output'" },
    false,
  ),
  openapi: option(OBJECT, {}),
} satisfies OptionTable<PosternOptions>;

/** Options whose value in use is not the value that was given. */
interface Converted {
  readonly monitor: MonitorOptions | null;
  readonly settings: Settings;
  readonly connections: ReadonlyMap<string, ConnectionOptions>;
  readonly logger: Logger;
  readonly accessLog: boolean | 'all';
  readonly trustProxy: ProxyTrust;
  readonly loadShedding: LoadShedding | null;
  readonly services: ReadonlyMap<string, ServiceStandIn>;
  readonly errorTypes: string | null;
  readonly errorCodes: readonly ErrorCode[];
  readonly tracing: boolean | undefined;
  readonly diagnostics: DiagnosticsOptions | null;
}

/** Options with every default filled in. */
export interface ResolvedOptions
  extends Omit<Complete<PosternOptions>, keyof Converted | 'logLevel'>, Converted {
  readonly name: string;
}

/**
 * @param env where settings come from that the options leave out
 * @throws {TypeError} for an invalid name or environment, an unknown option, or an option with a wrong value
 */
export function resolveOptions(name: string, options: PosternOptions, env: NodeJS.ProcessEnv): ResolvedOptions {
  assertServiceName(name);
  const given = withDefaults<PosternOptions, typeof OPTIONS>('new Postern()', options, OPTIONS);
  const { attachMonitorEndpoints, monitor, requestTimeout, loadShedding, errorTypes } = given;
  if (!attachMonitorEndpoints && monitor !== undefined)
    throw new TypeError('monitor is set, but attachMonitorEndpoints: false leaves nothing to serve there; remove one');
  const { headersTimeout = Math.min(15_000, requestTimeout || Infinity) } = given;
  assertOptions('openapi', given.openapi, EXTRAS);
  const connections = parseConnections(given.connections);
  if (requestTimeout > 0 && headersTimeout > requestTimeout)
    throw new TypeError(`headersTimeout ${headersTimeout} is more than requestTimeout ${requestTimeout}; lower it`);
  return {
    ...given,
    name,
    version: given.version ?? (env['APPLICATION_VERSION'] || 'UNKNOWN'),
    monitor: attachMonitorEndpoints ? resolveMonitor(monitor, env) : null,
    settings: parseSettings(given.settings, env, connections.keys()),
    connections,
    logger: createLogger(given.logger, name, given.logLevel, env),
    // A person who looks at a terminal wants to see the requests.
    accessLog: given.accessLog ?? process.stderr.isTTY === true,
    trustProxy: given.trustProxy.length === 0 ? () => false : trustNetworks(given.trustProxy),
    headersTimeout,
    loadShedding: resolveLoadShedding(loadShedding),
    services: resolveStandIns(given.services),
    durationBuckets: resolveBuckets(given.durationBuckets),
    diagnostics: resolveDiagnostics(given.diagnostics),
    errorTypes: errorTypes === undefined ? null : new URL(errorTypes).href,
    errorCodes: resolveCodes(given.errorCodes),
  };
}

/** @returns null if nothing may be refused */
function resolveLoadShedding(given: LoadSheddingOptions | false | undefined): LoadShedding | null {
  if (given === false) return null;
  const options = withDefaults<LoadSheddingOptions, typeof LOAD_SHEDDING>('loadShedding', given ?? {}, LOAD_SHEDDING);
  return { ...options, limitsProcess: given !== undefined };
}

/** @returns null if it is off */
function resolveDiagnostics(given: boolean | DiagnosticsOptions): DiagnosticsOptions | null {
  if (typeof given === 'boolean') return given ? {} : null;
  assertOptions('diagnostics', given, DIAGNOSTICS);
  return given;
}

function isEnumeration(codes: unknown): boolean {
  return isRecord(codes) && Object.values(codes).every(isErrorCode);
}

function resolveCodes(enumerations: readonly Readonly<Record<string, ErrorCode>>[]): ErrorCode[] {
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

function resolveStandIns(services: Readonly<Record<string, ServiceStandIn>>): Map<string, ServiceStandIn> {
  for (const [name, standIn] of Object.entries(services)) {
    if (!isServiceName(name))
      throw new TypeError(`services has ${JSON.stringify(name)}, which is not a service name`);
    const isApplication = standIn instanceof Object && typeof Reflect.get(standIn, 'request') === 'function';
    if (typeof standIn !== 'function' && !isApplication)
      throw new TypeError(
        `services.${name} is ${typeof standIn}; give an application or a function (request) => Response`,
      );
  }
  return new Map(Object.entries(services));
}

/** Checks buckets as a histogram does, but throws a `TypeError`, as for other options. */
function resolveBuckets(buckets: readonly number[]): readonly number[] {
  try {
    return toBounds(buckets, 'durationBuckets');
  } catch (error) {
    throw error instanceof RangeError ? new TypeError(error.message) : error;
  }
}
