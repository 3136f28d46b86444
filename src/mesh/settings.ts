/* The services that an application calls, from options and environment (SPEC 1, 4.2). */

import { TIME_LIMIT } from '../base/deadline.js';
import { assertOptions, converted, isRecord, LIST, OBJECT, option, show } from '../base/options-check.js';
import { STRING, wholeNumber } from '../base/options-check.js';
import type { Kinds, OptionTable, Resolved } from '../base/options-check.js';
import type { RequestHeaders, ServiceStandIn } from './call-options.js';
import { formatTarget, toHeaders } from './request.js';

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

/** Whether a name is a URL path segment that no URL parser changes. @internal */
export function isServiceName(name: unknown): name is string {
  return typeof name === 'string' && /^[A-Za-z0-9._~-]+$/.test(name) && name !== '.' && name !== '..';
}

/** @throws {TypeError} for any other name @internal */
export function assertServiceName(name: unknown): asserts name is string {
  if (!isServiceName(name))
    throw new TypeError(`service name ${JSON.stringify(name)} is not a URL path segment; use letters, digits and . _ ~ -`);
}

/** @throws {TypeError} for an invalid name, option, header or path */
function parseConnections(
  given: Readonly<Record<string, ConnectionOptions>> = {},
): ReadonlyMap<string, ConnectionOptions> {
  const entries = Object.entries(given).map(([name, options]) => {
    assertServiceName(name);
    assertNoUrl(name, options);
    assertOptions(`connections.${name}`, options, CONNECTION);
    const { headers, ping } = options;
    if (typeof headers === 'object') toHeaders(headers);
    if (typeof ping === 'string') formatTarget(ping, undefined);
    return [name, { ...options }] as const;
  });
  return new Map(entries);
}

/** @throws {TypeError} for a URL, which has its place elsewhere: it differs from one environment to the next */
function assertNoUrl(name: string, options: unknown): void {
  if (typeof options !== 'string' && !(isRecord(options) && 'url' in options)) return;
  const remedy = `give it as settings.SERVICE_CONNECTIONS: ['${name}=http://10.0.0.7:8080']`;
  throw new TypeError(`connections.${name} has a URL; ${remedy}, or in the variable of that name`);
}

/** @throws {TypeError} for an invalid name, and for what is neither an application nor a function */
function parseStandIns(given: Readonly<Record<string, ServiceStandIn>> = {}): ReadonlyMap<string, ServiceStandIn> {
  for (const [name, standIn] of Object.entries(given)) {
    assertServiceName(name);
    const isApplication = standIn instanceof Object && typeof Reflect.get(standIn, 'request') === 'function';
    if (typeof standIn !== 'function' && !isApplication)
      throw new TypeError(
        `services.${name} is ${show(standIn)}; give an application or a function (request) => Response`,
      );
  }
  return new Map(Object.entries(given));
}

/** The port on which a service listens by default, and where it is called by default. @internal */
export const DEFAULT_PORT = 8000;
const PLACEHOLDER = '{service}';
const DEFAULT_TEMPLATE = `http://${PLACEHOLDER}:${DEFAULT_PORT}`;

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
  if (!template.includes(PLACEHOLDER))
    throw new TypeError(`SERVICE_URL_TEMPLATE is ${JSON.stringify(template)}; give a URL with ${PLACEHOLDER} in it`);
  expandTemplate(template, 'service');
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
  const urls = new Map<string, string | undefined>();
  for (const entry of [...settings.SERVICE_CONNECTIONS, ...settings.REQUIRED_SERVICE_CONNECTIONS]) {
    const { name, url } = parseEntry(entry);
    const other = urls.get(name);
    if (url !== undefined && other !== undefined && other !== url)
      throw new TypeError(`service "${name}" has the URLs ${other} and ${url}; keep one`);
    urls.set(name, url ?? other);
  }
  const { SERVICE_URL_TEMPLATE: template } = settings;
  return new Map([...urls].map(([name, url]) => [name, url ?? expandTemplate(template, name)]));
}

function parseEntry(entry: string): { name: string; url: string | undefined } {
  if (/^\s*[[{"]/.test(entry))
    throw new TypeError(`SERVICE_CONNECTIONS has ${show(entry)}, not a name; write billing,mail=http://10.0.0.7:8080`);
  const [name, url] = entry.split(/=(.*)/s, 2);
  const [, host, port] = (url === undefined && /^(?:https?:\/\/)?([^/]+?)(:\d+)?\/?$/i.exec(entry)) || [];
  if (host !== undefined && (port !== undefined || entry.includes('//'))) {
    // An address is not a name.
    const example = `${/^[a-z][a-z0-9-]*$/i.test(host) ? host : 'billing'}=http://${host}${port ?? ''}`;
    throw new TypeError(`SERVICE_CONNECTIONS has ${show(entry)}, which has no name; write ${example}`);
  }
  assertServiceName(name);
  return { name, url: url === undefined ? undefined : baseUrl(url, `service "${name}"`).text };
}

function expandTemplate(template: string, name: string): string {
  const source = template.replaceAll(PLACEHOLDER, name);
  const { text, host } = baseUrl(source, `SERVICE_URL_TEMPLATE with "${name}"`);
  // A name like "7" would be read as an IPv4 address in short form.
  if (!source.toLowerCase().includes(host))
    throw new TypeError(`service name "${name}" is read as the address ${host} in ${source}; give it a URL`);
  return text;
}

function baseUrl(source: string, what: string): { text: string; host: string } {
  const url = URL.canParse(source) ? new URL(source) : undefined;
  // "localhost:3000" is a URL with the protocol "localhost:".
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const remedy = 'use http: or https:, as in http://10.0.0.7:8080';
    throw new TypeError(`${what}: ${JSON.stringify(source)} is not a URL of a service; ${remedy}`);
  }
  if (url.username !== '' || url.password !== '')
    throw new TypeError(`${what}: the URL has credentials, which settings would show; leave them out`);
  if (/[?#]/.test(source))
    throw new TypeError(`${what}: ${JSON.stringify(source)} has a query or fragment; leave it out`);
  return { text: url.origin + url.pathname.replace(/\/$/, ''), host: url.hostname };
}
