/** Several services in one configuration: what two of them may not claim, how prefixes part them, and what their options may be. */

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { GatewayError, toCaddy, toGatewayApi, toHAProxy, toKong, toNginx, type GatewayService, type ListenerOptions } from '../../src/gateway.js';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router } from '../../src/routing/router.js';
import { kongPasses, parseHttpRoutes, type KongFile } from '../support/gateway-model.js';

const closed = (): string => 'private';
const open = publicFacing(() => 'public');

function table(routes: readonly string[]): Router {
  const router = new Router();
  for (const text of routes) {
    const [method = '', path = ''] = text.slice(1).split(/ (.*)/);
    router.add(method, path, text.startsWith('+') ? open : closed);
  }
  return router;
}

type Exporter = (services: readonly GatewayService[], options?: ListenerOptions) => string;
const EXPORTERS: readonly { name: string; exporter: Exporter }[] = [
  { name: 'nginx', exporter: toNginx },
  { name: 'haproxy', exporter: toHAProxy },
  { name: 'caddy', exporter: toCaddy },
  { name: 'kong', exporter: toKong },
  { name: 'gateway-api', exporter: (services, options) => toGatewayApi(services, { ...options, gateway: 'public' }) },
];

function pair(a: readonly string[], b: readonly string[], prefix?: string): GatewayService[] {
  return [
    { service: 'users', upstream: 'http://users:8000', router: table(a) },
    { service: 'billing', upstream: 'http://billing:8000', router: table(b), prefix },
  ];
}

function catchError(task: () => unknown): unknown {
  try {
    return task();
  } catch (error) {
    return error;
  }
}

describe.each(EXPORTERS)('$name', ({ exporter }) => {
  test.for([
    ['the same public route', ['+GET /a'], ['+GET /a'], '/a'],
    ['a public and a private route of one path', ['+GET /a/b'], ['-GET /a/b'], '/a/b'],
    ['whatever the methods', ['+GET /a'], ['-POST /a'], '/a'],
    ['a private one inside of a public pattern', ['+GET /:x'], ['-PUT /b'], '/:x'],
    ['a public one inside of a private wildcard', ['-GET /a/*rest'], ['+GET /a/b/c'], '/a/b/c'],
    ['two parameters', ['+GET /a/:x'], ['+POST /:y/b'], '/a/:x'],
    ['constraints that share a text', ['+GET /:x([a-m]+)'], ['-GET /:y([m-z]+)'], '/:x([a-m]+)'],
    ['the monitoring endpoints', ['+GET /:x/:y/'], ['-GET /billing/health/'], '/:x/:y/'],
  ] as const)('%s clash, and both are named with their services', ([, a, b, route]) => {
    for (const services of [pair(a, b), pair(a, b).toReversed()]) {
      const error = catchError(() => exporter(services));
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({ reason: expect.stringMatching(/users.*billing|billing.*users/) });
      expect((error as GatewayError).message).toContain(route);
      for (const text of [a[0], b[0]]) expect((error as GatewayError).message).toContain(text?.slice(1));
    }
  });

  test.for([
    ['two private routes', ['-GET /a', '+GET /u'], ['-GET /a', '+GET /b']],
    ['paths apart', ['+GET /a/b'], ['+GET /a/c', '-GET /a']],
    ['constraints that share no text', ['+GET /:x([a-m]+)'], ['+GET /:y([n-z]+)', '-PUT /:n(\\d+)']],
    ['a slash behind', ['+GET /a'], ['+GET /a/']],
  ] as const)('%s do not clash', ([, a, b]) => {
    expect(exporter(pair(a, b))).toContain('billing');
  });

  test.for([['/billing'], ['/billing/x'], ['/:x/y'], ['/:x'], ['/*rest']] as const)('a public %s of a service without a prefix is not for the space of one', ([path]) => {
    const error = catchError(() => exporter(pair([`+GET ${path}`], ['+GET /invoices'], '/billing')));
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({ route: path, reason: expect.stringMatching(/users.*\/billing.*billing.*GET \/invoices/) });
  });

  test('outside of that space, and for private routes, everything is as before', () => {
    expect(exporter(pair(['+GET /billing-old/x', '+GET /bill', '-GET /billing/x', '+GET /x/billing'], ['+GET /bill', '+GET /x'], '/billing'))).toContain('billing');
  });

  test.for([
    ['no services', [], /empty/],
    ['one name twice', pair(['+GET /a'], ['+GET /b']).map((service) => ({ ...service, service: 'x' })), /"x" twice/],
    ['one prefix twice', pair(['+GET /a'], ['+GET /b']).map((service) => ({ ...service, prefix: '/x' })), /"\/x" twice/],
    ['one address twice', pair(['+GET /a'], ['+GET /b']).map((service) => ({ ...service, upstream: ['http://a:1', 'http://a:1'] })), /"a:1" twice/],
    ['no address', [{ ...pair([], [])[0], upstream: [] }], /upstream/],
    ['http and https at once', [{ ...pair([], [])[0], upstream: ['http://a', 'https://b'] }], /all http or all https/],
    ['an option that does not exist', [{ ...pair([], [])[0], prefixes: '/x' }], /did you mean "prefix"/],
    ['no router', [{ service: 'a', upstream: 'http://a' }], /router/],
    ...['', '/', 'x', '/x/', '//x', '/x//y', '/.', '/x/..', '/a b', '/%41', '/:x', '/x*', '/é', '/~x'].map((prefix) => [`the prefix ${JSON.stringify(prefix)}`, [{ ...pair([], [])[0], prefix }], /"prefix"/] as const),
  ] as const)('%s is a TypeError', ([, services, message]) => {
    const error = catchError(() => exporter(services as GatewayService[]));
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toMatch(message);
  });

  test.for([
    [{ tls: { certificate: 'a.pem' } }, /tls|key/],
    [{ tls: { certificate: 'a.pem', key: 'a"; evil' } }, /tls/],
    [{ include: '' }, /include/],
    [{ include: 'a\nb' }, /include/],
    [{ includes: 'x' }, /did you mean "include"/],
    [{ service: 'x' }, /unknown option "service"/],
  ] as const)('%o is a TypeError', ([options, message]) => {
    const error = catchError(() => exporter(pair(['+GET /a'], ['+GET /b']), options as ListenerOptions));
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toMatch(message);
  });
});

test('a key that HAProxy would not find is a TypeError', () => {
  const services = pair(['+GET /a'], ['+GET /b']);
  expect(() => toHAProxy(services, { tls: { certificate: '/a.pem', key: '/b.pem' } })).toThrow(/\/a\.pem\.key/);
  for (const key of ['/a.pem', '/a.pem.key']) expect(toHAProxy(services, { tls: { certificate: '/a.pem', key } })).toContain("ssl crt '/a.pem' alpn h2,http/1.1");
});

test('HAProxy gets the text that an included file has, and one that is missing is a TypeError', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'postern-include-')), 'site.cfg');
  writeFileSync(file, 'option httplog\n\nlog stdout format raw daemon # "quoted"\n');
  expect(toHAProxy(pair(['+GET /a'], ['+GET /b']), { include: file })).toMatch(/\n {2}option httplog\n\n {2}log stdout format raw daemon # "quoted"\n/);
  expect(() => toHAProxy(pair(['+GET /a'], ['+GET /b']), { include: `${file}.none` })).toThrow(TypeError);
});

test.for([{ tls: { certificate: 'a', key: 'a' } }, { include: 'a' }])('Kong and the Gateway API have no use for %o, and say so', (options) => {
  for (const { exporter } of EXPORTERS.slice(3)) expect(() => exporter(pair(['+GET /a'], ['+GET /b']), options)).toThrow(/is not for/);
});

test('an https upstream is verified, or its configuration says that it is not', () => {
  const services = [{ service: 'users', upstream: ['https://a.internal', 'https://b.internal'], router: table(['+GET /a']) }];
  expect(toHAProxy(services)).toMatch(/server users-2 b\.internal:443 ssl verify required ca-file @system-ca sni str\(b\.internal\) verifyhost b\.internal/);
  expect(toCaddy(services)).not.toContain('insecure');
  expect(() => toNginx(services)).toThrow(/2 names over https/);
  expect(toNginx([{ ...services[0], upstream: ['https://a.internal:1', 'https://a.internal:2'] } as GatewayService])).toMatch(/NOT verified[^]*proxy_ssl_name \$postern_tls_name;/);
});

describe('Kong', () => {
  const tables = {
    users: table(['+GET /users/:id', '-GET /users/me', '+POST /users']),
    shop: table(['+GET /', '+GET /:id', '+GET /v2/:x', '+GET /files/*rest']),
    shop2: table(['+GET /', '+DELETE /:id']),
  };
  const file = JSON.parse(
    toKong([
      { service: 'users', upstream: ['http://10.0.0.7:8000', 'http://10.0.0.8:8000'], router: tables.users },
      { service: 'shop', upstream: 'http://10.0.1.1:8000', router: tables.shop, prefix: '/shop' },
      { service: 'shop-v2', upstream: 'http://10.0.1.2:8000', router: tables.shop2, prefix: '/shop/v2' },
    ]),
  ) as KongFile & { upstreams: object[] };

  test('has an upstream with targets for several addresses, and none for one', () => {
    expect(file._format_version).toBe('3.0');
    expect(file.upstreams).toEqual([{ name: 'users', targets: [{ target: '10.0.0.7:8000', weight: 100 }, { target: '10.0.0.8:8000', weight: 100 }], tags: ['postern'] }]);
    expect(file.services.map(({ name, host }) => [name, host])).toEqual([['users', 'users'], ['shop', '10.0.1.1'], ['shop-v2', '10.0.1.2']]);
  });

  test('gives each path to one service, the one with the longest prefix, and takes the prefix off', () => {
    const reached = (method: string, path: string): string | null => {
      for (const engine of ['pcre', 'rust'] as const) {
        const routes = file.services.flatMap(({ name, routes: own }) => own.map((route) => ({ ...route, service: name })));
        const passing = kongPasses(routes, method, path, engine);
        const best = routes
          .filter((route) => route.methods.includes(method) && route.paths.some((pattern) => new RegExp(`^${pattern.slice(1)}`).test(path)))
          .sort((a, b) => b.regex_priority - a.regex_priority)[0];
        const rewrite = best?.plugins?.find(({ name }) => name === 'request-transformer') !== undefined;
        const inner = rewrite ? new RegExp(`^${best?.paths[0]?.slice(1) ?? ''}`).exec(path)?.[1] : path;
        if (engine === 'rust') return passing ? `${best?.service ?? ''} ${inner ?? ''}` : null;
      }
      return null;
    };
    expect(reached('GET', '/users/7')).toBe('users /users/7');
    expect(reached('GET', '/users/me')).toBe(null);
    expect(reached('GET', '/shop/')).toBe('shop /');
    expect(reached('GET', '/shop/7')).toBe('shop /7');
    expect(reached('GET', '/shop/files/a/b')).toBe('shop /files/a/b');
    expect(reached('GET', '/shop')).toBe(null);
    expect(reached('GET', '/shop/v2')).toBe(null);
    expect(reached('GET', '/shop/v2/')).toBe('shop-v2 /');
    expect(reached('GET', '/shop/v2/7')).toBe(null);
    expect(reached('DELETE', '/shop/v2/7')).toBe('shop-v2 /7');
    expect(reached('OPTIONS', '/shop/v2/7')).toBe('shop-v2 /7');
    expect(reached('GET', '/shop/v2x')).toBe('shop /v2x');
  });
});

describe('the Gateway API', () => {
  test('has one HTTPRoute for each service, and rewrites static paths below a prefix', () => {
    const text = toGatewayApi(
      [
        { service: 'users', upstream: ['http://users:8000', 'http://users-b:8000'], router: table(['+GET /users/:id']) },
        { service: 'billing', upstream: 'http://billing.prod:80', router: table(['+GET /', '+GET /invoices', '+POST /a b', '+GET /v2/x']), prefix: '/billing' },
        { service: 'billing2', upstream: 'http://billing2', router: table(['+GET /y']), prefix: '/billing/v2' },
      ],
      { gateway: 'public' },
    );
    const manifests = text.split(/^---$/m);
    expect(manifests.map((manifest) => /name: (\S+)/.exec(manifest)?.[1])).toEqual(['users', 'billing', 'billing2']);
    expect(manifests[0]).toMatch(/- name: users\n +port: 8000\n +- name: users-b\n +port: 8000/);
    expect(parseHttpRoutes(text).map((rules) => rules.map((matches) => matches[0]?.value))).toEqual([['^/users/[^/]+$'], ['/billing/', '/billing/invoices', '/billing/a%20b'], ['/billing/v2/y']]);
    expect([...text.matchAll(/type: ReplaceFullPath\n +replaceFullPath: (.*)/g)].map(([, path]) => path)).toEqual(['/', '/invoices', "'/a%20b'", '/y']);
  });

  test('cannot take a prefix off a path with a parameter', () => {
    const error = catchError(() => toGatewayApi([{ service: 'a', upstream: 'http://a', router: table(['+GET /x/:id']), prefix: '/p' }], { gateway: 'g' }));
    expect(error).toMatchObject({ name: 'GatewayError', route: '/x/:id', reason: expect.stringContaining('/p') });
  });
});
