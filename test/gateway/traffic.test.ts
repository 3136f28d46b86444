/**
 * What goes through real gateways besides a path: bodies, streams, upgrades, clients that leave, services that are
 * gone.
 *
 * @module-tag gateways
 * @module-tag slow
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { Agent, get, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { toCaddy, toHAProxy, toNginx } from '../../src/gateway.js';
import { startGateway, type GatewayName, type RunningGateway } from '../support/gateway-process.js';
import {
  exchange, parseReply, routerOf, startService, type RunningService, type WireReply,
} from '../support/gateway-services.js';
import { freePorts } from '../support/ports.js';

const EXPORTERS = { nginx: toNginx, haproxy: toHAProxy, caddy: toCaddy } as const;
const GATEWAYS: readonly GatewayName[] = ['nginx', 'haproxy', 'caddy'];
const HEAD = 'HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n';
const MiB = 1 << 20;

/** The uniform body of a refusal. */
function errorOf(reply: WireReply): unknown {
  expect(reply.headers['content-type']).toMatch(/^application\/json/);
  return JSON.parse(reply.body);
}

/** Sends a body of so many bytes as fast as it is taken; gives the reply and what was sent by then. */
function upload(port: number, target: string, bytes: number): Promise<{ reply: WireReply; sent: number }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const chunk = Buffer.alloc(256 * 1024, 'x');
    let [sent, received] = [0, ''];
    const done = (): void => resolve({ reply: parseReply(received), sent });
    socket.setTimeout(60_000, () => socket.destroy(new Error('the upload stalled')));
    socket.on('data', (data: Buffer) => {
      received += data.toString('latin1');
      const { headers, body } = parseReply(received);
      // A gateway may go on waiting for the rest of the upload.
      if (received.includes('\r\n\r\n') && body.length === Number(headers['content-length'])) socket.destroy();
    });
    socket.on('close', () => (received === '' ? undefined : done()));
    socket.on('error', (error) => (received === '' ? reject(error) : done()));
    // Kept alive, as uploads are: behind Connection: close, Caddy resets what it has not read, and the reply with it.
    socket.write(`POST ${target} HTTP/1.1\r\nHost: t.example\r\nContent-Length: ${bytes}\r\n\r\n`);
    const pump = (): void => {
      while (sent < bytes && received === '' && socket.writable) {
        sent += chunk.length;
        if (!socket.write(chunk)) {
          socket.once('drain', pump);
          return;
        }
      }
    };
    pump();
  });
}

/** The bytes of all files below a directory. */
function sizeOf(dir: string): number {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .reduce((sum, file) => sum + (statSync(join(dir, file), { throwIfNoEntry: false })?.size ?? 0), 0);
}

describe.each(GATEWAYS)('%s', (name) => {
  const closed = ['GET /private', 'PUT /extra/stream'];
  let services: RunningService[] = [];
  let gateway: RunningGateway;
  let [port, deadPort] = [0, 0];

  beforeAll(async () => {
    [port = 0, deadPort = 0] = await freePorts(2);
    const tables = [
      { name: 'plain', open: ['GET /hello/:name', 'POST /hello/:name', 'HEAD /only'], closed },
      { name: 'below', open: ['GET /hello/:name'], closed },
    ];
    services = await Promise.all(tables.map((table) => startService(table, true)));
    const [plain, below] = services as [RunningService, RunningService];
    const text = EXPORTERS[name](
      [
        { router: routerOf(plain.routes), service: 'plain', upstream: plain.url },
        { router: routerOf(below.routes), service: 'below', upstream: below.url, prefix: '/v1/below' },
        { router: routerOf([{ method: 'GET', path: '/dead', pattern: '^/dead$', public: true, params: null }]),
          service: 'dead', upstream: `http://127.0.0.1:${deadPort}` },
      ],
      { listen: `127.0.0.1:${port}` },
    );
    gateway = await startGateway(name, text, [port]);
  });
  afterAll(async () => {
    await gateway?.stop();
    await Promise.all(services.map((service) => service.stop()));
  });

  const ask = (method: string, target: string, headers = '', body = ''): Promise<WireReply> =>
    exchange(port, `${method} ${target} ${HEAD}${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  const seen = async (
    method: string,
    target: string,
    headers = '',
  ): Promise<{ target: string; headers: Record<string, string> }> =>
    JSON.parse((await ask(method, target, headers)).body) as { target: string; headers: Record<string, string> };

  test('the target goes on as it was sent, without its prefix', async () => {
    for (const rest of [
      '/hello/J%C3%BCrgen%20M',
      '/hello/a%40b?q=%2F&r=/../x',
      '/hello/a@b;c=1?',
      '/hello/50%25?x=%',
    ]) {
      expect((await seen('GET', rest)).target).toBe(rest);
      expect((await seen('GET', `/v1/below${rest}`)).target).toBe(rest);
    }
  });

  test('what it refuses has the uniform body, an id and, where it applies, Allow', async () => {
    const missing = await ask('GET', '/private', 'X-Request-Id: my-id\r\n');
    expect([missing.status, missing.headers['x-request-id'], missing.headers['allow']])
      .toEqual([404, 'my-id', undefined]);
    expect(errorOf(missing)).toEqual({
      message: 'Not Found',
      description: expect.any(String) as string,
      error_code: { name: 'framework_error_unspecified', value: 999998 },
    });
    const wrong = await ask('PUT', '/hello/x');
    expect([wrong.status, wrong.headers['allow']]).toEqual([405, 'GET, HEAD, POST, OPTIONS']);
    expect(errorOf(wrong)).toMatchObject({ message: 'Method Not Allowed' });
    const inside = await ask('PUT', '/v1/below/hello/x');
    expect([inside.status, inside.headers['allow']]).toEqual([405, 'GET, HEAD, OPTIONS']);
    for (const target of ['/v1/below', '/v1/below/private', '/v1/belowhello/x', '/v1'])
      expect((await ask('GET', target)).status, target).toBe(404);
  });

  test('a service that is gone is 502 or 503 in the uniform body, which names no address', async () => {
    const reply = await ask('GET', '/dead');
    expect([502, 503]).toContain(reply.status);
    expect(errorOf(reply)).toMatchObject({ error_code: { value: 999998 } });
    expect(reply.body).not.toMatch(/\d+\.\d+\.\d+|dead/);
    expect(reply.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  });

  test("the service's own errors pass as they are", async () => {
    const reply = await ask('POST', '/hello/x', 'Content-Type: text/plain\r\n', 'x');
    expect(reply.status).toBe(200);
    const refused = await ask(
      'POST',
      '/extra/limited',
      'Content-Type: text/plain\r\nX-Request-Id: abc\r\n',
      'x'.repeat(2 * MiB),
    );
    expect([refused.status, refused.headers['x-request-id']]).toEqual([413, 'abc']);
    expect(errorOf(refused)).toMatchObject({ message: 'Payload Too Large' });
  });

  test('an answer without an id stays without one', async () => {
    for (const id of ['', 'X-Request-Id: abc\r\n']) {
      const { status, headers } = await ask('GET', '/hello/x', id);
      expect([status, headers['x-request-id']]).toEqual([200, undefined]);
    }
  });

  test('who the client is, the gateway says; what it says of itself is not taken', async () => {
    const forged =
      'X-Forwarded-For: 10.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\nForwarded: for=10.9.9.9\r\n';
    const { headers } = await seen('GET', '/hello/x', forged);
    expect(headers).toMatchObject({
      host: 't.example',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 't.example',
    });
    expect(headers).not.toHaveProperty('forwarded');
  });

  test('the request id is made by the gateway, or the client\'s if that is valid', async () => {
    expect((await seen('GET', '/hello/x', 'X-Request-Id: a.B_c-1\r\n')).headers['x-request-id']).toBe('a.B_c-1');
    for (const id of ['a b', 'x'.repeat(129), 'a,b', 'ü', '']) {
      const made = (await seen('GET', '/hello/x', `X-Request-Id: ${id}\r\n`)).headers['x-request-id'];
      expect(made, id).toMatch(/^[A-Za-z0-9._-]{16,128}$/);
      expect(made).not.toBe(id);
    }
    const ids = await Promise.all([1, 2, 3].map(async () => (await seen('GET', '/hello/x')).headers['x-request-id']));
    expect(new Set(ids).size).toBe(3);
    expect((await seen('GET', '/hello/x', 'X-Request-Id: abc\r\nConnection: X-Request-Id\r\n')).headers['x-request-id'])
      .toMatch(/^[A-Za-z0-9._-]+$/);
  });

  test('hop-by-hop headers end here, both ways', async () => {
    const { headers } = await seen(
      'GET',
      '/hello/x',
      'Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nUpgrade: h2c\r\n',
    );
    for (const hop of ['keep-alive', 'proxy-connection', 'te', 'upgrade']) expect(headers, hop).not.toHaveProperty(hop);
    const reply = await exchange(
      port,
      'GET /hello/x HTTP/1.1\r\nHost: t\r\n\r\nGET /hello/x HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n',
    );
    expect(reply.headers['keep-alive'] ?? '').not.toMatch(/timeout=20/);
  });

  test('a Connection header that names the scope or the id removes neither', async () => {
    for (const named of ['x-postern-scope', 'X-Request-Id, X-Postern-Scope']) {
      const { headers } = await seen(
        'GET',
        '/hello/x',
        `X-Request-Id: abc\r\nX-Postern-Scope: private\r\nConnection: ${named}\r\n`,
      );
      expect(headers, named).toMatchObject({
        'x-postern-scope': 'public',
        'x-request-id': expect.stringMatching(/./) as string,
      });
      expect((await ask('GET', '/private', `Connection: ${named}\r\n`)).status).toBe(404);
    }
  });

  test('a header of the client reaches the service, whatever characters its name has', async () => {
    const names = ['x_tenant', '_', 'x.tenant', "x!#$%&'*+^`|~"];
    const { headers } = await seen('GET', '/hello/x', names.map((each) => `${each}: 7\r\n`).join(''));
    expect(headers).toMatchObject(Object.fromEntries(names.map((each) => [each, '7'])));
    const alike = 'X_Postern_Scope: private\r\nX.Postern.Scope: private\r\nX_Forwarded_For: 10.9.9.9\r\n';
    expect((await seen('GET', '/hello/x', alike)).headers)
      .toMatchObject({ 'x-postern-scope': 'public', 'x-forwarded-for': '127.0.0.1' });
    expect((await ask('GET', '/private', alike)).status).toBe(404);
    for (const malformed of ['x(y', 'x y', 'x"', 'xü']) {
      const reply = await ask('GET', '/hello/x', `${malformed}: 7\r\n`);
      expect(reply.status, malformed).toBe(400);
      if (name === 'nginx') expect(errorOf(reply)).toMatchObject({ message: 'Bad Request' });
    }
  });

  test('connections to the service are kept', async () => {
    const before = await count();
    for (let i = 0; i < 20; i += 1) expect((await ask('GET', '/hello/x')).status).toBe(200);
    expect((await count()) - before).toBeLessThan(6);
  });
  const count = async (): Promise<number> => Number((await ask('GET', '/extra/connections')).body);

  const release = async (): Promise<void> => expect((await ask('GET', '/extra/release')).status).toBe(204);

  test('the first part of a stream arrives before its last', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/extra/stream`);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const first = Buffer.from((await reader.read()).value ?? '').toString();
    await release();
    let rest = '';
    for (let part = await reader.read(); !part.done; part = await reader.read())
      rest += Buffer.from(part.value).toString();
    expect([first, rest]).toEqual(['first\n', 'last\n']);
  });

  test('so does that of a reply whose length is known', async () => {
    const socket = connect(port, '127.0.0.1');
    const closing = once(socket, 'close');
    socket.write(`GET /extra/parts ${HEAD}\r\n`);
    let received = '';
    socket.on('data', (data: Buffer) => (received += data.toString()));
    await expect.poll(() => received).toMatch(/\r\n\r\nfirst$/);
    await release();
    await closing;
    expect(received).toMatch(/firstlast!$/);
  });

  test('a slow reply and a large one arrive whole', async () => {
    expect((await ask('GET', '/extra/slow')).body).toBe('slow');
    const response = await fetch(`http://127.0.0.1:${port}/extra/large`);
    let bytes = 0;
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) bytes += chunk.length;
    expect(bytes).toBe(16 * MiB);
  });

  test('an upload of 200 MB arrives whole and is on no disk on the way', { timeout: 90_000 }, async () => {
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, sizeOf(gateway.dir))), 50);
    const { reply } = await upload(port, '/extra/upload', 200 * MiB);
    clearInterval(timer);
    expect([reply.status, reply.body]).toEqual([200, `{"bytes":${200 * MiB}}`]);
    expect(Math.max(most, sizeOf(gateway.dir))).toBeLessThan(MiB);
  });

  test("an upload that is too large for the service gets the service's 413", { timeout: 90_000 }, async () => {
    const { reply, sent } = await upload(port, '/extra/limited', 200 * MiB);
    expect(reply.status).toBe(413);
    expect(errorOf(reply)).toMatchObject({ message: 'Payload Too Large' });
    expect(sent).toBeLessThan(200 * MiB);
  });

  test('HTTP/1.0, HEAD and OPTIONS', async () => {
    const old = await exchange(port, 'GET /hello/x HTTP/1.0\r\n\r\n');
    expect([old.status, old.headers['x-reached']]).toEqual([200, encodeURIComponent('GET /hello/:name')]);
    expect((await exchange(port, 'GET /private HTTP/1.0\r\nHost: t\r\n\r\n')).status).toBe(404);
    const head = await ask('HEAD', '/hello/x');
    expect([head.status, head.body, Number(head.headers['content-length'])]).toEqual([200, '', expect.any(Number)]);
    const refused = await ask('HEAD', '/private');
    expect([refused.status, refused.body]).toEqual([404, '']);
    expect((await ask('OPTIONS', '/hello/x')).status).toBe(204);
  });

  test('Expect: 100-continue is answered before the body is sent', async () => {
    const client = httpRequest({
      port,
      host: '127.0.0.1',
      path: '/extra/upload',
      method: 'POST',
      headers: { expect: '100-continue', 'content-length': 4, 'content-type': 'text/plain' },
    });
    const response = once(client, 'response') as Promise<[{ statusCode: number; resume(): void }]>;
    client.flushHeaders();
    await once(client, 'continue');
    client.end('body');
    const [{ statusCode }] = await response;
    expect(statusCode).toBe(200);
    client.destroy();
  });

  test('a client that leaves is noticed by the service', async () => {
    const left = async (): Promise<number> => Number((await ask('GET', '/extra/left')).body);
    const before = await left();
    const client = get({ port, host: '127.0.0.1', path: '/extra/hang', agent: new Agent() });
    client.on('error', () => undefined);
    await expect.poll(async () => Number((await ask('GET', '/extra/hanging')).body))
      .toBeGreaterThan(0);
    client.destroy();
    await expect.poll(left).toBe(before + 1);
  });

  test('a WebSocket is what the service makes of it, below a prefix, too', async () => {
    for (const target of ['/hello/ws?x=1', '/v1/below/hello/ws?x=1']) {
      const socket = connect(port, '127.0.0.1');
      let received = '';
      socket.on('data', (data: Buffer) => (received += data.toString('latin1')));
      socket.write(
        `GET ${target} HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      );
      await expect.poll(() => received)
        .toMatch(/^HTTP\/1\.1 101 [^]*x-target: \/hello\/ws\?x=1\r\n/i);
      socket.write('ping');
      await expect.poll(() => received).toMatch(/ping$/);
      socket.destroy();
    }
    const refused = await exchange(
      port,
      'GET /private HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nGET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n',
    );
    expect(refused.status).toBe(404);
  });

  test('a request that is malformed is refused before any service', async () => {
    const reply = await exchange(
      port,
      'GET /hello/x HTTP/1.1\r\nHost: t\r\nContent-Length: 1x\r\nConnection: close\r\n\r\n',
    );
    expect(reply.status).toBe(400);
    // HAProxy and Caddy have a text of their own for it, which they can't be told.
    if (name === 'nginx') expect(errorOf(reply)).toMatchObject({ message: 'Bad Request' });
  });
});
