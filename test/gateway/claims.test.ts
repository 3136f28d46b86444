/**
 * Several services in one configuration: what two of them may not claim, how prefixes part them, and what their options
 * may be.
 */

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  GatewayError, toCaddy, toGatewayApi, toHAProxy, toKong, toNginx, type GatewayService, type ListenerOptions,
} from '../../src/gateway.js';
import { createRouter } from '../support/gateway-sample.js';

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
    { service: 'users', upstream: 'http://users:8000', router: createRouter(a) },
    { service: 'billing', upstream: 'http://billing:8000', router: createRouter(b), prefix },
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
    ['the same route', ['+GET /a'], ['+GET /a'], '/a'],
    ['the same path with another method', ['+GET /a'], ['+POST /a'], '/a'],
    ['a path inside of a pattern', ['+GET /:x'], ['-GET /b', '+PUT /b'], '/:x'],
    ['a path inside of a wildcard', ['+GET /a/*rest'], ['+GET /a/b/c'], '/a/b/c'],
    ['two parameters', ['+GET /a/:x'], ['+POST /:y/b'], '/a/:x'],
    ['constraints, which a gateway does not read', ['+GET /:x([a-m]+)'], ['+GET /:y([n-z]+)'], '/:x([a-m]+)'],
  ] as const)('%s: two public routes clash, and both are named with their services', ([, a, b, route]) => {
    for (const services of [pair(a, b), pair(a, b).toReversed()]) {
      const error = catchError(() => exporter(services));
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({ reason: expect.stringMatching(/users.*billing|billing.*users/) });
      expect((error as GatewayError).message).toContain(route);
      for (const text of [a[0], b.at(-1)]) expect((error as GatewayError).message).toContain(text?.slice(1));
    }
  });

  test.for([
    ['private routes', ['-GET /a', '+GET /u'], ['-GET /a', '+GET /b']],
    ['a public and a private route of one path', ['+GET /a/b', '+GET /c/:x'],
      ['-GET /a/b', '-GET /c/*rest', '+GET /b']],
    ['the monitoring endpoints', ['+GET /:x/:y/'], ['-GET /billing/health/', '+GET /b']],
    ['paths apart', ['+GET /a/b'], ['+GET /a/c', '-GET /a']],
    ['a slash at the end', ['+GET /a'], ['+GET /a/']],
    ['a wildcard and the slash in front of it', ['+GET /a/*rest'], ['+GET /a/']],
  ] as const)('%s do not clash', ([, a, b]) => {
    expect(exporter(pair(a, b))).toContain('billing');
  });

  test.for([['/billing'], ['/billing/x'], ['/:x/y'], ['/:x'], ['/*rest']] as const)(
    'a public %s of a service without a prefix is not for the space of one',
    ([path]) => {
      const error = catchError(() => exporter(pair([`+GET ${path}`], ['+GET /invoices'], '/billing')));
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({
        route: path,
        reason: expect.stringMatching(/users.*\/billing.*billing.*GET \/invoices/),
      });
    },
  );

  test('outside of that space, and for private routes, everything is as before', () => {
    expect(
      exporter(
        pair(
          ['+GET /billing-old/x', '+GET /bill', '-GET /billing/x', '+GET /x/billing'],
          ['+GET /bill', '+GET /x'],
          '/billing',
        ),
      ),
    ).toContain('billing');
  });

  test.for([
    ['no services', [], /empty/],
    ['one name twice', pair(['+GET /a'], ['+GET /b']).map((service) => ({ ...service, service: 'x' })), /"x" twice/],
    ['one prefix twice', pair(['+GET /a'], ['+GET /b']).map((service) => ({ ...service, prefix: '/x' })),
      /"\/x" twice/],
    ['one address twice',
      pair(['+GET /a'], ['+GET /b']).map((service) => ({ ...service, upstream: ['http://a:1', 'http://a:1'] })),
      /"a:1" twice/],
    ['no address', [{ ...pair([], [])[0], upstream: [] }], /upstream/],
    ['http and https at once', [{ ...pair([], [])[0], upstream: ['http://a', 'https://b'] }], /all http or all https/],
    ['an option that does not exist', [{ ...pair([], [])[0], prefixes: '/x' }], /did you mean "prefix"/],
    ['no router', [{ service: 'a', upstream: 'http://a' }], /router/],
    ...['', '/', 'x', '/x/', '//x', '/x//y', '/.', '/x/..', '/a b', '/%41', '/:x', '/x*', '/é', '/~x'].map(
      (prefix) => [`the prefix ${JSON.stringify(prefix)}`, [{ ...pair([], [])[0], prefix }], /"prefix"/] as const,
    ),
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
    [{ host: 'x' }, /did you mean "hosts"/],
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
  for (const key of ['/a.pem', '/a.pem.key'])
    expect(toHAProxy(services, { tls: { certificate: '/a.pem', key } })).toContain("ssl crt '/a.pem' alpn h2,http/1.1");
});

test('HAProxy gets the text that an included file has, and one that is missing is a TypeError', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'postern-include-')), 'site.cfg');
  writeFileSync(file, 'option httplog\n\nlog stdout format raw daemon # "quoted"\n');
  expect(toHAProxy(pair(['+GET /a'], ['+GET /b']), { include: file }))
    .toMatch(/\n {2}option httplog\n\n {2}log stdout format raw daemon # "quoted"\n/);
  expect(() => toHAProxy(pair(['+GET /a'], ['+GET /b']), { include: `${file}.none` })).toThrow(TypeError);
});

test.for([
  [{ tls: { certificate: 'a', key: 'a' } }, ['kong', 'gateway-api']],
  [{ include: 'a' }, ['kong', 'gateway-api']],
  [{ listen: '*:80' }, ['kong', 'gateway-api']],
  [{ gateway: 'a' }, ['nginx', 'haproxy', 'caddy', 'kong']],
  [{ namespace: 'a' }, ['nginx', 'haproxy', 'caddy', 'kong']],
] as const)('%o is a TypeError of %o, which have no use for it', ([options, names]) => {
  for (const { exporter } of EXPORTERS.filter(({ name }) => names.includes(name as never)))
    expect(() => exporter(pair(['+GET /a'], ['+GET /b']), options))
      .toThrow(new RegExp(`unknown option "${Object.keys(options)[0]}"`));
});

test('an https upstream is verified, or its configuration says that it is not', () => {
  const services = [
    { service: 'users', upstream: ['https://a.internal', 'https://b.internal'], router: createRouter(['+GET /a']) },
  ];
  expect(toHAProxy(services)).toMatch(
    /server users-2 b\.internal:443 ssl verify required ca-file @system-ca sni str\(b\.internal\) verifyhost b\.internal/,
  );
  expect(toCaddy(services)).not.toContain('insecure');
  expect(() => toNginx(services)).toThrow(/2 names over https/);
  expect(toNginx([{ ...services[0], upstream: ['https://a.internal:1', 'https://a.internal:2'] } as GatewayService]))
    .toMatch(/NOT verified[^]*proxy_ssl_name \$postern_tls_name;/);
});
