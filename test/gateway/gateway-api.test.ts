/**
 * The manifests of `toGatewayApi`: valid for the resource's schema, and what an implementation makes of a request by
 * them.
 *
 * @module-tag package
 */

import { describe, expect, test } from 'vitest';
import { Router } from '../../src/routing/router.js';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { GatewayError, toGatewayApi } from '../../src/gateway.js';
import { askHttpRoutes, parseHttpRoutes } from '../support/gateway-model.js';
import { createRouter, createSampleRouter, EVERYDAY } from '../support/gateway-sample.js';
import { expectedRoute } from '../support/gateway-upstream.js';

const OPTIONS = { service: 'users', upstream: 'http://users.prod:8000', gateway: 'public' };
const UNSAID = ['QUERY /fast', 'PURGE /fast'];

/** `/%7Etilde` is escaped without need, and letters are compared as they are sent. */
function isEscapedWithoutNeed(path: string): boolean {
  return /%(?:4[1-9A-F]|[5-7]\d|5A|6[1-9A-F]|7A|2D|2E|5F)/i.test(path);
}

describe('HTTPRoute manifests', () => {
  const router = createSampleRouter(UNSAID);
  const yaml = toGatewayApi(router, { ...OPTIONS, namespace: 'edge', hosts: ['users.example.com'] });
  const manifests = parseHttpRoutes(yaml);

  test('name the gateway, the hosts, the namespace and the Service', () => {
    for (const { metadata, spec } of manifests) {
      expect(metadata).toMatchObject({ namespace: 'edge' });
      expect(spec).toMatchObject({ parentRefs: [{ name: 'public' }], hostnames: ['users.example.com'] });
      for (const { backendRefs } of spec?.rules ?? [])
        expect(backendRefs).toEqual([{ name: 'users', namespace: 'prod', port: 8000 }]);
    }
    expect(yaml).toContain('namespace: prod # needs a ReferenceGrant there, if it is another\n');
  });

  test('set the scope in every rule, and remove what a client may not set', () => {
    const rules = manifests.flatMap(({ spec }) => spec?.rules ?? []);
    expect(rules).toHaveLength(router.routes.filter((route) => route.public).length);
    for (const { filters } of rules) {
      expect(filters?.[0]).toEqual({
        type: 'RequestHeaderModifier',
        requestHeaderModifier: {
          set: [{ name: 'X-Postern-Scope', value: 'public' }],
          remove: ['Forwarded', 'X-Envoy-Expected-Rq-Timeout-Ms', 'X-Envoy-Overloaded', 'Baggage'],
        },
      });
    }
  });

  test('have a rule for each route in the order of the table, exact where the path is plain text', () => {
    const texts = [
      '    # GET /fast (query: any)\n    - matches:\n        - method: GET\n          path:\n            type: Exact\n            value: /fast\n',
      "            type: RegularExpression\n            value: '^/users/[^/]+$'\n",
      "            value: '^/n/[^/]+$'\n",
      "            value: '^/files/.+$'\n",
      "            value: '^/caf(?:é|%[Cc]3%[Aa]9)/(?:@|%40)me/a(?:\\x20|%20)b$'\n",
    ];
    for (const text of texts) expect(yaml).toContain(text);
    const titles = [...yaml.matchAll(/^ {4}# (\S+ .*) \(query: any\)$/gm)].map(([, title]) => title);
    expect(titles).toEqual(
      router.routes.filter((route) => route.public).map(({ method, path }) => `${method} ${path}`),
    );
  });

  test('forward every request that a public handler answers', () => {
    const refused: string[] = [];
    let asked = 0;
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      for (const path of EVERYDAY.filter((text) => !isEscapedWithoutNeed(text) || text.includes('%7E'))) {
        if (expectedRoute(router, method, path) === null) continue;
        asked += 1;
        if (askHttpRoutes(manifests, method, path) === null) refused.push(`${method} ${path}`);
      }
    }
    expect(refused).toEqual([]);
    expect(asked).toBeGreaterThan(80);
  });

  test('forward nothing else than paths of public routes', () => {
    for (const path of ['/admin', '/users', '/users/', '/FAST', '/files/', '/x/y', '/fast/'])
      expect(askHttpRoutes(manifests, 'GET', path), path).toBe(null);
    for (const method of ['PUT', 'PATCH', 'DELETE'])
      expect(askHttpRoutes(manifests, method, '/fast'), method).toBe(null);
  });

  test('are as many as their names need', () => {
    const hosts = Array.from({ length: 33 }, (_, i) => `h${i}.example`);
    const named = parseHttpRoutes(toGatewayApi(createRouter(['+GET /a']), { ...OPTIONS, hosts }));
    expect(named.map(({ spec }) => spec?.hostnames?.length)).toEqual([16, 16, 1]);
    expect(new Set(named.flatMap(({ spec }) => spec?.hostnames)).size).toBe(33);
    expect(new Set(named.map(({ metadata }) => metadata?.name)).size).toBe(3);
  });

  test('keep within the limits of the resource', () => {
    const table = new Router();
    for (let i = 0; i < 70; i += 1)
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE'])
        table.add(
          method,
          `/r${i}/:id`,
          publicFacing(() => 1),
        );
    const split = parseHttpRoutes(toGatewayApi(table, OPTIONS));
    for (const { spec } of split) {
      expect(spec?.rules?.length).toBeLessThanOrEqual(16);
      expect(spec?.rules?.flatMap(({ matches }) => matches).length).toBeLessThan(128);
    }
    expect(split.flatMap(({ spec }) => spec?.rules ?? [])).toHaveLength(70 * 6);
    expect(new Set(split.map(({ metadata }) => metadata?.name)).size).toBe(split.length);
  });

  test('are none if nothing is public, since a route without rules matches everything', () => {
    expect(toGatewayApi(createRouter(['-GET /x']), OPTIONS)).not.toContain('HTTPRoute');
  });
});

test('each service has HTTPRoutes of its own, and prefixes are removed from static paths', () => {
  const yaml = toGatewayApi(
    [
      { service: 'users', upstream: ['http://users:8000', 'http://users-b:8000'],
        router: createRouter(['+GET /users/:id', '-GET /users/me']) },
      { service: 'billing', upstream: 'http://billing.prod:80',
        router: createRouter(['+GET /', '+GET /invoices', '+POST /a b', '+GET /v2/x']), prefix: '/billing' },
      { service: 'billing2', upstream: 'http://billing2', router: createRouter(['+GET /y']), prefix: '/billing/v2' },
    ],
    { gateway: 'public' },
  );
  const manifests = parseHttpRoutes(yaml);
  expect(manifests.map(({ metadata }) => metadata?.name)).toEqual(['users', 'billing', 'billing2']);
  expect(manifests[0]?.spec?.rules?.[0]?.backendRefs)
    .toEqual([{ name: 'users', port: 8000 }, { name: 'users-b', port: 8000 }]);
  const asked = [
    ['GET', '/users/me'], ['GET', '/billing/'], ['GET', '/billing'], ['HEAD', '/billing/invoices'],
    ['POST', '/billing/a%20b'], ['GET', '/billing/v2/x'], ['GET', '/billing/v2/y'],
  ] as const;
  expect(asked.map(([method, path]) => askHttpRoutes(manifests, method, path))).toEqual([
    'users /users/me', 'billing /', null, 'billing /invoices', 'billing /a%20b', null, 'billing2 /y',
  ]);
});

test('no two HTTPRoutes have one name, even if a service is called as the second one of another service would be', () => {
  const many = Array.from({ length: 40 }, (_, i) => `+GET /many/${i}`);
  const services = [
    { service: 'users', upstream: 'http://users', router: createRouter(many) },
    { service: 'users-2', upstream: 'http://users-2', router: createRouter(['+GET /two']) },
  ];
  const manifests = parseHttpRoutes(toGatewayApi(services, { gateway: 'public' }));
  expect(manifests.map(({ metadata }) => metadata?.name)).toEqual(['users', 'users.2', 'users-3', 'users-2']);
});

test.for([
  ['QUERY', '+QUERY /search', /QUERY/],
  ['CONNECT', '+CONNECT /x', /CONNECT/],
  ['a path beyond 1024 characters', `+GET /${'x'.repeat(1024)}`, /1024/],
] as const)('%s is a GatewayError', ([, route, reason]) => {
  expect(() => toGatewayApi(createRouter([route]), OPTIONS)).toThrow(GatewayError);
  expect(() => toGatewayApi(createRouter([route]), OPTIONS)).toThrow(reason);
});

test('a prefix in front of a parameter is a GatewayError', () => {
  const services = [{ service: 'a', upstream: 'http://a', router: createRouter(['+GET /x/:id']), prefix: '/p' }];
  expect(() => toGatewayApi(services, { gateway: 'g' })).toThrow(GatewayError);
  expect(() => toGatewayApi(services, { gateway: 'g' })).toThrow(/^\/x\/:id: .*\/p/);
});

test.for([
  [{ gateway: undefined }, /gateway/],
  [{ upstream: 'http://10.0.0.7:8000' }, /Service/],
  [{ upstream: 'http://[::1]:8000' }, /Service/],
  [{ upstream: 'http://users.example.com.org:8000' }, /Service/],
  [{ hosts: ['10.0.0.1'] }, /names/],
  [{ hosts: ['my_app.example'] }, /names/],
  [{ hosts: ['a-.example'] }, /names/],
  [{ namespace: 'A_b' }, /namespace/],
] as const)('%o is a TypeError', ([wrong, message]) => {
  const options = { ...OPTIONS, ...wrong } as typeof OPTIONS;
  expect(() => toGatewayApi(createRouter(['+GET /a']), options)).toThrow(TypeError);
  expect(() => toGatewayApi(createRouter(['+GET /a']), options)).toThrow(message);
});
