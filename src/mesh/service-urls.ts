/* The URLs of connected services, from the entries of the settings. Loaded for an application that has entries. */

import { show } from '../base/options-check.js';
import { assertServiceName } from './service-client.js';

const PLACEHOLDER = '{service}';

/**
 * Each service once, in order of first mention, with its URL: no query, no trailing slash.
 *
 * @throws {TypeError} for a wrong name or URL, and for one service with two URLs
 */
export function toServiceUrls(entries: readonly string[], template: string): Map<string, string> {
  const urls = new Map<string, string | undefined>();
  for (const entry of entries) {
    const { name, url } = parseEntry(entry);
    const other = urls.get(name);
    if (url !== undefined && other !== undefined && other !== url)
      throw new TypeError(`service "${name}" has the URLs ${other} and ${url}; keep one`);
    urls.set(name, url ?? other);
  }
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

/** @throws {TypeError} for a template without `{service}`, or that is not a URL with it */
export function assertTemplate(template: string): void {
  if (!template.includes(PLACEHOLDER))
    throw new TypeError(`SERVICE_URL_TEMPLATE is ${JSON.stringify(template)}; give a URL with ${PLACEHOLDER} in it`);
  expandTemplate(template, 'service');
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
  if (!URL.canParse(source)) throw new TypeError(`${what}: ${JSON.stringify(source)} is not a URL`);
  const url = new URL(source);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError(`${what}: ${url.protocol} is not served; use http: or https:`);
  if (url.username !== '' || url.password !== '')
    throw new TypeError(`${what}: the URL has credentials, which settings would show; leave them out`);
  if (/[?#]/.test(source))
    throw new TypeError(`${what}: ${JSON.stringify(source)} has a query or fragment; leave it out`);
  return { text: url.origin + url.pathname.replace(/\/$/, ''), host: url.hostname };
}
