/**
 * A real application behind every gateway: what is public is served, and its monitoring endpoints can't be reached.
 *
 * @module-tag gateways
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Postern, publicFacing } from 'postern';
import { toCaddy, toHAProxy, toNginx } from '../../src/gateway.js';
import { startGateway, type RunningGateway } from '../support/gateway-process.js';
import { rawRequest } from '../support/raw.js';
import { freePorts } from '../support/ports.js';

function createApp(catchAll: boolean): Postern {
  const app = new Postern('users', { version: '1.4.2', logger: false });
  app.get(
    '/hello/:name',
    publicFacing(
      (ctx) => ({
        hello: ctx.params.name,
        query: ctx.query.get('q'),
        host: ctx.headers.host,
        for: ctx.headers['x-forwarded-for'],
      }),
      { params: ['q'] },
    ),
  );
  app.post('/hello/:name', publicFacing(async (ctx) => ({ got: await ctx.json() })));
  app.put('/hello/:name', () => 'private');
  if (catchAll) {
    app.get('/*rest', publicFacing((ctx) => ({ rest: ctx.params.rest })));
    app.get('/:service/:what/', publicFacing((ctx) => ({ what: ctx.params.what })));
  }
  return app;
}

const ENDPOINTS = ['/users/health/', '/users/metrics/', '/users/ping/'];
const SPELLINGS = ENDPOINTS.flatMap((path) => [
  path, `${path}?json`, `${path}?depth=1`, path.replace('e', '%65'), path.replace('/users', '//users'),
  path.replace('users', './users'), `/x/..${path}`, path.replace('s/', 's//'), path.replace('in', '%69n'),
  `http://t${path}`, path.replace('u', '%75'), `${path}#`, path.replace('s/', 's%2f'), path.replace(/\/$/, '%2F'),
]);

async function request(
  port: number,
  method: string,
  target: string,
  body = '',
): Promise<{ status: number; body: string }> {
  const type = body === '' ? '' : 'Content-Type: application/json\r\n';
  const reply = await rawRequest(
    port,
    `${method} ${target} HTTP/1.1\r\nHost: t.example\r\nX-Forwarded-For: 10.9.9.9\r\n${type}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return { status: reply.status, body: Buffer.from(reply.body, 'latin1').toString() };
}

describe.each([
  { name: 'nginx', exporter: toNginx },
  { name: 'haproxy', exporter: toHAProxy },
  { name: 'caddy', exporter: toCaddy },
] as const)('$name', ({ name, exporter }) => {
  const apps = [createApp(false), createApp(true)];
  const gateways: RunningGateway[] = [];
  let ports: number[] = [];

  beforeAll(async () => {
    ports = await freePorts(apps.length);
    for (const [i, app] of apps.entries()) {
      const { url } = await app.listen({ host: '127.0.0.1', port: 0 });
      const port = ports[i] ?? 0;
      gateways.push(
        await startGateway(
          name,
          exporter(app.router, { service: 'users', upstream: url, listen: `127.0.0.1:${port}` }),
          [port],
        ),
      );
    }
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    for (const app of apps) await app.close({ timeout: 1000 });
  });

  test('passes on a request with its host, its path and its client', async () => {
    const { status, body } = await request(ports[0] ?? 0, 'GET', '/hello/J%C3%BCrgen%20M?q=1%202');
    expect(status).toBe(200);
    const json = JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1)) as { for: string };
    expect(json).toMatchObject({ hello: 'Jürgen M', query: '1 2', host: 't.example' });
    expect(json.for).toMatch(/127\.0\.0\.1$/);
  });

  test('passes on a body, and leaves query parameters to the service', async () => {
    const { status, body } = await request(ports[0] ?? 0, 'POST', '/hello/x', '{"a":1}');
    expect(status).toBe(200);
    expect(body).toContain('{"got":{"a":1}}');
    expect((await request(ports[0] ?? 0, 'GET', '/hello/x?other=1')).status).toBe(400);
    expect((await request(ports[0] ?? 0, 'PUT', '/hello/x')).status).toBe(405);
  });

  test('does not reach the monitoring endpoints, not even inside of a public wildcard', async () => {
    for (const port of ports) {
      for (const method of ['GET', 'HEAD', 'OPTIONS']) {
        for (const target of SPELLINGS) {
          const { status, body } = await request(port, method, target);
          if (port === ports[0]) expect(status, `${method} ${target}`).toBeGreaterThanOrEqual(400);
          expect(body).not.toMatch(/application_version|proc_|pong/);
        }
      }
    }
  });
});
