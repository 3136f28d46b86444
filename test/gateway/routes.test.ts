/**
 * Every kind of route behind real gateways, in every spelling of its path: only public handlers run, every request that
 * one of them answers gets through, and the other replies are those of an application that has only the public routes.
 *
 * @module-tag gateways
 * @module-tag slow
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVERYDAY, ODD, SAMPLE } from '../support/gateway-sample.js';
import { checkGateway, type GatewayName } from '../support/gateway-process.js';
import {
  askSites, EXPORTERS, NAME, startSite, stopSite, toServices, type ServiceTable, type Site, type SiteRequest,
} from '../support/gateway-site.js';

/** A table from texts: `+GET /a` is a public route, `-GET /a` a private one. */
function table(name: string, prefix: string, texts: readonly string[]): ServiceTable {
  return {
    name,
    prefix,
    routes: texts.map((text) => ({
      open: text.startsWith('+'),
      method: text.slice(1, text.indexOf(' ')),
      path: text.slice(text.indexOf(' ') + 1),
    })),
  };
}

const APART: readonly ServiceTable[] = [
  table('users', '', [
    '+GET /users',
    '+POST /users',
    '+GET /users/:id',
    '+DELETE /users/:id',
    '+GET /users/:id/keys/*rest',
    '+DELETE /tags/:tag',
    '-GET /users/me',
    '-PUT /users/:id',
    '-GET /admin',
    '-GET /users/:id/keys/secret',
  ]),
  table('billing', '', [
    '+GET /invoices/:n(\\d+)',
    '+HEAD /invoices',
    '+POST /invoices/@new',
    '+OPTIONS /bills/:x',
    '-GET /invoices',
    '-DELETE /invoices/:n(\\d+)',
    '-GET /bills/:x',
    '-OPTIONS /bills/none',
    '-GET /invoices/:n(0+)',
  ]),
  table('mail', '', [
    '+GET /mail/:box/a b',
    '+PUT /mail/:box(in|out)',
    '+GET /café/:x([a-z ]+)',
    '+PUT /tags/',
    '-PUT /mail/:box',
    '-GET /mail/in/a b',
    '-POST /mail/in',
  ]),
];
/** The same paths in each service, nested prefixes, and one service without. */
const PREFIXED: readonly ServiceTable[] = [
  table('shop', '/shop', [
    '+GET /',
    '+GET /:id',
    '+POST /',
    '+GET /v2/:x',
    '+GET /files/*rest',
    '-GET /me',
    '-GET /files/secret',
    '-PUT /:id',
  ]),
  table('shop-v2', '/shop/v2', [
    '+GET /',
    '+DELETE /:id',
    '+HEAD /only',
    '+OPTIONS /own',
    '-GET /:id',
    '-GET /files/:x',
    '-OPTIONS /other',
  ]),
  table('front', '', [
    '+GET /',
    '+GET /about',
    '+GET /pages/*rest',
    '+POST /shopping/:x',
    '-GET /shop',
    '-GET /shop/secret',
    '-GET /pages/draft',
    '-GET /:x/:y',
  ]),
];

/** Ways to write the path of a route, each as it is sent. */
const SPELLINGS: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => `${path}?q=1&x=/../admin`,
  (path) => `${path}/`,
  (path) => path.replace(/\/$/, ''),
  (path) => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  (path) => path.replace(/[a-z](?=[^a-z]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  (path) => path.toUpperCase(),
  (path) => `/${path}`,
  (path) => path.replace(/\/(?=[^/]*$)/, '//'),
  (path) => `/.${path}`,
  (path) => `/x/..${path}`,
  (path) => `/x/../..${path}`,
  (path) => path.replace(/\/(?=[^/]*$)/, '/x/../'),
  (path) => path.replace(/\/(?=[^/]*$)/, '%2F'),
  (path) => path.replace(/\/(?=[^/]*$)/, '%5c'),
  (path) => `/x/%2e%2e${path}`,
  (path) => `${path}/..`,
  (path) => `${path}/.`,
  (path) => `${path}%00`,
  (path) => `${path}%0a`,
  (path) => `${path}%2Fb`,
  (path) => `${path}%`,
  (path) => `${path};x=1`,
  (path) => `${path}#`,
  (path) => `${path}%3f`,
  (path) => `${path}%C3`,
  (path) => `${path}%C0%AF`,
  (path) => `${path}${'x'.repeat(6000)}`,
  (path) => path.replaceAll('@', '%40'),
  (path) => path.replaceAll('%C3%A9', '%c3%a9'),
  (path) => `http://t.example${path}`,
  (path) => path.replace(/^\/[^/]*/, '$&/..$&'),
  (path) => path.replace(/^\/[^/]*/, ''),
  (path) => path.replace(/^(\/[^/]*)\/[^/]*/, '$1'),
];

/** Paths that a route has, or nearly. */
function pathsOf(path: string): string[] {
  const fill = (values: readonly string[]): string => path.split('/')
    .map((segment, i) => (/^[:*]/.test(segment) ? (values[i % values.length] ?? '') : encodeURI(segment))).join('/');
  return [...new Set([fill(['7', '42']), fill(['in', 'me', 'x']), fill(['a%20b', 'J%C3%BCrgen'])])];
}

function targetsOf(tables: readonly ServiceTable[]): string[] {
  const targets = tables.flatMap(({ prefix, routes }) =>
    routes.flatMap(({ path }) =>
      pathsOf(path).flatMap((text, j) =>
        SPELLINGS.slice(0, j === 0 ? undefined : 1).map((spell) => spell(`${prefix}${text}`)),
      ),
    ),
  );
  return [...new Set(targets)];
}

const CASES = [
  { kind: 'one service', tables: [table('users', '', SAMPLE)], targets: [...EVERYDAY, ...ODD],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'QUERY', 'PURGE', 'get', 'TRACE'] },
  { kind: 'services with paths of their own', tables: APART, targets: targetsOf(APART),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'] },
  { kind: 'services with prefixes', tables: PREFIXED, targets: targetsOf(PREFIXED),
    methods: ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS'] },
];

describe.each(CASES)('$kind', ({ tables, targets, methods }) => {
  let site: Site;
  let bare: Site;
  beforeAll(async () => {
    site = await startSite(tables);
    bare = await startSite(tables.map((one) => ({ ...one, routes: one.routes.filter(({ open }) => open) })));
  });
  afterAll(() => Promise.all([stopSite(site), stopSite(bare)]));

  test.for(Object.keys(EXPORTERS) as GatewayName[])('%s takes the configuration without a complaint', (name) => {
    expect(checkGateway(name, EXPORTERS[name](toServices(site), {}))).toBe('');
  });

  // All gateways in one go: what the services answer directly is asked once.
  test(
    `${Object.keys(EXPORTERS).join(', ')} let through what is public, and nothing else`,
    { timeout: 300_000 },
    async () => {
      const requests = targets.flatMap((target) =>
        methods.map((method): SiteRequest => ({ method, target, host: NAME, fields: '' })),
      );
      const { answered, failures } = await askSites([{ site, bare, requests }]);
      expect(failures).toEqual([]);
      expect(answered).toBeGreaterThan(100);
    },
  );
});
