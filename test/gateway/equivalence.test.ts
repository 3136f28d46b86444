/** Real gateways in front of a real router: a request reaches a handler if, and only if, that handler is public. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router } from '../../src/routing/router.js';
import { toCaddy, toHAProxy, toNginx, type GatewayOptions, type RouteTable } from '../../src/gateway.js';
import { checkGateway, freePorts, startGateway, type GatewayName, type RunningGateway } from '../support/gateway-process.js';
import { createSampleRouter, EVERYDAY, ODD } from '../support/gateway-sample.js';
import { ask, expectedRoute, inParallel, startUpstream, type Upstream } from '../support/gateway-upstream.js';

const EXPORTERS: Record<GatewayName, (router: RouteTable, options: GatewayOptions) => string> = { nginx: toNginx, haproxy: toHAProxy, caddy: toCaddy };
const GATEWAYS: readonly GatewayName[] = ['nginx', 'haproxy', 'caddy'];

const closed = (): string => 'private';
const open = publicFacing(() => 'public');

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'QUERY', 'M-SEARCH', 'PROPFIND', 'get', 'TRACE'];

/** The path that a service reads off a target. */
function pathOf(target: string): string {
  const path = target.replace(/^[a-z]+:(?:\/\/[^/?#]*)?/i, '').replace(/\?.*$/s, '');
  return path === '' && target !== '' ? '/' : path;
}

describe.each(GATEWAYS)('%s', (name) => {
  const router = createSampleRouter();
  let upstream: Upstream;
  let gateway: RunningGateway;
  let port = 0;
  let text = '';

  beforeAll(async () => {
    upstream = await startUpstream(new Map([['t', router]]));
    [port = 0] = await freePorts(1);
    text = EXPORTERS[name](router, { service: 'users', upstream: upstream.url, listen: `127.0.0.1:${port}` });
    gateway = await startGateway(name, text, [port]);
  });
  afterAll(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  test('takes the configuration without a complaint', () => {
    expect(checkGateway(name, text)).toBe('');
  });

  test.for(METHODS)('%s reaches public handlers, and no others, by everyday paths', async (method) => {
    const wrong: string[] = [];
    await inParallel(EVERYDAY, async (path) => {
      for (const target of [path, `${path}?q=1&x=/../admin`]) {
        const expected = expectedRoute(router, method, path);
        const { status, reached } = await ask(port, method, target, 't');
        const refused = EVERYDAY_METHODS.some((other) => expectedRoute(router, other, path) !== null) ? 405 : 404;
        if (reached !== expected) wrong.push(`${target}: ${String(reached)}, not ${String(expected)}`);
        else if (reached === null && status !== refused && method !== 'TRACE' && method !== 'get') wrong.push(`${target}: ${status}, not ${refused}`);
      }
    });
    expect(wrong).toEqual([]);
  });

  test.for(METHODS)('%s reaches nothing private by odd spellings', async (method) => {
    const wrong: string[] = [];
    await inParallel(ODD, async (target) => {
      const { reached } = await ask(port, method, target, 't');
      if (reached !== null && reached !== expectedRoute(router, method, pathOf(target))) wrong.push(`${target}: ${reached}`);
    });
    expect(wrong).toEqual([]);
  });

  test('says which methods of a path are public', async () => {
    expect((await ask(port, 'PUT', '/fast', 't')).allow).toBe('GET, HEAD, M-SEARCH, POST, QUERY, OPTIONS');
    expect((await ask(port, 'GET', '/users/me', 't')).allow).toBe('DELETE, POST, OPTIONS');
    expect((await ask(port, 'POST', '/options', 't')).allow).toBe('GET, HEAD');
    expect((await ask(port, 'POST', '/head', 't')).allow).toBe('HEAD, OPTIONS');
    expect((await ask(port, 'GET', '/admin', 't')).allow).toBe(undefined);
  });

  test('serves HTTP/1.0 and absolute-form targets', async () => {
    expect((await ask(port, 'GET', '/users/7', 't', '1.0')).reached).toBe('GET /users/:id');
    expect((await ask(port, 'GET', '/users/me', 't', '1.0')).reached).toBe(null);
    expect((await ask(port, 'GET', 'http://t/users/7?x', 't')).reached).toBe('GET /users/:id');
    expect((await ask(port, 'GET', 'http://t', 't')).reached).toBe('GET /');
  });
});

const EVERYDAY_METHODS = METHODS.filter((method) => method === method.toUpperCase());

test('HAProxy finds a private route by paths that its expressions run out of stack for', async () => {
  const router = new Router();
  const constraints: readonly (readonly [string, string])[] = [['[a-z]+(?:-[a-z]+)*', 'a-'], ['(?:(?:a|b)(?:c|d)|e)+', 'ac'], ['[a-z ]+', 'a%20'], ['(?:(?:(?:(?:a|b)|c)|d)|f)+', 'f'], ['(?:(?:a|b)|c){1,900}', 'abc']];
  constraints.forEach(([constraint], i) => {
    router.add('GET', `/c${i}/:x(${constraint})`, closed);
    router.add('GET', `/c${i}/:x`, open);
  });
  const upstream = await startUpstream(new Map([['t', router]]));
  const [port = 0] = await freePorts(1);
  const gateway = await startGateway('haproxy', toHAProxy(router, { service: 'users', upstream: upstream.url, listen: `127.0.0.1:${port}` }), [port]);
  try {
    const targets = constraints.flatMap(([, unit], i) => [10, 100, 500, 800, 1200, 1800, 3000, 6000, 12_000].map((length) => `/c${i}/${unit.repeat(Math.floor(length / unit.length))}e`));
    const reached: string[] = [];
    await inParallel(targets, async (target) => {
      const reply = await ask(port, 'GET', target, 't');
      if (reply.reached !== null && reply.reached !== expectedRoute(router, 'GET', target)) reached.push(`${target.slice(0, 20)} of ${target.length}: ${reply.reached}`);
    });
    expect(reached).toEqual([]);
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
});
