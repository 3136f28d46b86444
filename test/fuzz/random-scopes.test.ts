/**
 * Random tables of public and private routes, and of groups: what the public gets, and which group answers in place of
 * a route.
 *
 * @module-tag slow
 */

import { expect, test } from 'vitest';
import { publicFacing, Router, type Context, type Handler, type Postern } from 'postern';
import { createRandom, type Random } from '../support/random.js';
import { createApp } from '../support/serve.js';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'] as const;

test('replies under the header are those of an application that has the public routes only', async () => {
  const seed = Number(process.env['SEED'] ?? 20_261_123);
  const random = createRandom(seed);
  let [compared, hidden] = [0, 0];
  for (let round = 0; round < 60; round += 1) {
    const routes = randomRoutes(random);
    const ran: string[] = [];
    const whole = build(routes, ran);
    const open = build(routes.filter((route) => route.public), []);
    const oracle = new Router<boolean>();
    for (const route of routes) oracle.add(route.method, route.path, route.public);
    for (let tries = 0; tries < 25; tries += 1) {
      const path = `/${Array.from({ length: 1 + random.int(2) }, () => random.pick(['a', 'b', '7', '%61', 'a%2Fb'])).join('/')}`;
      const allowed = METHODS.filter((method) => oracle.find(method, path)?.handler === true);
      const method = random.pick(METHODS);
      const [actual, expected] = await Promise.all([ask(whole, method, path), ask(open, method, path)]);
      const context = `seed ${seed}: ${JSON.stringify({ routes, method, path, actual, expected })}`;
      if (METHODS.some((each) => oracle.find(each, path)?.handler === false && open.router.find(each, path) !== null)) {
        hidden += 1;
        const allow = [...new Set([...allowed, 'OPTIONS'])].sort().join(', ');
        if (!allowed.includes(method))
          expect([actual.status, actual.allow], context).toEqual(
            allowed.length === 0 ? [404, null] : [method === 'OPTIONS' ? 204 : 405, allow],
          );
        else expect(actual, context).toEqual(expected);
      } else {
        compared += 1;
        expect(actual, context).toEqual(expected);
      }
    }
    expect(ran).toEqual([]);
  }
  expect(compared).toBeGreaterThan(900);
  expect(hidden).toBeGreaterThan(50);
});

interface RandomRoute {
  readonly method: string;
  readonly path: string;
  readonly public: boolean;
}

function randomRoutes(random: Random): RandomRoute[] {
  const routes: RandomRoute[] = [];
  const router = new Router();
  for (let count = 2 + random.int(9); count > 0; count -= 1) {
    const segments = Array.from({ length: 1 + random.int(2) }, (_, i) =>
      random.pick(['a', 'b', `:p${i}`, `:c${i}([ab7]+)`, `:d${i}(\\d+)`]),
    );
    const path = `/${segments.join('/')}${random.int(6) === 0 ? '/*rest' : ''}`;
    const method = random.pick(['GET', 'GET', 'HEAD', 'POST', 'OPTIONS'] as const);
    try {
      router.add(method, path, () => 1);
      routes.push({ method, path, public: random.int(2) === 0 });
    } catch (error) {
      expect(String(error)).toMatch(/registered already/);
    }
  }
  return routes;
}

function build(routes: readonly RandomRoute[], ran: string[]): Postern {
  const app = createApp({ attachMonitorEndpoints: false });
  for (const { method, path, public: isOpen } of routes) {
    const closed: Handler = () => void ran.push(`${method} ${path}`);
    app.route(path, {
      [method]: isOpen ? publicFacing((ctx: Context) => ({ method, path, params: ctx.params })) : closed,
    });
  }
  return app;
}

async function ask(
  app: Postern,
  method: string,
  path: string,
): Promise<{ status: number; allow: string | null; headers: unknown; body: string }> {
  const response = await app.request(path, { method, headers: { 'x-postern-scope': 'public' } });
  const headers = [...response.headers].filter(([name]) => name !== 'date' && name !== 'x-request-id');
  return { status: response.status, allow: response.headers.get('allow'), headers, body: await response.text() };
}

test('the best route is the one that a GET would find, if each route were a GET route: random tables', async () => {
  const random = createRandom(54);
  const segments = ['a', 'b', ':x', ':n(\\d+)', '*r'];
  for (let round = 0; round < 20; round += 1) {
    const paths = new Set<string>();
    while (paths.size < 5) {
      const parts: string[] = [];
      do parts.push(random.pick(segments)); while (parts.at(-1) !== '*r' && parts.length < 3 && random.int(2) === 0);
      const names = parts.map((part, i) => part.replace(/^([:*])\w/, `$1p${i}`));
      paths.add(`/${names.join('/')}`);
    }
    const app = createApp();
    const ran: string[] = [];
    const oracle = createApp();
    for (const path of paths) {
      app.group('', { middleware: [async (_ctx, next) => { ran.push(path); return next(); }] }, (group) => {
        group.post(path, () => 'x');
      });
      oracle.get(path, () => path);
    }
    for (const target of ['/a', '/b', '/7', '/c', '/a/b', '/a/7', '/b/c', '/7/7', '/a/b/c', '/a/a/7', '/c/c/c/c']) {
      const best = await oracle.request(target);
      const expected = best.status === 404 ? [404] : [405, await best.text()];
      const { status } = await app.request(target, { method: 'PUT' });
      expect([[...paths], target, status, ...ran.splice(0)]).toEqual([[...paths], target, ...expected]);
    }
  }
});
