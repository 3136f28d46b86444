/*
 * The connections of a service to others, from options and environment (SPEC 1, 4.2).
 */

import { assertOptions, LIST, show, STRING, type Kinds } from '../base/options-check.js';

/** Connections as they are given; what is left out comes from the environment variable of the same name. */
export interface SettingsOptions {
  /**
   * `'billing'`, which lives where the template says, or `'mail=http://10.0.0.7:8080'`. As a variable:
   * `billing,mail=http://10.0.0.7:8080`.
   */
  SERVICE_CONNECTIONS?: readonly string[];
  /** As above; both lists are merged. */
  REQUIRED_SERVICE_CONNECTIONS?: readonly string[];
  /** Where a bare name lives; `http://{service}:8000` unless given. */
  SERVICE_URL_TEMPLATE?: string;
}

/** Connections that were checked; frozen. */
export interface Settings {
  readonly SERVICE_CONNECTIONS: readonly string[];
  readonly REQUIRED_SERVICE_CONNECTIONS: readonly string[];
  readonly SERVICE_URL_TEMPLATE: string;
}

const KINDS: Kinds<SettingsOptions> = {
  SERVICE_CONNECTIONS: LIST,
  REQUIRED_SERVICE_CONNECTIONS: LIST,
  SERVICE_URL_TEMPLATE: STRING,
};

const DEFAULT_TEMPLATE = 'http://{service}:8000';
const PLACEHOLDER = '{service}';
const SERVICE_NAME = /^[A-Za-z0-9._~-]+$/;

/** Whether a name is a URL path segment that no URL parser changes. @internal */
export function isServiceName(name: unknown): name is string {
  return typeof name === 'string' && SERVICE_NAME.test(name) && name !== '.' && name !== '..';
}

/** @throws {TypeError} for what is no {@link isServiceName} @internal */
export function assertServiceName(name: unknown): void {
  if (!isServiceName(name))
    throw new TypeError(`service name ${JSON.stringify(name)} is no URL path segment; use letters, digits and . _ ~ -`);
}

/**
 * Settles on the settings; an option beats the environment variable of the same name, and an empty variable is none.
 *
 * @throws {TypeError} for an unknown setting, a wrong name, URL or template, and for one service with two URLs
 *
 * @internal
 */
export function parseSettings(options: SettingsOptions, env: Readonly<Record<string, string | undefined>>): Settings {
  assertOptions('settings', options, KINDS);
  const settings: Settings = Object.freeze({
    SERVICE_CONNECTIONS: listOf(options, env, 'SERVICE_CONNECTIONS'),
    REQUIRED_SERVICE_CONNECTIONS: listOf(options, env, 'REQUIRED_SERVICE_CONNECTIONS'),
    SERVICE_URL_TEMPLATE: checkTemplate(
      options.SERVICE_URL_TEMPLATE ?? (env['SERVICE_URL_TEMPLATE'] || DEFAULT_TEMPLATE),
    ),
  });
  connectionsOf(settings);
  return settings;
}

/**
 * Every connected service once, in order of first mention, with the URL it lives at: no query, no trailing slash.
 *
 * @throws {TypeError} for a wrong name or URL, and for one service with two URLs; none after {@link parseSettings}
 *
 * @internal
 */
export function connectionsOf(settings: Settings): Map<string, string> {
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

type ListName = 'SERVICE_CONNECTIONS' | 'REQUIRED_SERVICE_CONNECTIONS';

function listOf(
  options: SettingsOptions,
  env: Readonly<Record<string, string | undefined>>,
  name: ListName,
): readonly string[] {
  const fromEnv = (): string[] => (env[name] ?? '').split(',').map((entry) => entry.trim());
  const entries = options[name] ?? fromEnv().filter((entry) => entry !== '');
  for (const entry of entries) {
    if (typeof entry !== 'string')
      throw new TypeError(`${name} has the entry ${String(entry)}; give 'name' or 'name=URL'`);
  }
  return Object.freeze([...new Set(entries)]);
}

function parseEntry(entry: string): { name: string; url: string | undefined } {
  if (/^\s*[[{"]/.test(entry))
    throw new TypeError(`SERVICE_CONNECTIONS has ${show(entry)}, not a name; write billing,mail=http://10.0.0.7:8080`);
  const mark = entry.indexOf('=');
  const [, host, port] = (mark === -1 && /^(?:https?:\/\/)?([^/]+?)(:\d+)?\/?$/i.exec(entry)) || [];
  if (host !== undefined && (port !== undefined || entry.includes('//')))
    throw new TypeError(
      `SERVICE_CONNECTIONS has ${show(entry)}, which has no name; write ${nameFor(host)}=http://${host}${port ?? ''}`,
    );
  const name = mark === -1 ? entry : entry.slice(0, mark);
  assertServiceName(name);
  return { name, url: mark === -1 ? undefined : baseUrl(entry.slice(mark + 1), `service "${name}"`).text };
}

/** A name to suggest for the service at a host; an address is not a name. */
function nameFor(host: string): string {
  return /^[a-z][a-z0-9-]*$/i.test(host) ? host : 'billing';
}

function checkTemplate(template: string): string {
  if (template === DEFAULT_TEMPLATE) return template;
  if (!template.includes(PLACEHOLDER))
    throw new TypeError(`SERVICE_URL_TEMPLATE is ${JSON.stringify(template)}; give a URL with ${PLACEHOLDER} in it`);
  expandTemplate(template, 'service');
  return template;
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
  if (!URL.canParse(source)) throw new TypeError(`${what}: ${JSON.stringify(source)} is no URL`);
  const url = new URL(source);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError(`${what}: ${url.protocol} is not served; use http: or https:`);
  if (url.username !== '' || url.password !== '')
    throw new TypeError(`${what}: the URL has credentials, which settings would show; leave them out`);
  if (/[?#]/.test(source))
    throw new TypeError(`${what}: ${JSON.stringify(source)} has a query or fragment; leave it out`);
  return { text: url.origin + url.pathname.replace(/\/$/, ''), host: url.hostname };
}
