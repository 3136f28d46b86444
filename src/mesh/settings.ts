/* The services that an application calls, from options and environment (SPEC 1, 4.2). */

import { TIME_LIMIT } from '../base/deadline.js';
import { assertOptions, converted, LIST, OBJECT, option, STRING, wholeNumber } from '../base/options-check.js';
import type { Kinds, OptionTable, Resolved } from '../base/options-check.js';
import { formatTarget, toHeaders } from './request.js';
import { assertServiceName, isServiceName, type RequestHeaders, type ServiceStandIn } from './service-client.js';
import { assertTemplate, toServiceUrls } from './service-urls.js';

/** The services that this one calls, and limits of the calls. */
export interface MeshOptions {
  /** Connections to other services. Default of each setting: the environment variable of its name. */
  settings?: SettingsOptions | undefined;
  /**
   * The services that this one calls, by name, with defaults for the calls. Each is a connection, as if the setting
   * `SERVICE_CONNECTIONS` named it; the setting may give it another URL. Default: none.
   */
  connections?: Readonly<Record<string, ConnectionOptions>> | undefined;
  /** Answers calls of other services in memory, by name: an application, or a function like `fetch`. For tests. */
  services?: Readonly<Record<string, ServiceStandIn>> | undefined;
  /** Age in ms at which a connection to another service is retired, ± 10 %. Default: 60,000. */
  maxConnectionAge?: number | undefined;
  /** Maximum requests to one other service at a time, not counting pings; one more is a 503. Default: 1,024. */
  maxServiceRequests?: number | undefined;
}

/** @internal */
export const MESH = {
  settings: option(OBJECT, {}),
  connections: converted(OBJECT, parseConnections),
  services: converted(OBJECT, parseStandIns),
  maxConnectionAge: option(wholeNumber(1), 60_000),
  maxServiceRequests: option(wholeNumber(1), 1_024),
} satisfies OptionTable<MeshOptions>;

/** The values in use. @internal */
export interface MeshSettings extends Resolved<typeof MESH> {}

/** A service that this one calls: defaults of its calls, and how it is pinged. */
export interface ConnectionOptions {
  /** Time limit of each attempt in ms. Default: 5,000. */
  timeout?: number | undefined;
  /** How often an idempotent method is repeated after 503, 504 and connection errors. Default: 0. */
  retry?: number | undefined;
  /**
   * Headers of each call, which may override them. A function is called once for each call, for a token that changes;
   * the time limit of an attempt applies to it, too.
   */
  headers?: RequestHeaders | (() => RequestHeaders | Promise<RequestHeaders>) | undefined;
  /**
   * For services that are not built with Postern. `false`: the ping of the mesh leaves the service out. A path such as
   * `'/health'`: it is asked instead of the ping endpoint, and any 2xx is a `pong`.
   */
  ping?: false | string | undefined;
}

/** Names and URLs of called services. What is left out comes from the environment variable of the same name. */
export interface SettingsOptions {
  /**
   * `'billing'`, which lives where the template says, or `'mail=http://10.0.0.7:8080'`. As a variable:
   * `billing,mail=http://10.0.0.7:8080`.
   */
  SERVICE_CONNECTIONS?: readonly string[] | undefined;
  /** As above; both lists are merged. */
  REQUIRED_SERVICE_CONNECTIONS?: readonly string[] | undefined;
  /** URL of a service that is listed by name only. Default: `http://{service}:8000`. */
  SERVICE_URL_TEMPLATE?: string | undefined;
}

/** Settings that were checked; frozen. */
export type Settings = {
  readonly [Name in keyof SettingsOptions]-?: Exclude<SettingsOptions[Name], undefined>;
};

const KINDS: Kinds<SettingsOptions> = {
  SERVICE_CONNECTIONS: LIST,
  REQUIRED_SERVICE_CONNECTIONS: LIST,
  SERVICE_URL_TEMPLATE: STRING,
};

const CONNECTION: Kinds<ConnectionOptions> = {
  timeout: TIME_LIMIT,
  retry: wholeNumber(0),
  headers: {
    accepts: (value) => typeof value === 'function' || (typeof value === 'object' && value !== null),
    give: 'an object, or a function that returns one',
  },
  ping: { accepts: (value) => value === false || typeof value === 'string', give: "false or a path, '/health'" },
};

/** @throws {TypeError} for an invalid name, option, header or path */
function parseConnections(
  given: Readonly<Record<string, ConnectionOptions>> = {},
): ReadonlyMap<string, ConnectionOptions> {
  const entries = Object.entries(given).map(([name, options]) => {
    assertServiceName(name);
    assertOptions(`connections.${name}`, options, CONNECTION);
    const { headers, ping } = options;
    if (typeof headers === 'object') toHeaders(headers);
    if (typeof ping === 'string') formatTarget(ping, undefined);
    return [name, { ...options }] as const;
  });
  return new Map(entries);
}

/** @throws {TypeError} for an invalid name, and for what is neither an application nor a function */
function parseStandIns(given: Readonly<Record<string, ServiceStandIn>> = {}): ReadonlyMap<string, ServiceStandIn> {
  for (const [name, standIn] of Object.entries(given)) {
    if (!isServiceName(name))
      throw new TypeError(`services has ${JSON.stringify(name)}, which is not a service name`);
    const isApplication = standIn instanceof Object && typeof Reflect.get(standIn, 'request') === 'function';
    if (typeof standIn !== 'function' && !isApplication)
      throw new TypeError(
        `services.${name} is ${typeof standIn}; give an application or a function (request) => Response`,
      );
  }
  return new Map(Object.entries(given));
}

const DEFAULT_TEMPLATE = 'http://{service}:8000';

/**
 * Reads the settings. An option overrides the environment variable of the same name; an empty variable counts as unset.
 *
 * @param connected names that `SERVICE_CONNECTIONS` has in any case
 * @throws {TypeError} for an unknown setting, a wrong name, URL or template, and for one service with two URLs
 * @internal
 */
export function parseSettings(
  options: SettingsOptions,
  env: Readonly<Record<string, string | undefined>>,
  connected: Iterable<string> = [],
): Settings {
  assertOptions('settings', options, KINDS);
  const template = options.SERVICE_URL_TEMPLATE ?? (env['SERVICE_URL_TEMPLATE'] || DEFAULT_TEMPLATE);
  if (template !== DEFAULT_TEMPLATE) assertTemplate(template);
  const listOf = (name: 'SERVICE_CONNECTIONS' | 'REQUIRED_SERVICE_CONNECTIONS'): readonly string[] => {
    const entries = options[name] ?? (env[name] ?? '').split(',').flatMap((entry) => entry.trim() || []);
    for (const entry of entries)
      if (typeof entry !== 'string')
        throw new TypeError(`${name} has the entry ${String(entry)}; give 'name' or 'name=URL'`);
    return Object.freeze([...new Set(entries)]);
  };
  const listed = listOf('SERVICE_CONNECTIONS');
  const missing = [...connected].filter((name) => !listed.some((entry) => entry.split('=', 1)[0] === name));
  const settings: Settings = Object.freeze({
    SERVICE_CONNECTIONS: Object.freeze([...listed, ...missing]),
    REQUIRED_SERVICE_CONNECTIONS: listOf('REQUIRED_SERVICE_CONNECTIONS'),
    SERVICE_URL_TEMPLATE: template,
  });
  serviceUrlsOf(settings);
  return settings;
}

/**
 * Every connected service once, in order of first mention, with its URL: no query, no trailing slash.
 *
 * @throws {TypeError} for a wrong name or URL, and for one service with two URLs; not after {@link parseSettings}
 * @internal
 */
export function serviceUrlsOf(settings: Settings): Map<string, string> {
  const entries = [...settings.SERVICE_CONNECTIONS, ...settings.REQUIRED_SERVICE_CONNECTIONS];
  return entries.length === 0 ? new Map() : toServiceUrls(entries, settings.SERVICE_URL_TEMPLATE);
}
