/* The services that an application calls, from options and environment (SPEC 1, 4.2). */

import { assertOptions, LIST, STRING, type Kinds } from '../base/options-check.js';
import { assertTemplate, toServiceUrls } from './service-urls.js';

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

const DEFAULT_TEMPLATE = 'http://{service}:8000';

/**
 * Reads the settings. An option overrides the environment variable of the same name; an empty variable counts as unset.
 *
 * @throws {TypeError} for an unknown setting, a wrong name, URL or template, and for one service with two URLs
 * @internal
 */
export function parseSettings(options: SettingsOptions, env: Readonly<Record<string, string | undefined>>): Settings {
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
  const settings: Settings = Object.freeze({
    SERVICE_CONNECTIONS: listOf('SERVICE_CONNECTIONS'),
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
