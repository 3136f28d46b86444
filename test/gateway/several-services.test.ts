/** Real gateways in front of three services in three processes: each request reaches the handler that its service's router has for it, or none. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toCaddy, toHAProxy, toNginx } from '../../src/gateway.js';
import type { Router } from '../../src/routing/router.js';
import { checkGateway, freePorts, startGateway, type GatewayName, type RunningGateway } from '../support/gateway-process.js';
import { exchange, routerOf, startService, type RunningService, type ServiceTable } from '../support/gateway-services.js';
import { expectedRoute, inParallel } from '../support/gateway-upstream.js';

const EXPORTERS = { nginx: toNginx, haproxy: toHAProxy, caddy: toCaddy } as const;
const GATEWAYS: readonly GatewayName[] = ['nginx', 'haproxy', 'caddy'];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];

const PLAIN: readonly ServiceTable[] = [
  { name: 'users', open: ['GET /users', 'POST /users', 'GET /users/:id', 'DELETE /users/:id', 'GET /users/:id/keys/*rest'], closed: ['GET /users/me', 'PUT /users/:id', 'GET /admin', 'GET /users/:id/keys/secret'] },
  { name: 'billing', open: ['GET /invoices/:n(\\d+)', 'HEAD /invoices', 'POST /invoices/@new', 'OPTIONS /bills/:x'], closed: ['GET /invoices', 'DELETE /invoices/:n(\\d+)', 'GET /bills/:x', 'OPTIONS /bills/none', 'GET /invoices/:n(0+)'] },
  { name: 'mail', open: ['GET /mail/:box/a b', 'PUT /mail/:box(in|out)', 'GET /café/:x([a-z ]+)'], closed: ['PUT /mail/:box', 'GET /mail/in/a b', 'POST /mail/in'] },
];

/** The same paths in each service, nested prefixes, and one service without. */
const PREFIXED: readonly ServiceTable[] = [
  { name: 'shop', prefix: '/shop', open: ['GET /', 'GET /:id', 'POST /', 'GET /v2/:x', 'GET /files/*rest'], closed: ['GET /me', 'GET /files/secret', 'PUT /:id'] },
  { name: 'shop-v2', prefix: '/shop/v2', open: ['GET /', 'DELETE /:id', 'HEAD /only', 'OPTIONS /own'], closed: ['GET /:id', 'GET /files/:x', 'OPTIONS /other'] },
  { name: 'front', open: ['GET /', 'GET /about', 'GET /pages/*rest', 'POST /shopping/:x'], closed: ['GET /shop', 'GET /shop/secret', 'GET /pages/draft', 'GET /:x/:y'] },
];

/** Ways to write the path of a route, each as sent. */
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
  (path) => path.replace(/\/(?=[^/]*$)/, '/./'),
  (path) => path.replace(/\/(?=[^/]*$)/, '/x/../'),
  (path) => path.replace(/\/(?=[^/]*$)/, '%2F'),
  (path) => path.replace(/\/(?=[^/]*$)/, '%2f'),
  (path) => path.replace(/\/(?=[^/]*$)/, '\\'),
  (path) => path.replace(/\/(?=[^/]*$)/, '%5c'),
  (path) => `/%2e${path}`,
  (path) => `/%2e%2e${path}`,
  (path) => `/x/%2e%2e${path}`,
  (path) => `${path}/..`,
  (path) => `${path}/.`,
  (path) => `${path}/../me`,
  (path) => `${path}%00`,
  (path) => `${path}%0a`,
  (path) => `${path}%20`,
  (path) => `${path}%`,
  (path) => `${path}%2`,
  (path) => `${path};x=1`,
  (path) => `${path}.`,
  (path) => `${path}#`,
  (path) => `${path}?`,
  (path) => `${path}%3f`,
  (path) => `${path}%C3`,
  (path) => `${path}%C0%AF`,
  (path) => path.replaceAll('@', '%40'),
  (path) => path.replaceAll('%C3%A9', '%c3%a9'),
  (path) => path.replaceAll('%20', '+'),
  (path) => `http://t.example${path}`,
  (path) => `http://t.example/${path}`,
  (path) => `http://other.example${path}`,
  (path) => path.replace(/^\/[^/]*/, '$&/..$&'),
  (path) => path.replace(/^\/[^/]*/, ''),
  (path) => path.replace(/^\/[^/]*/, '$&$&'),
  (path) => path.replace(/^(\/[^/]*)\/[^/]*/, '$1'),
];

/** A path that a route has, or nearly. */
function pathsOf(route: string): string[] {
  const path = route.replace(/^\S+ /, '');
  const fill = (values: readonly string[]): string =>
    path.split('/').map((segment, i) => (/^[:*]/.test(segment) ? (values[i % values.length] ?? '') : encodeURI(segment))).join('/');
  return [...new Set([fill(['7', '42']), fill(['in', 'me', 'x']), fill(['a%20b', 'J%C3%BCrgen'])])];
}

/** The path that a service reads off a target. */
function pathOf(target: string): string {
  const path = target.replace(/^http:\/\/[^/?#]*/, '').replace(/\?.*$/s, '');
  return path === '' ? '/' : path;
}

/** The service that a path is for and the route of it that may be reached; null where it has to be refused. */
function expected(tables: readonly ServiceTable[], routers: readonly Router[], method: string, path: string): string | null {
  const prefixes = tables.map(({ prefix = '' }, i) => ({ prefix, i })).filter(({ prefix }) => prefix !== '' && (path === prefix || path.startsWith(`${prefix}/`)));
  const [longest] = prefixes.sort((a, b) => b.prefix.length - a.prefix.length);
  if (longest !== undefined) {
    const route = expectedRoute(routers[longest.i] as Router, method, path.slice(longest.prefix.length));
    return route === null ? null : `${tables[longest.i]?.name ?? ''} ${route}`;
  }
  for (const [i, { name, prefix }] of tables.entries()) {
    const route = prefix === undefined ? expectedRoute(routers[i] as Router, method, path) : null;
    if (route !== null) return `${name} ${route}`;
  }
  return null;
}

describe.each([
  { kind: 'paths of their own', tables: PLAIN },
  { kind: 'prefixes', tables: PREFIXED },
])('three services with $kind', ({ tables }) => {
  let services: RunningService[] = [];
  let routers: Router[] = [];

  beforeAll(async () => {
    services = await Promise.all(tables.map((table) => startService(table)));
    routers = services.map(({ routes }) => routerOf(routes));
  });
  afterAll(() => Promise.all(services.map((service) => service.stop())));

  describe.each(GATEWAYS)('behind %s', (name) => {
    let gateway: RunningGateway;
    let port = 0;
    let text = '';

    beforeAll(async () => {
      [port = 0] = await freePorts(1);
      const list = tables.map((table, i) => ({ router: routers[i] as Router, service: table.name, upstream: services[i]?.url ?? '', ...(table.prefix === undefined ? {} : { prefix: table.prefix }) }));
      text = EXPORTERS[name](list, { listen: `127.0.0.1:${port}` });
      gateway = await startGateway(name, text, [port]);
    });
    afterAll(() => gateway?.stop());

    test('the configuration is taken without a complaint', () => {
      expect(checkGateway(name, text)).toBe('');
    });

    test('every method of every route in every spelling reaches what the router of its service has for it, if that is public', { timeout: 60_000 }, async () => {
      const wrong: string[] = [];
      const reached = new Set<string>();
      const targets = new Set<string>();
      for (const [i, { prefix = '' }] of tables.entries())
        for (const route of services[i]?.routes ?? [])
          for (const [j, path] of pathsOf(`${route.method} ${route.path}`).entries())
            for (const spell of j === 0 ? SPELLINGS : SPELLINGS.slice(0, 1)) targets.add(spell(`${prefix}${path}`));
      const everyday = new Set(tables.flatMap(({ prefix = '' }, i) => (services[i]?.routes ?? []).flatMap((route) => pathsOf(`${route.method} ${route.path}`).map((path) => `${prefix}${path}`))));
      await inParallel([...targets].flatMap((target) => METHODS.map((method) => ({ method, target }))), async ({ method, target }) => {
        const { status, headers } = await exchange(port, `${method} ${target} HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
        const route = expected(tables, routers, method, pathOf(target));
        const found = headers['x-reached'] === undefined ? null : `${headers['x-service'] ?? ''} ${decodeURIComponent(headers['x-reached'])}`.replace(/ none$/, method === 'OPTIONS' ? ' OPTIONS' : ' none');
        if (found !== null) reached.add(found);
        if (found === route) return;
        if (found !== null) wrong.push(`${method} ${target}: ${found}, not ${String(route)}`);
        else if (everyday.has(target)) wrong.push(`${method} ${target}: refused with ${status}, not ${String(route)}`);
      }, 32);
      expect(wrong).toEqual([]);
      const open = tables.flatMap((table) => table.open.map((route) => `${table.name} ${route}`)).filter((route) => !route.endsWith('/v2/:x'));
      expect(open.filter((route) => !reached.has(route))).toEqual([]);
    });
  });
});
