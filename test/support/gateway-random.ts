/**
 * Random services behind real gateways, and random requests for them: what a gateway lets through, and what it keeps
 * out.
 */

import { GatewayError, toNginx } from '../../src/gateway.js';
import { Router } from '../../src/routing/router.js';
import { addTo, createRouter } from './gateway-sample.js';
import {
  askSites, EXPORTERS, NAME, startSite, stopSite, type Outcome, type ServiceTable, type Site, type SiteRequest,
  type SiteRoute,
} from './gateway-site.js';
import { randomSource } from './random-constraint.js';
import { several, type Random } from './random.js';

const STATICS = [
  'a', 'b', 'me', 'A', 'v1.0', 'é', 'a b', '@me', 'x;y', '~u', '😀', '(', '50%', 'a{b}', '$x', '`', '"', "'", '50%',
  '.', '..', 'a',
];
const SHAPES = [
  '\\d+', '[a-z]+', '[a-z]{2}', 'a|b', '[^a]+', '.{1,3}', '\\w+', '[a-z ]+', '[à-ü]+', '😀|a', '\\d*', '.+', '(?:ab?)+',
  '[a-z]+(?:-[a-z]+)*',
  '[@a]', '\\S{2}', 'm.', '[^/]{2,}', '(?:é|e)\\w?', '.', '[^2]*2[^b]*', '\\w+[ \\t]\\w+', '[\\w.+@-]+', '\\w+[?#]\\w+',
  '[%20]+', '(a|%)+',
];
const VALUES = [
  ...STATICS, '7', '42', 'ab', 'abc', 'aa', 'a-a', '@@', 'éé', 'ü', '😀😀', '+', '%', 'a%41', '€', ' ', 'a\nb', '\n',
  '\0', 'ABC', '{a}', '...', 'a/b', '/', '\\', 'ada+b@x.com', 'x y', '\t', '',
  'a'.repeat(3000), '%2F'.repeat(400),
];
const METHODS = ['GET', 'GET', 'GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE', 'QUERY'];
const PREFIXES = [[''], [''], ['', ''], ['', '/p'], ['/p', '/p/q'], ['/p/q', '/p', '']];
const JUNK = [
  '%', '%2', '%zz', '%C3', '%FF', '%00', '%0a', '%u0041', '\\', '|', '"', '<', '^', '{', '#', '?', '//', '/./', '/../',
  '/..', '/%2e%2e/', '%2F', '%5c', ';', ' ', '\x7f', '\x80', 'é', '*', ':', '@',
];
const FIELDS = [
  'X-Postern-Scope: private', 'x-postern-scope:', 'X-Postern-Scope: public\r\nX-Postern-Scope: x',
  'X_Postern_Scope: private', 'Connection: x-postern-scope', 'Connection: close, X-Postern-Scope, x-request-id',
  'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA', 'Upgrade: h2c',
  'TE: trailers, x-postern-scope', 'Keep-Alive: x-postern-scope', 'Proxy-Connection: x-postern-scope',
  'Forwarded: for=1.2.3.4', 'Baggage: a=b', 'X-Envoy-Overloaded: true', 'X-Envoy-Expected-Rq-Timeout-Ms: 1',
  'X-Forwarded-Host: evil', 'X-Request-Id: a b', 'X-HTTP-Method-Override: DELETE', 'X-Original-URL: /',
  'X-Rewrite-URL: /',
];
const HOSTS = [
  ...Array.from({ length: 20 }, () => NAME), 'T.Example:80', 'other.example', `${NAME},evil`, `${NAME}:80,evil`,
  `evil,${NAME}`, `${NAME}.`,
];

/**
 * Starts `count` random sites behind each gateway, and sends `requests` requests to each of them through each gateway.
 */
export async function runSites(
  random: Random,
  count: number,
  requests: number,
  exporters: Partial<typeof EXPORTERS> = EXPORTERS,
): Promise<Outcome> {
  const jobs: { site: Site; requests: SiteRequest[] }[] = [];
  for (let i = 0; i < count; i += 1) {
    const site = await startSite(createTables(random, i), random.int(2) === 0 ? [] : [NAME]);
    jobs.push({ site, requests: Array.from({ length: requests }, () => createRequest(random, site)) });
  }
  try {
    return await askSites(jobs, exporters);
  } finally {
    for (const { site } of jobs) await stopSite(site);
  }
}

/** The tables of services whose public routes have no path in common. */
function createTables(random: Random, index: number): ServiceTable[] {
  for (;;) {
    const tables = random.pick(PREFIXES)
      .map((prefix, i) => ({ prefix, name: `s${index}-${i}`, routes: createTable(random) }));
    try {
      toNginx(
        tables.map(({ name, prefix, routes }) => ({
          router: createRouter(routes.map(titleOf)),
          service: name,
          upstream: 'http://a',
          ...(prefix === '' ? {} : { prefix }),
        })),
      );
      return tables;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
    }
  }
}

function titleOf({ open, method, path }: SiteRoute): string {
  return `${open ? '+' : '-'}${method} ${path}`;
}

/** Up to twelve routes, so that some lie inside of others. */
function createTable(random: Random): SiteRoute[] {
  const segment = (last: boolean, index: number): string => {
    const kind = random.int(last ? 11 : 9);
    if (kind < 4) return random.pick(STATICS);
    if (kind < 6) return `:p${index}`;
    if (kind < 8) return `:p${index}(${random.pick(SHAPES)})`;
    if (kind === 8) return `:p${index}(${randomSource(random, 2)})`;
    return kind === 9 ? '*rest' : '';
  };
  const router = new Router();
  const routes: SiteRoute[] = [];
  for (let i = 3 + random.int(10); i > 0; i -= 1) {
    const length = 1 + random.int(3);
    const path = Array.from({ length }, (_, index) => `/${segment(index === length - 1, index)}`).join('');
    const route = { open: random.int(2) === 0, method: random.pick(METHODS), path };
    try {
      addTo(router, titleOf(route));
      routes.push(route);
    } catch (error) {
      // A random constraint may be refused, and a route may be there already.
      if (!(error instanceof TypeError)) throw error;
    }
  }
  return routes.length === 0 ? [{ open: true, method: 'GET', path: '/' }] : routes;
}

function createRequest(random: Random, { services }: Site): SiteRequest {
  const service = random.pick(services);
  const other = random.int(8) === 0 ? random.pick(services) : service;
  const open = service.routes.filter((each) => each.open);
  const route = random.pick(open.length > 0 && random.int(2) === 0 ? open : service.routes);
  const { path } = route;
  const value = (segment: string): string => {
    if (segment.startsWith('*')) return Array.from({ length: 1 + random.int(3) }, () => random.pick(VALUES)).join('/');
    return segment.startsWith(':') || random.int(8) === 0 ? random.pick(VALUES) : segment;
  };
  const style = random.pick([encodeURIComponent, encodeURIComponent, encodeURI]);
  const isWild = path.includes('/*');
  const segments = `${other.prefix}${path}`.slice(1).split(/\/(?![^(]*\))/).flatMap((segment) => {
    const text = value(segment);
    return isWild && segment.startsWith('*') ? text.split('/')
      .map((part) => spell(random, part, style)) : [spell(random, text, style)];
  });
  let target = `/${segments.join('/')}`;
  if (random.int(6) === 0) target = splice(random, target, random.pick(JUNK));
  if (random.int(20) === 0)
    target = several(random, 0, 6, () => random.pick([...JUNK, ...VALUES.slice(0, 40), '/'])).join('');
  if (random.int(12) === 0) target += random.pick(['?a=b', '?/../x', '?%2F', '?', '?a=%zz']);
  if (random.int(25) === 0) target = random.pick([`http://${NAME}${target}`, '*', '', `/${target}`, target.slice(1)]);
  // A line break would end the request line.
  target = target.replaceAll('\n', '');
  const fields = random.int(3) === 0 ? several(random, 1, 2, () => random.pick(FIELDS)).join('\r\n') : '';
  return {
    method:
      random.int(4) === 0 ? random.pick(['GET', 'HEAD', 'PUT', 'get', 'TRACE', 'BREW', 'G', ...METHODS]) : route.method,
    target,
    host: target.startsWith('http') ? NAME : random.pick(HOSTS),
    fields,
  };
}

/** One of the spellings of a segment. */
function spell(random: Random, text: string, style: (text: string) => string): string {
  const plain = style(text).replace(/[?#/]/g, encodeURIComponent);
  if (random.int(3) > 0) return plain;
  const cased = random.int(2) === 0 ? plain.replace(/%../g, (escape) => escape.toLowerCase()) : plain;
  return cased.replace(/%..|[^%]/g, (char) =>
    char.length === 1 && random.int(4) === 0 ? `%${char.charCodeAt(0).toString(16)}` : char,
  );
}

function splice(random: Random, text: string, junk: string): string {
  const at = 1 + random.int(text.length);
  return text.slice(0, at) + junk + text.slice(at);
}
