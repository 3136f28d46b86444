/*
 * The options of an application, checked once, with their defaults.
 */

import { isErrorCode, type ErrorCode } from '../base/error-codes.js';
import { createAddressResolver, type AddressResolver } from '../http/client-address.js';
import type { ServerLimits } from '../http/server.js';
import { createLogger, LOG_LEVELS, type Logger, type LogLevel } from '../base/log.js';
import {
  assertServiceName,
  isServiceName,
  parseSettings,
  type Settings,
  type SettingsOptions,
} from '../mesh/settings.js';
import { isStandIn, type ServiceStandIn } from '../mesh/stand-in.js';
import { DEFAULT_BUCKETS, toBounds } from '../metrics/buckets.js';
import { resolveLoadShedding, type LoadSheddingOptions } from '../monitor/load-shedder.js';
import {
  ANYTHING,
  assertOptions,
  BOOLEAN,
  LIST,
  listOf,
  OBJECT,
  oneOf,
  STRING,
  wholeNumber,
  type Kinds,
} from '../base/options-check.js';
import { resolveMonitor, type MonitorOptions } from './address.js';

/** What `new Postern(name, options)` takes. Times are in ms. */
export interface PosternOptions {
  /** The application's version; else the environment's `APPLICATION_VERSION`, else `UNKNOWN`. */
  version?: string;
  /** Whether health, metrics and ping are served; true unless given. */
  attachMonitorEndpoints?: boolean;
  /**
   * A second listener, with the monitoring endpoints: metrics and the like are then served there alone, health and ping
   * on both. None unless given here or by `MONITOR_PORT`.
   */
  monitor?: MonitorOptions;
  /** Connections to other services; each may come from the environment variable of its name. */
  settings?: SettingsOptions;
  /** Most bytes of a request body, 1,048,576 unless given; more gives 413. */
  bodyLimit?: number;
  /** A logger in pino's argument order, or `false` for none; JSON lines on stderr unless given. */
  logger?: Logger | false;
  /** The least urgent entries that the JSON lines have; else the environment's `LOG_LEVEL`, else `info`. */
  logLevel?: LogLevel;
  /** Whether each request is a line of the log at info; false unless given. */
  accessLog?: boolean;
  /** CIDRs of proxies whose `x-forwarded-for` is believed; none unless given. */
  trustProxy?: readonly string[];
  /** Time for a whole request to arrive, 60,000 unless given; 0 for no limit. */
  requestTimeout?: number;
  /** Time for the head of a request to arrive, 15,000 unless given, and never more than `requestTimeout`. */
  headersTimeout?: number;
  /** Time that an idle connection is kept, 72,000 unless given: more than usual load balancers keep theirs. */
  keepAliveTimeout?: number;
  /** Time that a client may take nothing of a reply that waits for it, 60,000 unless given; 0 for no limit. */
  sendTimeout?: number;
  /** Most connections at a time, 10,000 unless given; more are dropped. 0 for no limit. */
  maxConnections?: number;
  /** Most requests of one connection in flight, 100 unless given; further ones wait, unread beyond some 64 KiB. */
  maxPipelinedRequests?: number;
  /** Most header fields of a request, 999 unless given; more gives 431. */
  maxHeadersCount?: number;
  /** Most bytes of a request's head, 16,384 unless given; more gives 431, or 414 in the request line. */
  maxHeaderSize?: number;
  /** Most parameters of a query (else 400) or a form (else 413), 1,000 unless given. */
  parameterLimit?: number;
  /**
   * Refuses requests with 503 while the process can't keep up, monitoring aside; off unless given, `{}` for the
   * defaults.
   */
  loadShedding?: LoadSheddingOptions;
  /** Age in ms at which a connection to another service is retired, ± 10 %; 60,000 unless given. */
  maxConnectionAge?: number;
  /** Most requests to one other service at a time, 1,024 unless given, pings aside; one more is a 503 at once. */
  maxServiceRequests?: number;
  /** What answers calls of other services in memory, by name: an application, or a function like `fetch`. For tests. */
  services?: Readonly<Record<string, ServiceStandIn>>;
  /** Largest `depth` of a ping, 5 unless given. */
  maxPingDepth?: number;
  /** Time that a ping has for each level of depth, 1,000 unless given. */
  pingTimeout?: number;
  /**
   * Buckets of the durations of requests and of calls to other services: upper bounds in seconds, ascending; 5 ms to 10
   * s unless given.
   */
  durationBuckets?: readonly number[];
  /**
   * Where people read about error codes: an absolute URL that ends in `/` or `#`. With the code's name behind it, it is
   * the `type` of problem details (RFC 9457); without, that is `about:blank`.
   */
  errorTypes?: string | URL;
  /** The application's own codes, for `postern errors`. */
  errorCodes?: readonly Readonly<Record<string, ErrorCode>>[];
  /** Whether 2xx replies are held to the `response` of their route; false unless given. */
  validateResponses?: boolean;
}

/** Every option and what it has to be. */
const KINDS: Kinds<PosternOptions> = {
  version: STRING,
  attachMonitorEndpoints: BOOLEAN,
  monitor: OBJECT,
  settings: OBJECT,
  bodyLimit: wholeNumber(0),
  logger: ANYTHING,
  logLevel: oneOf(LOG_LEVELS),
  accessLog: BOOLEAN,
  trustProxy: LIST,
  requestTimeout: wholeNumber(0),
  headersTimeout: wholeNumber(0),
  keepAliveTimeout: wholeNumber(0),
  sendTimeout: wholeNumber(0),
  maxConnections: wholeNumber(0),
  maxPipelinedRequests: wholeNumber(1),
  maxHeadersCount: wholeNumber(1),
  maxHeaderSize: wholeNumber(1),
  parameterLimit: wholeNumber(0),
  loadShedding: OBJECT,
  maxConnectionAge: wholeNumber(1),
  maxServiceRequests: wholeNumber(1),
  services: OBJECT,
  maxPingDepth: wholeNumber(0),
  pingTimeout: wholeNumber(1),
  durationBuckets: LIST,
  errorTypes: {
    accepts: (value) => /[/#]$/.test(String(value)) && URL.canParse(String(value)),
    give: 'an absolute URL that ends in / or #',
  },
  errorCodes: listOf(isEnumeration, 'a list of what defineErrorCodes gave'),
  validateResponses: BOOLEAN,
};

/** Options with every default filled in. @internal */
export interface ResolvedOptions extends ServerLimits {
  readonly name: string;
  readonly version: string;
  readonly attachMonitorEndpoints: boolean;
  readonly monitor: MonitorOptions | null;
  readonly settings: Settings;
  readonly bodyLimitBytes: number;
  readonly logger: Logger;
  readonly accessLog: boolean;
  readonly resolveAddress: AddressResolver;
  readonly sendTimeoutMs: number;
  readonly maxPipelinedRequests: number;
  readonly parameterLimit: number;
  readonly loadShedding: Required<LoadSheddingOptions> | null;
  readonly maxConnectionAgeMs: number;
  readonly maxServiceRequests: number;
  readonly standIns: ReadonlyMap<string, ServiceStandIn>;
  readonly maxPingDepth: number;
  readonly pingTimeoutMs: number;
  readonly durationBuckets: readonly number[];
  readonly errorTypes: string | null;
  readonly errorCodes: readonly ErrorCode[];
  readonly validatesResponses: boolean;
}

/**
 * @param env where settings come from that the options leave out
 * @throws {TypeError} for an invalid name or environment, an unknown option, and one with a value of the wrong kind
 *
 * @internal
 */
export function resolveOptions(name: string, options: PosternOptions, env: NodeJS.ProcessEnv): ResolvedOptions {
  assertServiceName(name);
  assertOptions('new Postern()', options, KINDS);
  const { attachMonitorEndpoints = true, requestTimeout = 60_000 } = options;
  if (!attachMonitorEndpoints && options.monitor !== undefined)
    throw new TypeError(
      'monitor is a listener for monitoring endpoints, which attachMonitorEndpoints: false leaves out',
    );
  const { headersTimeout = Math.min(15_000, requestTimeout || Infinity) } = options;
  if (requestTimeout > 0 && headersTimeout > requestTimeout)
    throw new TypeError(`headersTimeout ${headersTimeout} is more than requestTimeout ${requestTimeout}; lower it`);
  return {
    name,
    version: options.version ?? (env['APPLICATION_VERSION'] || 'UNKNOWN'),
    attachMonitorEndpoints,
    monitor: attachMonitorEndpoints ? resolveMonitor(options.monitor, env) : null,
    settings: parseSettings(options.settings ?? {}, env),
    bodyLimitBytes: options.bodyLimit ?? 1_048_576,
    logger: createLogger(options.logger, name, () => options.logLevel ?? levelOf(env)),
    accessLog: options.accessLog ?? false,
    resolveAddress: createAddressResolver(options.trustProxy ?? []),
    requestTimeoutMs: requestTimeout,
    headersTimeoutMs: headersTimeout,
    keepAliveTimeoutMs: options.keepAliveTimeout ?? 72_000,
    sendTimeoutMs: options.sendTimeout ?? 60_000,
    maxConnections: options.maxConnections ?? 10_000,
    maxPipelinedRequests: options.maxPipelinedRequests ?? 100,
    maxHeadersCount: options.maxHeadersCount ?? 999,
    maxHeaderBytes: options.maxHeaderSize ?? 16_384,
    parameterLimit: options.parameterLimit ?? 1_000,
    loadShedding: options.loadShedding === undefined ? null : resolveLoadShedding(options.loadShedding),
    maxConnectionAgeMs: options.maxConnectionAge ?? 60_000,
    maxServiceRequests: options.maxServiceRequests ?? 1_024,
    standIns: resolveStandIns(options.services ?? {}),
    maxPingDepth: options.maxPingDepth ?? 5,
    pingTimeoutMs: options.pingTimeout ?? 1_000,
    durationBuckets: resolveBuckets(options.durationBuckets),
    errorTypes: options.errorTypes === undefined ? null : new URL(options.errorTypes).href,
    errorCodes: (options.errorCodes ?? []).flatMap((codes) => Object.values(codes)),
    validatesResponses: options.validateResponses ?? false,
  };
}

function isEnumeration(codes: unknown): boolean {
  return typeof codes === 'object' && codes !== null && Object.values(codes).every(isErrorCode);
}

function levelOf({ LOG_LEVEL: given = '' }: NodeJS.ProcessEnv): LogLevel {
  if (given === '') return 'info';
  const level = LOG_LEVELS.find((name) => name === given);
  if (level === undefined)
    throw new TypeError(`LOG_LEVEL is ${JSON.stringify(given)}; give one of ${LOG_LEVELS.join(', ')}`);
  return level;
}

function resolveStandIns(services: Readonly<Record<string, ServiceStandIn>>): Map<string, ServiceStandIn> {
  for (const [name, standIn] of Object.entries(services)) {
    if (!isServiceName(name))
      throw new TypeError(`services has ${JSON.stringify(name)}, which is no name of a service`);
    if (!isStandIn(standIn))
      throw new TypeError(
        `services.${name} is ${typeof standIn}; give an application or a function (request) => Response`,
      );
  }
  return new Map(Object.entries(services));
}

/** Buckets, checked as those of a histogram; what is wrong with them is a `TypeError`, as for other options. */
function resolveBuckets(buckets: readonly number[] = DEFAULT_BUCKETS): readonly number[] {
  try {
    return toBounds(buckets, 'durationBuckets');
  } catch (error) {
    throw error instanceof RangeError ? new TypeError(error.message) : error;
  }
}
