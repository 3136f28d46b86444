/**
 * The options of an application, checked once, with their defaults.
 */

import { createAddressResolver, type AddressResolver } from '../http/client-address.js';
import { createLogger, type Logger } from '../log.js';
import type { ServerLimits } from '../http/server.js';
import { isServiceName, parseSettings, type Settings, type SettingsOptions } from '../mesh/settings.js';
import type { LoadSheddingOptions } from '../monitor/load-shedder.js';

/** What `new Postern(name, options)` takes. Times are in ms. */
export interface PosternOptions {
  /** The application's version; else the environment's `APPLICATION_VERSION`, else `UNKNOWN`. */
  version?: string;
  /** Whether health, metrics and ping are served; true unless given. */
  attachMonitorEndpoints?: boolean;
  /** Connections to other services; each may come from the environment variable of its name. */
  settings?: SettingsOptions;
  /** Most bytes of a request body, 1,048,576 unless given; more gives 413. */
  bodyLimit?: number;
  /** A logger in pino's argument order, or `false` for none; JSON lines on stderr unless given. */
  logger?: Logger | false;
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
  /** Most header fields of a request, 999 unless given; more gives 431. */
  maxHeadersCount?: number;
  /** Most bytes of a request's head, 16,384 unless given; more gives 431, or 414 in the request line. */
  maxHeaderSize?: number;
  /** Most parameters of a query (else 400) or a form (else 413), 1,000 unless given. */
  parameterLimit?: number;
  /** Refuses requests with 503 while the process can't keep up, monitoring aside; off unless given, `{}` for the defaults. */
  loadShedding?: LoadSheddingOptions;
  /** Largest `depth` of a ping, 5 unless given. */
  maxPingDepth?: number;
  /** Time that one level of a ping is worth, 1,000 unless given. */
  pingTimeout?: number;
}

/** Options with every default filled in. */
export interface ResolvedOptions extends ServerLimits {
  readonly name: string;
  readonly version: string;
  readonly attachMonitorEndpoints: boolean;
  readonly settings: Settings;
  readonly bodyLimitBytes: number;
  readonly logger: Logger;
  readonly resolveAddress: AddressResolver;
  readonly sendTimeoutMs: number;
  readonly parameterLimit: number;
  readonly loadShedding: Required<LoadSheddingOptions> | null;
  readonly maxPingDepth: number;
  readonly pingTimeoutMs: number;
}

/**
 * @param env where settings come from that the options leave out
 * @throws {TypeError} for an invalid name, limit, network, logger or setting
 */
export function resolveOptions(name: string, options: PosternOptions, env: NodeJS.ProcessEnv): ResolvedOptions {
  if (!isServiceName(name)) throw new TypeError(`service name ${JSON.stringify(name)} is no URL path segment; use letters, digits and . _ ~ -`);
  const { version = env['APPLICATION_VERSION'] || 'UNKNOWN' } = options;
  if (typeof version !== 'string') throw new TypeError(`version is ${String(version)}; give a string`);
  const requestTimeoutMs = limit('requestTimeout', options.requestTimeout, 60_000);
  const headersDefault = requestTimeoutMs === 0 ? 15_000 : Math.min(15_000, requestTimeoutMs);
  const headersTimeoutMs = limit('headersTimeout', options.headersTimeout, headersDefault);
  if (requestTimeoutMs > 0 && headersTimeoutMs > requestTimeoutMs) {
    throw new TypeError(`headersTimeout ${headersTimeoutMs} is more than requestTimeout ${requestTimeoutMs}; lower it`);
  }
  return {
    name,
    version,
    attachMonitorEndpoints: options.attachMonitorEndpoints ?? true,
    settings: parseSettings(options.settings ?? {}, env),
    bodyLimitBytes: limit('bodyLimit', options.bodyLimit, 1_048_576),
    logger: createLogger(options.logger, name),
    resolveAddress: createAddressResolver(options.trustProxy ?? []),
    requestTimeoutMs,
    headersTimeoutMs,
    keepAliveTimeoutMs: limit('keepAliveTimeout', options.keepAliveTimeout, 72_000),
    sendTimeoutMs: limit('sendTimeout', options.sendTimeout, 60_000),
    maxConnections: limit('maxConnections', options.maxConnections, 10_000),
    maxHeadersCount: limit('maxHeadersCount', options.maxHeadersCount, 999, 1),
    maxHeaderBytes: limit('maxHeaderSize', options.maxHeaderSize, 16_384, 1),
    parameterLimit: limit('parameterLimit', options.parameterLimit, 1_000),
    loadShedding: options.loadShedding === undefined ? null : resolveLoadShedding(options.loadShedding),
    maxPingDepth: limit('maxPingDepth', options.maxPingDepth, 5),
    pingTimeoutMs: limit('pingTimeout', options.pingTimeout, 1_000, 1),
  };
}

function resolveLoadShedding(options: LoadSheddingOptions): Required<LoadSheddingOptions> {
  if (typeof options !== 'object' || options === null) throw new TypeError(`loadShedding is ${String(options)}; give an object, or leave it out for none`);
  const { maxEventLoopDelay, maxMemoryPercent, retryAfter } = options;
  return {
    maxEventLoopDelay: limit('maxEventLoopDelay', maxEventLoopDelay, 500, 1),
    maxMemoryPercent: limit('maxMemoryPercent', maxMemoryPercent, 95, 1),
    retryAfter: limit('retryAfter', retryAfter, 1),
  };
}

/** A limit that is wrong must not silently mean none. */
function limit(name: string, value: number | undefined, fallback: number, least = 0): number {
  if (value === undefined) return fallback;
  if (!Number.isSafeInteger(value) || value < least) throw new TypeError(`${name} is ${String(value)}; give a whole number of ${least} or more`);
  return value;
}
