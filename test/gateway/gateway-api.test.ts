import { describe, expect, test } from 'vitest';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router } from '../../src/routing/router.js';
import { GatewayError, toGatewayApi } from '../../src/gateway.js';
import { httpRoutePasses, parseHttpRoutes } from '../support/gateway-model.js';
import { EVERYDAY, ODD } from '../support/gateway-sample.js';
import { describe as describeMatch, expectedRoute } from '../support/gateway-upstream.js';

const closed = (): string => 'private';
const open = publicFacing(() => 'public');
const OPTIONS = { service: 'users', upstream: 'http://users.prod:8000', gateway: 'public' };

function createRouter(routes: readonly string[]): Router {
  const router = new Router();
  for (const route of routes) {
    const [method = '', path = ''] = [route.slice(1, route.indexOf(' ')), route.slice(route.indexOf(' ') + 1)];
    router.add(method, path, route.startsWith('+') ? open : closed);
  }
  return router;
}

const TABLE = [
  '+GET /', '+GET /fast', '-PUT /fast', '+POST /users/me', '-DELETE /users/me', '+GET /users/:id', '+DELETE /sta/:x/tic', '+GET /files/*rest', '+GET /n/:n(\\d+)', '-GET /n/:word([a-z ]+)', '+GET /café/@me/a b',
  '-GET /admin', '+GET /half/:x([à-ü]+)', '+HEAD /head', '-GET /head', '-OPTIONS /options', '+GET /options', '+GET /only/:x(.+)', '+GET /v1.0/(x)', '-PATCH /*rest', '+GET /not/:x([^/x]+)', '-GET /:any/:thing/deep/:down/er',
];

describe('HTTPRoute manifests', () => {
  const yaml = toGatewayApi(createRouter(TABLE), { ...OPTIONS, namespace: 'edge', hosts: ['users.example.com'] });

  test('name the gateway, the hosts, the namespace and the Service', () => {
    expect(yaml).toContain('apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  name: users\n  namespace: edge\nspec:\n  parentRefs:\n    - name: public\n  hostnames:\n    - users.example.com\n  rules:\n');
    expect(yaml).toContain('      backendRefs:\n        - name: users\n          namespace: prod # needs a ReferenceGrant there, if it is another\n          port: 8000\n');
  });

  test('match static routes exactly and the others with anchored expressions', () => {
    expect(yaml).toContain('    # GET /fast (query: any)\n    - matches:\n        - method: GET\n          path:\n            type: Exact\n            value: /fast\n');
    expect(yaml).toContain("            type: RegularExpression\n            value: '^/users/[^/]+$'\n");
    expect(yaml).toContain("            value: '/caf%C3%A9/@me/a%20b'\n");
  });

  test('pass on public requests, and no others', () => {
    const router = createRouter(TABLE);
    const matches = parseHttpRoutes(yaml).flat(2);
    const wrong: string[] = [];
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      for (const path of [...EVERYDAY, ...ODD.filter((target) => target.startsWith('/')).map((target) => target.replace(/[?#].*$/s, ''))]) {
        const expected = expectedRoute(router, method, path);
        const passes = httpRoutePasses(matches, method, path);
        if (passes && expected === null && describeMatch(router, method, path) !== 'none') wrong.push(`${method} ${path} passes`);
        // Of a static route only the usual spelling is matched.
        if (!passes && EVERYDAY.includes(path) && !/^\/caf%c3|%40/.test(path) && expected !== null) wrong.push(`${method} ${path} is refused`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('are as many as their names need', () => {
    const hosts = Array.from({ length: 33 }, (_, i) => `h${i}.example`);
    const text = toGatewayApi(createRouter(TABLE), { ...OPTIONS, hosts });
    const manifests = text.split('---\n');
    expect(manifests.map((manifest) => (manifest.match(/h\d+\.example/g) ?? []).length)).toEqual([16, 16, 1]);
    expect(new Set(text.match(/h\d+\.example/g)).size).toBe(33);
    expect(new Set(text.match(/^  name: .*/gm)).size).toBe(3);
  });

  test('keep within the limits of the resource', () => {
    const router = new Router();
    for (let i = 0; i < 70; i += 1) for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE']) router.add(method, `/r${i}/:id`, open);
    const text = toGatewayApi(router, OPTIONS);
    const manifests = parseHttpRoutes(text);
    for (const rules of manifests) {
      expect(rules.length).toBeLessThanOrEqual(16);
      expect(rules.flat().length).toBeLessThan(128);
      for (const matches of rules) expect(matches.length).toBeLessThanOrEqual(64);
    }
    expect(manifests.flat(2)).toHaveLength(70 * 8);
    expect(new Set([...text.matchAll(/^ {2}name: (.*)$/gm)].map(([, name]) => name)).size).toBe(manifests.length);
    expect(new Set(manifests.flat(2).map(({ method }) => method))).toEqual(new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'OPTIONS']));
  });

  test('are none where nothing is public, since a route without rules matches everything', () => {
    expect(toGatewayApi(createRouter(['-GET /x']), OPTIONS)).not.toContain('HTTPRoute');
  });
});

test.for([
  ['a private route inside a public one', ['+GET /users/:id', '-GET /users/me'], '/users/me', /GET is private here and public at \/users\/:id/],
  ['a private HEAD inside a public GET', ['+GET /a/*rest', '-HEAD /a/b'], '/a/b', /HEAD/],
  ['routes that overlap', ['+GET /:y/b', '-GET /a/:x'], '/a/:x', /same paths/],
  ['constraints that overlap', ['+GET /:y([b-z]+)', '-GET /:x([a-c]+)', '+GET /:z'], '/:x([a-c]+)', /same paths/],
  ['OPTIONS that is private in parts', ['+GET /a/:x', '-OPTIONS /:y/b'], '/:y/b', /OPTIONS/],
  ['QUERY', ['+QUERY /search'], '/search', /QUERY/],
  ['CONNECT', ['+CONNECT /x'], '/x', /CONNECT/],
  ['a path beyond 1024 characters', [`+GET /${'x'.repeat(1024)}`], `/${'x'.repeat(1024)}`, /1024/],
  ['a dot segment', ['+GET /x/../y'], '/x/../y', /segment/],
  ['more than 1000 repeats', ['+GET /x/:a(a{1001})'], '/x/:a(a{1001})', /1000/],
] as const)('%s is a GatewayError', ([, routes, route, reason]) => {
  const error = (() => {
    try {
      return toGatewayApi(createRouter(routes), OPTIONS);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({ route, reason: expect.stringMatching(reason) });
});

test.for([
  ['private methods of a public path', ['+GET /users/:id', '-DELETE /users/:id', '-PUT /users/me']],
  ['a public route inside a private one', ['-GET /:x', '+GET /fast']],
  ['constraints that have nothing in common', ['+GET /n/:n(\\d+)', '-GET /n/:w([a-z]+)', '+GET /u/:a(v\\d)', '-GET /u/:b(v[a-z]|w\\d+)']],
  ['a prefix with a slash beside its wildcard', ['+GET /a/*rest', '-GET /a/', '-GET /b/*rest', '+GET /b/']],
  ['a private OPTIONS wildcard beside a path that ends in its slash', ['-OPTIONS /a/*rest', '+GET /a/']],
  ['private routes of another length', ['+GET /a/:x', '-GET /a/:x/', '-GET /a/:x/y']],
] as const)('%s can be told', ([, routes]) => {
  expect(toGatewayApi(createRouter(routes), OPTIONS)).toContain('HTTPRoute');
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
  expect(() => toGatewayApi(createRouter(TABLE), { ...OPTIONS, ...wrong } as typeof OPTIONS)).toThrow(TypeError);
  expect(() => toGatewayApi(createRouter(TABLE), { ...OPTIONS, ...wrong } as typeof OPTIONS)).toThrow(message);
});
