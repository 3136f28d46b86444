/**
 * The decK file of `toKong`: its fields as Kong's schema has them, and what Kong makes of a request by it.
 *
 * @module-tag package
 */

import { describe, expect, test } from 'vitest';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router } from '../../src/routing/router.js';
import { GatewayError, toKong } from '../../src/gateway.js';
import { askKong, ENGINES, normalizeForKong, type KongFile } from '../support/gateway-model.js';
import { createRouter, createSampleRouter, EVERYDAY } from '../support/gateway-sample.js';
import { expectedRoute } from '../support/gateway-upstream.js';

const OPTIONS = { service: 'users', upstream: 'http://10.0.0.7:8000' };

function parse(text: string): KongFile {
  return JSON.parse(text) as KongFile;
}

const several = parse(
  toKong(
    [
      { service: 'users', upstream: ['http://10.0.0.7:8000', 'http://10.0.0.8:8000'],
        router: createRouter(['+GET /users/:id', '-GET /users/me', '+POST /users']) },
      { service: 'shop', upstream: 'http://10.0.1.1:8000',
        router: createRouter(['+GET /', '+GET /:id', '+GET /v2/:x', '+GET /files/*rest']), prefix: '/shop' },
      { service: 'shop-v2', upstream: 'http://10.0.1.2:8000', router: createRouter(['+GET /', '+DELETE /:id']),
        prefix: '/shop/v2' },
    ],
    { hosts: ['Users.example.com'] },
  ),
);

test.for([
  ['one service', parse(toKong(createSampleRouter(), { ...OPTIONS, hosts: ['Users.example.com'] }))],
  ['several services', several],
] as const)(
  '%s: every route sets the scope, removes what a client may not set, and keeps path and host',
  ([, file]) => {
    expect(file._format_version).toBe('3.0');
    const routes = file.services.flatMap((service) => service.routes);
    expect(new Set(routes.map(({ name }) => name)).size).toBe(routes.length);
    for (const route of routes) {
      expect(route.name).toMatch(/^[A-Za-z0-9._~-]+$/);
      expect(route).toMatchObject({ strip_path: false, preserve_host: true, hosts: ['users.example.com'] });
      for (const method of route.methods) expect(method).toMatch(/^[A-Z]+$/);
      for (const path of route.paths) expect(path).toMatch(/^~\/.*\$$/);
      for (const tag of route.tags) expect(tag).toMatch(/^[^,/]+$/);
      if (route.tags.includes('rest'))
        expect(route.plugins).toMatchObject([{ name: 'request-termination', config: { status_code: 404 } }]);
      else {
        expect(route.plugins.map(({ name }) => name)).toEqual(['request-transformer']);
        const [{ config } = { config: {} }] = route.plugins;
        for (const way of ['add', 'replace'])
          expect(config, `${way} of ${route.name}`).toMatchObject({ [way]: { headers: ['X-Postern-Scope:public'] } });
        expect(config).toMatchObject({
          remove: { headers: ['Forwarded', 'X-Envoy-Expected-Rq-Timeout-Ms', 'X-Envoy-Overloaded', 'Baggage'] },
        });
      }
    }
  },
);

test('no two routes of Kong have one name, even if the name of a service ends in a number', () => {
  const services = [
    { ...OPTIONS, router: createRouter(['+GET /a', '+GET /1/items']) },
    { ...OPTIONS, service: 'users-2', router: createRouter(['+GET /items']) },
  ];
  const routes = parse(toKong(services, {})).services.flatMap((service) => service.routes);
  expect(routes.map(({ name }) => name)).toEqual(['users-1-a', 'users-2-1-items', 'users-2.1-items']);
});

test('the refusal below an inner prefix has a name that no route of another service has', () => {
  const services = [
    { ...OPTIONS, router: createRouter(['+GET /rest']), prefix: '/shop' },
    { ...OPTIONS, service: 'users-1', router: createRouter(['+GET /']), prefix: '/shop/v2' },
  ];
  const routes = parse(toKong(services, {})).services.flatMap((service) => service.routes);
  expect(routes.map(({ name }) => name)).toEqual(['users-1-rest', 'users-1-1', 'users-1.rest']);
});

test('a route has the query parameters that it allows as tags', () => {
  const router = new Router();
  router.add('GET', '/q', publicFacing(() => 1, { params: ['q', 'a,b/c'] }));
  router.add('GET', '/none', publicFacing(() => 1, { params: [] }));
  router.add('GET', '/any', publicFacing(() => 1));
  const routes = parse(toKong(router, OPTIONS)).services[0]?.routes ?? [];
  expect(routes.map(({ tags }) => tags))
    .toEqual([['public', 'query:q', 'query:a%2Cb%2Fc'], ['public', 'query-none'], ['public', 'query-any']]);
});

test('several addresses are an upstream with targets, one is the host of its service', () => {
  expect(several.upstreams).toEqual([
    {
      name: 'users',
      targets: [
        { target: '10.0.0.7:8000', weight: 100 },
        { target: '10.0.0.8:8000', weight: 100 },
      ],
      tags: ['postern'],
    },
  ]);
  expect(several.services.map(({ name, host }) => [name, host]))
    .toEqual([['users', 'users'], ['shop', '10.0.1.1'], ['shop-v2', '10.0.1.2']]);
});

describe.each(ENGINES)('Kong with %s', (engine) => {
  test('forwards every request that a public handler answers', () => {
    const router = createSampleRouter();
    const file = parse(toKong(router, OPTIONS));
    const refused: string[] = [];
    let asked = 0;
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'QUERY']) {
      for (const path of EVERYDAY) {
        if (expectedRoute(router, method, path) === null) continue;
        asked += 1;
        if (askKong(file, method, normalizeForKong(path), engine) === null) refused.push(`${method} ${path}`);
      }
    }
    expect(refused).toEqual([]);
    expect(asked).toBeGreaterThan(80);
  });

  test('forwards nothing else than paths of public routes', () => {
    const file = parse(toKong(createSampleRouter(), OPTIONS));
    for (const path of ['/admin', '/admin/', '/users', '/users/', '/FAST', '/files/', '/x/y'])
      expect(askKong(file, 'GET', path, engine), path).toBe(null);
    for (const method of ['PUT', 'PATCH', 'DELETE']) expect(askKong(file, method, '/fast', engine), method).toBe(null);
  });

  test.for([
    ['GET', '/users/7', 'users /users/7'],
    ['GET', '/shop/', 'shop /'],
    ['GET', '/shop/7', 'shop /7'],
    ['GET', '/shop/files/a/b', 'shop /files/a/b'],
    ['GET', '/shop', null],
    ['GET', '/shop/v2', null],
    ['GET', '/shop/v2/', 'shop-v2 /'],
    ['GET', '/shop/v2/7', null],
    ['DELETE', '/shop/v2/7', 'shop-v2 /7'],
    ['OPTIONS', '/shop/v2/7', 'shop-v2 /7'],
    ['GET', '/shop/v2x', 'shop /v2x'],
  ] as const)('%s %s: the longest prefix is removed, and %s is reached', ([method, path, reached]) => {
    expect(askKong(several, method, path, engine)).toBe(reached);
  });
});

test.for([
  ['a method with a hyphen', '+M-SEARCH /x', /M-SEARCH/],
  ['TRACE', '+TRACE /x', /TRACE/],
  ['CONNECT', '+CONNECT /x', /CONNECT/],
] as const)('%s is a GatewayError', ([, route, reason]) => {
  expect(() => toKong(createRouter([route]), OPTIONS)).toThrow(GatewayError);
  expect(() => toKong(createRouter([route]), OPTIONS)).toThrow(reason);
});
