/**
 * Several instances of a service behind real gateways: a dead one costs nobody anything, and nothing is sent twice that
 * must not be.
 *
 * @module-tag gateways
 * @module-tag slow
 */

import { afterEach, describe, expect, test } from 'vitest';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { Postern, publicFacing, redirect, TooManyRequests } from 'postern';
import { toCaddy, toHAProxy, toNginx, type RouteTable } from '../../src/gateway.js';
import { startGateway, type GatewayName } from '../support/gateway-process.js';
import { exchange, routerOf, startService, type RunningService } from '../support/gateway-services.js';
import { freePort } from '../support/ports.js';

const EXPORTERS = { nginx: toNginx, haproxy: toHAProxy, caddy: toCaddy } as const;
const GATEWAYS: readonly GatewayName[] = ['nginx', 'haproxy', 'caddy'];
const TABLE = { name: 'svc', open: ['GET /x', 'POST /x'], closed: [] };
const DROPPED = routerOf(
  ['GET', 'POST'].map((method) => ({ method, path: '/x', pattern: '^/x$', public: true, params: null })),
);

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const task of cleanUp.splice(0).toReversed()) await task();
});

async function start(name: GatewayName, upstream: readonly string[], router: RouteTable): Promise<number> {
  const port = await freePort();
  const gateway = await startGateway(
    name,
    EXPORTERS[name]([{ router, service: 'svc', upstream }], { listen: `127.0.0.1:${port}` }),
    [port],
  );
  cleanUp.push(() => gateway.stop());
  return port;
}

/** So many requests a second for so long, over kept connections; the statuses that came, 0 where none did. */
async function load(port: number, method: string, perSecond: number, seconds: number): Promise<Map<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 50 });
  const statuses = new Map<number, number>();
  const add = (status: number): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const asked: Promise<void>[] = [];
  const started = performance.now();
  for (let i = 0; i < perSecond * seconds; i += 1) {
    const due = started + (i * 1000) / perSecond - performance.now();
    if (due > 1) await new Promise((resolve) => setTimeout(resolve, due));
    asked.push(
      new Promise((resolve) => {
        const outgoing = request(
          {
            port,
            host: '127.0.0.1',
            path: '/x',
            method,
            agent,
            headers: method === 'POST' ? { 'content-length': 2 } : {},
          },
          (response) => {
            response.resume().on('end', () => {
              add(response.statusCode ?? 0);
              resolve();
            });
          },
        );
        outgoing.on('error', () => {
          add(0);
          resolve();
        });
        outgoing.end(method === 'POST' ? 'ab' : undefined);
      }),
    );
  }
  await Promise.all(asked);
  agent.destroy();
  return statuses;
}

describe.each(GATEWAYS)('%s', (name) => {
  test(
    'a dead instance among three costs no client an error at 500 requests a second',
    { timeout: 60_000 },
    async () => {
      const services: RunningService[] = await Promise.all([1, 2, 3].map(() => startService(TABLE)));
      for (const service of services) cleanUp.push(() => service.stop());
      const port = await start(name, services.map(({ url }) => url), routerOf(services[0]?.routes ?? []));
      expect([...(await load(port, 'GET', 200, 0.5))]).toEqual([[200, 100]]);
      const during = load(port, 'GET', 500, 2);
      await new Promise((resolve) => setTimeout(resolve, 500));
      await services[1]?.stop();
      expect([...(await during)]).toEqual([[200, 1000]]);
      expect([...(await load(port, 'POST', 500, 0.5))]).toEqual([[200, 250]]);
    },
  );

  test('each instance gets its share, and one that refuses is passed over from the start', async () => {
    const dead = await freePort();
    const services: RunningService[] = await Promise.all([1, 2].map(() => startService(TABLE, true)));
    for (const service of services) cleanUp.push(() => service.stop());
    const port = await start(
      name,
      [`http://127.0.0.1:${dead}`, ...services.map(({ url }) => url)],
      routerOf(services[0]?.routes ?? []),
    );
    expect([...(await load(port, 'POST', 100, 1))]).toEqual([[200, 100]]);
    for (const { url } of services)
      expect(Number(await (await fetch(`${url}/extra/connections`)).text())).toBeGreaterThan(1);
  });

  test.for([
    ['whose middleware refuses strangers', () => { throw new TooManyRequests(); }],
    ['whose middleware sends strangers to a login', () => redirect('/login')],
    ['with a public route of their own that ends in /ping/', undefined],
  ] as const)('instances %s are there', async ([, answer]) => {
    const apps = [1, 2].map(() => {
      const app = new Postern('svc', { logger: false, attachMonitorEndpoints: false });
      if (answer) app.use((ctx, next) => (ctx.headers.authorization === undefined ? answer() : next()));
      return app.get('/api/ping/', publicFacing(() => 'pong')).get('/x', publicFacing(() => 'x'));
    });
    for (const app of apps) cleanUp.push(() => app.close());
    const urls = await Promise.all(apps.map(async (app) => (await app.listen({ host: '127.0.0.1', port: 0 })).url));
    const port = await start(name, urls, routerOf(apps[0]?.router.routes ?? []));
    // Longer than the interval of Caddy's checks.
    for (const end = performance.now() + 1500; performance.now() < end;) {
      const headers = 'Host: t\r\nAuthorization: a\r\nConnection: close\r\n';
      expect((await exchange(port, `GET /x HTTP/1.1\r\n${headers}\r\n`)).status).toBe(200);
    }
  });

  test('a request that is not idempotent is sent once, and one that is goes to another instance', async () => {
    const received: string[] = [];
    const servers = await Promise.all([1, 2].map(() => startDropper(received)));
    const addresses = servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const post = await exchange(
      await start(name, addresses, DROPPED),
      'POST /x HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab',
    );
    expect([502, 503, 504]).toContain(post.status);
    expect(JSON.parse(post.body)).toMatchObject({ error_code: { value: 999998 } });
    expect(received).toEqual(['POST']);
    received.length = 0;
    // Started anew, with both of them untried.
    const get = await exchange(
      await start(name, addresses, DROPPED),
      'GET /x HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n',
      20_000,
    );
    expect([502, 503, 504]).toContain(get.status);
    expect(received.filter((method) => method === 'GET').length).toBeGreaterThan(1);
  });
});

/** Takes requests, and drops the connection instead of an answer. */
async function startDropper(received: string[]): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (data: Buffer) => {
      // The check of Caddy: the instance is there.
      if (data.includes('GET /./')) socket.write('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n');
      else received.push(/^[A-Z]+/.exec(data.toString('latin1'))?.[0] ?? '');
      socket.destroySoon();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp.push(() => once(server.close(), 'close'));
  return server;
}
