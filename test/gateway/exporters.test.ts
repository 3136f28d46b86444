/**
 * The texts of the exporters: what they take, what they refuse, and that each gateway takes them.
 *
 * @module-tag gateways
 */

import { createServer, METHODS, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { REQUEST_ID } from '../../src/propagation/mesh-headers.js';
import { Router } from '../../src/routing/router.js';
import {
  toCaddy, toGatewayApi, toHAProxy, toKong, toNginx, type GatewayOptions, type RouteTable,
} from '../../src/gateway.js';
import { checkGateway, startGateway } from '../support/gateway-process.js';
import { createRouter, createSampleRouter } from '../support/gateway-sample.js';
import { ask, startUpstream } from '../support/gateway-upstream.js';
import { rawRequest, type RawResponse } from '../support/raw.js';
import { freePort } from '../support/ports.js';

const closed = (): string => 'private';
const open = publicFacing(() => 'public');
const OPTIONS = { service: 'users', upstream: 'http://127.0.0.1:8000' };

const EXPORTERS = [
  { name: 'nginx', exporter: toNginx },
  { name: 'haproxy', exporter: toHAProxy },
  { name: 'caddy', exporter: toCaddy },
] as const;

function route(method: string, path: string): Router {
  const router = new Router();
  router.add(method, path, open);
  return router;
}

function catchError(router: RouteTable, exporter: (router: RouteTable, options: GatewayOptions) => string): unknown {
  try {
    return exporter(router, OPTIONS);
  } catch (error) {
    return error;
  }
}

describe.each(EXPORTERS)('$name', ({ name, exporter }) => {
  test('gives the same text for the same table', () => {
    expect(exporter(createSampleRouter(), OPTIONS)).toBe(exporter(createSampleRouter(), OPTIONS));
  });

  test('listens on 127.0.0.1:8080 unless told, and anywhere it is told', () => {
    expect(exporter(route('GET', '/'), OPTIONS)).toMatch(/127\.0\.0\.1:8080|:8080 \{\n {2}bind 127\.0\.0\.1/);
    for (const listen of ['127.0.0.1:8081', '[::1]:8081', '*:8081', 'localhost:8081'])
      expect(checkGateway(name, exporter(route('GET', '/'), { ...OPTIONS, listen }))).toBe('');
  });

  test('keeps a request id that the service keeps', () => {
    expect(exporter(route('GET', '/'), OPTIONS)).toContain(`^${name === 'caddy' ? `(${REQUEST_ID})` : REQUEST_ID}`);
  });

  test('reaches an upstream over TLS', () => {
    expect(checkGateway(name, exporter(route('GET', '/'), { ...OPTIONS, upstream: 'https://127.0.0.1:8443' })))
      .toBe('');
    expect(checkGateway(name, exporter(route('GET', '/'), { ...OPTIONS, upstream: 'https://localhost' }))).toBe('');
  });

  test('has a comment for each public route and its query parameters, in the order of the table', () => {
    const router = route('GET', '/users/:id');
    router.add('POST', '/two', publicFacing(closed, { params: ['q', 'page'] }));
    router.add('DELETE', '/users/:id', open);
    router.add('PUT', '/none/:x', publicFacing(closed, { params: [] }));
    router.add('PUT', '/none/me', closed);
    const text = exporter(router, OPTIONS);
    expect([...text.matchAll(/^ *# ([A-Z]+ \/.*)$/gm)].map(([, title]) => title)).toEqual([
      'GET /users/:id (query: any)',
      'POST /two (query: q, page)',
      'DELETE /users/:id (query: any)',
      'PUT /none/:x (query: none)',
    ]);
    expect(text).toContain('4 of 5');
  });

  test('has no expression longer than the path would need without constraints, and nothing of private routes', () => {
    const table = [
      '+GET /n/:n(\\d{1,9}|[a-f]{8})', '+GET /users/:id', '-GET /users/me', '-GET /hidden/:x', '+GET /files/*rest',
      '+PUT /n/:n([^x]+)/:m(\\w+)/keys', '+GET /fast', '+GET /a.b',
    ];
    const text = exporter(createRouter(table), OPTIONS);
    const expressions = [...text.matchAll(/["'`](?:\(\?s\))?\^\/[^"'`]*["'`]/g)].map(([quoted]) => quoted.slice(1, -1));
    expect(
      expressions.filter(
        (expression) => /[a-z]/.test(expression.replace('(?s)', '')) && !expression.includes('postern'),
      ),
    ).toEqual([
      '^/n/[^/]+\\z', '^/users/[^/]+\\z', '(?s)^/files/.', '^/n/[^/]+/[^/]+/keys\\z', '^/fast\\z', '^/a\\.b\\z',
    ]);
    expect(text).not.toMatch(/users\/me|hidden/);
  });

  test('takes a table without public routes', async () => {
    const router = new Router();
    router.add('GET', '/', closed);
    expect(checkGateway(name, exporter(router, OPTIONS))).toBe('');
    expect(checkGateway(name, exporter(new Router(), OPTIONS))).toBe('');
  });

  test('can be given route texts that its syntax has other uses for', () => {
    const router = new Router();
    const texts = [
      'a"b', "a'b", 'a`b', 'a{b}', '{', '}', 'a;b', 'a b', '$host', '${host}', '{$HOME}', '{http.request.uri}', '%',
      'a\nlisten 1;', 'a\r\nb', '\t', '(', '[', '^$', '|', '*x', '+!', '"; return 200; ', "' }", '" {', '\u2028',
      '\u0085', 'é', '日本', '~', '&&', '--', '<<EOF', ',', '=', '!', '@', ':',
    ];
    texts.forEach((text, i) => {
      router.add('GET', `/s${i}/${text.replace(/^[:*]/, 'x$&')}`, publicFacing(closed, { params: [text] }));
      router.add('GET', `/c${i}/:x([${text.replace(/[\\\]^-]/g, '\\$&')}]+)`, open);
    });
    const text = exporter(router, OPTIONS);
    expect(checkGateway(name, text)).toBe('');
    expect(text.split('\n').filter((line) => /^\s*(?:listen|bind) /.test(line))).toHaveLength(1);
  });

  test('has OPTIONS for Allow even if no public route has another method', () => {
    expect(exporter(route('OPTIONS', '/x'), OPTIONS)).toMatch(/postern_allow\S*[ "']*.*, OPTIONS/);
  });

  test('a public CONNECT route is a GatewayError', () => {
    expect(catchError(route('CONNECT', '/x'), exporter))
      .toMatchObject({ name: 'GatewayError', route: '/x', reason: expect.stringMatching(/CONNECT/) });
  });

  test('takes many names, and routes with many query parameters', () => {
    const hosts = Array.from({ length: 200 }, (_, i) => `service-${i}.of-a-rather-long-domain.example`);
    const router = route('GET', '/:x');
    router.add(
      'GET',
      '/many',
      publicFacing(closed, {
        params: Array.from({ length: 600 }, (_, i) => `${i % 2 === 0 ? 'é' : '日本'}-parameter-${i}`),
      }),
    );
    expect(checkGateway(name, exporter(router, { ...OPTIONS, hosts }))).toBe('');
  });

  test('takes a service of any name with many routes', () => {
    const router = new Router();
    for (let i = 0; i < 405; i += 1) router.add('GET', `/${i}`, open);
    expect(checkGateway(name, exporter(router, { ...OPTIONS, service: 'postern' }))).toBe('');
  });

  test('takes a constraint of many alternatives', () => {
    const words = Array.from({ length: 1100 }, (_, i) => i.toString(36).padStart(3, 'x'));
    expect(checkGateway(name, exporter(route('GET', `/:x(${words.join('|')})`), OPTIONS))).toBe('');
  });

  test('serves the names it is given, and no other', async () => {
    const router = route('GET', '/');
    const upstream = await startUpstream(new Map([['a', router]]));
    const port = await freePort();
    const gateway = await startGateway(
      name,
      exporter(router, {
        service: 'users',
        upstream: upstream.url,
        listen: `127.0.0.1:${port}`,
        hosts: ['a.example', 'B.example'],
      }),
      [port],
    );
    try {
      for (const host of ['a.example', 'A.EXAMPLE', 'b.example', `a.example:${port}`])
        expect((await ask(port, 'GET', '/', host)).reached).toBe('GET /');
      for (const host of [
        'c.example',
        'a.example.org',
        'xa.example',
        'aaexample',
        '127.0.0.1',
        'a.example,c.example',
        'c.example,a.example',
        'a.example:80,c.example',
        'a.example:x',
      ])
        expect(await ask(port, 'GET', '/', host), host).toMatchObject({ reached: null, status: 404 });
    } finally {
      await gateway.stop();
      await upstream.stop();
    }
  });
});

test('nginx answers TRACE itself, so a public TRACE route is a GatewayError', () => {
  expect(catchError(route('TRACE', '/x'), toNginx)).toMatchObject({ name: 'GatewayError', route: '/x' });
});

const everyExporter = [
  toNginx,
  toHAProxy,
  toCaddy,
  toKong,
  (router: RouteTable, options: GatewayOptions) =>
    toGatewayApi(router, {
      ...options,
      gateway: options.gateway ?? 'public',
      upstream: options.upstream === OPTIONS.upstream ? 'http://users:8000' : options.upstream,
    }),
];

test.for([
  { service: undefined },
  { service: '' },
  { service: 'Users' },
  { service: 'a.b' },
  { service: '-a' },
  { service: 'a'.repeat(64) },
  { service: 'a\nb' },
  { upstream: undefined },
  { upstream: 'ftp://a' },
  { upstream: 'a:80' },
  { upstream: 'http://a/b' },
  { upstream: 'http://a?b' },
  { upstream: 'http://a#b' },
  { upstream: 'http://u@a' },
  { upstream: 'http://a;b' },
  { upstream: 'http://$host' },
  { upstream: 'http://a b' },
  { upstream: 'http://a:0' },
  { upstream: 'http://a:65536' },
  { listen: '' },
  { listen: '8080' },
  { listen: ':8080' },
  { listen: '127.0.0.1' },
  { listen: '127.0.0.1:0' },
  { listen: '127.0.0.1:65536' },
  { listen: '127.0.0.1:8080; x' },
  { hosts: 'a.example' },
  { hosts: ['a b'] },
  { hosts: ['*.example'] },
  { hosts: ['a:80'] },
  { hosts: [''] },
  { hosts: [7] },
  { gateway: 'a b' },
  { namespace: '' },
  { host: ['a.example'] },
])('%o is a TypeError', (wrong) => {
  for (const exporter of everyExporter) {
    const options = { ...OPTIONS, ...wrong } as GatewayOptions;
    expect(() => exporter(createSampleRouter(), options)).toThrow(TypeError);
    expect(() => exporter(createSampleRouter(), options)).toThrow(Object.keys(wrong).join());
  }
});

test('no options are a TypeError', () => {
  for (const exporter of everyExporter.slice(0, 4))
    expect(() => Reflect.apply(exporter, undefined, [new Router()])).toThrow(TypeError);
});

test('what a gateway would send twice, or has no room for, is a GatewayError', () => {
  const upstream = (count: number): string[] => Array.from({ length: count }, (_, i) => `http://users-${i}:8000`);
  type Exporter = (router: RouteTable, options: GatewayOptions) => string;
  const write = (exporter: Exporter, method: string, count: number): unknown => {
    try {
      return typeof exporter(route(method, '/x'), { ...OPTIONS, upstream: upstream(count) });
    } catch (error) {
      return error;
    }
  };
  // With one upstream, too: a request on a kept connection that breaks is sent over a new one.
  for (const method of ['NOTIFY', 'SUBSCRIBE', 'UNSUBSCRIBE', 'SOURCE', 'M-SEARCH'])
    expect(write(toNginx, method, 1)).toMatchObject({ name: 'GatewayError', route: '/x' });
  const toManifests = (router: RouteTable, options: GatewayOptions): string =>
    toGatewayApi(router, { service: options.service, upstream: options.upstream, gateway: 'main' });
  expect(write(toManifests, 'GET', 16)).toBe('string');
  expect(write(toManifests, 'GET', 17)).toMatchObject({ name: 'GatewayError', route: '/x' });
});

test('nginx refuses a foreign host for every path, and sends what a service answers about itself', async () => {
  const own = {
    server: 'mine', 'x-accel-redirect': '/elsewhere', 'x-accel-expires': '60', 'x-accel-limit-rate': '1',
    'x-accel-buffering': 'no', 'x-accel-charset': 'utf-8',
  };
  const service = createServer((_req, res) => res.writeHead(200, { ...own, 'content-length': 8 }).end('answered'));
  const serviceAt = await listening(service);
  const port = await freePort();
  const options = { service: 'users', upstream: serviceAt, listen: `127.0.0.1:${port}`, hosts: ['a.example'] };
  const text = toNginx(route('GET', '/*rest'), options);
  const [, refusal = ''] = /error_page 400 (.*);/.exec(text) ?? [];
  const gateway = await startGateway('nginx', text, [port]);
  onTestFinished(async () => {
    await gateway.stop();
    service.close();
  });
  const exchange = (path: string, host: string): Promise<RawResponse> =>
    rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  for (const path of ['/x', '/.postern_x', `${refusal}x`, '/x/../.postern_y'])
    expect((await exchange(path, 'evil.example')).status, path).toBe(404);
  for (const path of ['/x', '/.postern_400', `${refusal}x`]) {
    const { status, headers, body } = await exchange(path, 'a.example');
    expect([status, headers, body]).toEqual([200, expect.objectContaining(own), 'answered']);
  }
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('HAProxy takes a service with more public methods than fit on a line', () => {
  const router = new Router();
  const methods = METHODS.filter((each) => !['CONNECT', 'TRACE', 'HEAD', 'OPTIONS'].includes(each)).slice(0, 24);
  for (const method of methods) router.add(method, '/x', open);
  expect(checkGateway('haproxy', toHAProxy(router, OPTIONS))).toBe('');
});
