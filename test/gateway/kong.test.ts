import { describe, expect, test } from 'vitest';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router } from '../../src/routing/router.js';
import { GatewayError, toKong } from '../../src/gateway.js';
import { escapeForUpstream, kongPasses, normalizeForKong, type KongFile, type KongRoute } from '../support/gateway-model.js';
import { createSampleRouter, EVERYDAY, ODD } from '../support/gateway-sample.js';
import { describe as describeMatch, expectedRoute } from '../support/gateway-upstream.js';

const closed = (): string => 'private';
const open = publicFacing(() => 'public');
const OPTIONS = { service: 'users', upstream: 'http://10.0.0.7:8000' };

/** Kong knows methods of letters only, and its engines read and count characters beyond ASCII differently. */
const UNSAID = ['M-SEARCH /fast', 'GET /half/:x([à-ü]+)', 'GET /short/:x(.{1,3})'];

function parse(text: string): KongFile {
  return JSON.parse(text) as KongFile;
}

function routesOf(router: Router): readonly KongRoute[] {
  return parse(toKong(router, OPTIONS)).services[0]?.routes ?? [];
}

describe('a decK file', () => {
  const file = parse(toKong(createSampleRouter(UNSAID), { ...OPTIONS, hosts: ['Users.example.com'] }));
  const [service] = file.services;
  const routes = service?.routes ?? [];

  test('has one service and its version', () => {
    expect(file._format_version).toBe('3.0');
    expect(file.services).toHaveLength(1);
    expect(service).toMatchObject({ name: 'users', protocol: 'http', host: '10.0.0.7', port: 8000 });
  });

  test('has routes with anchored expressions, hosts and methods, that keep path and host', () => {
    const names = new Set(routes.map((route) => route.name));
    expect(names.size).toBe(routes.length);
    for (const route of routes) {
      expect(route.name).toMatch(/^[A-Za-z0-9._~-]+$/);
      expect(route).toMatchObject({ strip_path: false, preserve_host: true, hosts: ['users.example.com'] });
      expect(route.methods.length).toBeGreaterThan(0);
      for (const path of route.paths) expect(path).toMatch(route.tags.includes('unclean-path') ? /^~\// : /^~\/.*\$$/);
      for (const tag of route.tags) expect(tag).toMatch(/^[^,/]+$/);
      expect(route.plugins?.[0]?.config.status_code).toBe(route.tags.includes('private') ? 404 : undefined);
    }
  });

  test('says which query parameters a route allows', () => {
    const router = new Router();
    router.add('GET', '/q', publicFacing(closed, { params: ['q', 'a,b/c'] }));
    router.add('GET', '/none', publicFacing(closed, { params: [] }));
    router.add('GET', '/any', open);
    const tags = routesOf(router).filter((route) => route.methods.includes('GET') && !route.plugins).map((route) => route.tags);
    expect(tags).toEqual([['public', 'query:q', 'query:a%2Cb%2Fc'], ['public', 'query-none'], ['public', 'query-any']]);
  });
});

test.for(['pcre', 'rust'] as const)('Kong with %s passes on public requests, and no others', (engine) => {
  const router = createSampleRouter(UNSAID);
  const routes = routesOf(router);
  const wrong: string[] = [];
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'QUERY']) {
    for (const path of [...EVERYDAY, ...ODD.filter((target) => target.startsWith('/')).map((target) => target.replace(/[?#].*$/s, ''))]) {
      const normalized = normalizeForKong(path);
      const passes = kongPasses(routes, method, normalized, engine);
      const sent = escapeForUpstream(normalized);
      const expected = expectedRoute(router, method, sent);
      if (passes && expected === null && describeMatch(router, method, sent) !== 'none') wrong.push(`${method} ${path} passes`);
      if (!passes && EVERYDAY.includes(path) && !path.includes('//') && expected !== null) wrong.push(`${method} ${path} is refused`);
    }
  }
  expect(wrong).toEqual([]);
});

test.for([
  ['a method with a hyphen', ['+M-SEARCH /x'], '/x', /M-SEARCH/],
  ['TRACE', ['+TRACE /x'], '/x', /TRACE/],
  ['a count of characters beyond ASCII', ['+GET /x/:a(.{2})'], '/x/:a(.{2})', /count/],
  ['a range beyond ASCII', ['+GET /x/:a([à-ü]+)'], '/x/:a([à-ü]+)', /beyond ASCII/],
  ['a private constraint that repeats a group', ['+GET /x/:a', '-GET /x/:b((?:ab)+)'], '/x/:b((?:ab)+)', /repeats a group/],
  ['OPTIONS between private routes', ['-GET /:x/b', '+GET /:x/:y', '+POST /*rest'], '/:x/b', /OPTIONS/],
] as const)('%s is a GatewayError', ([, routes, route, reason]) => {
  const router = new Router();
  for (const text of routes) {
    const [method = '', path = ''] = text.slice(1).split(' ');
    router.add(method, path, text.startsWith('+') ? open : closed);
  }
  const error = (() => {
    try {
      return toKong(router, OPTIONS);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({ route, reason: expect.stringMatching(reason) });
});
