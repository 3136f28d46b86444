/**
 * The recipes of the README do what they say: each block runs as printed, and is asked over real sockets.
 *
 * @module-tag package
 * @module-tag slow
 */

import { once } from 'node:events';
import { createConnection } from 'node:net';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import { publicFacing, Router } from 'postern';
import { toNginx } from 'postern/gateway';
import { startFakePostgres } from './support/fake-postgres.js';
import { startGateway } from './support/gateway-process.js';
import { HEADINGS, recipe, startRecipe } from './support/recipe.js';
import { createApp, serve } from './support/serve.js';
import { freePort } from './support/ports.js';

/** What the tests use of a client of `ws`, which has no types of its own. */
interface Socket extends NodeJS.EventEmitter { send(text: string): void; close(): void }
const { WebSocket: Client } = createRequire(import.meta.url)('ws') as {
  WebSocket: new (url: string, options: { origin: string }) => Socket;
};

test('each recipe is tested here', () => {
  expect(HEADINGS).toEqual([
    'CORS and compression', 'Bearer tokens', 'Cookies', 'Rate limits', 'At the gateway',
    'Server-sent events and WebSockets', 'Multipart', 'ETag', 'A database', 'Background work',
  ]);
  for (const heading of HEADINGS) expect(recipe(heading)).not.toBe('');
});

test('CORS and compression: a browser of that origin alone may read replies, errors too, and long ones are compressed', async () => {
  const { url, stop } = await startRecipe('CORS and compression', {
    more: "app.get('/text', () => 'text '.repeat(1000));",
  });
  const origin = 'https://shop.example';
  for (const [path, status] of [['/text', 200], ['/nowhere', 404]] as const) {
    const response = await fetch(url + path, { headers: { origin } });
    expect([
      response.status,
      response.headers.get('access-control-allow-origin'),
      response.headers.get('access-control-allow-credentials'),
    ]).toEqual([status, origin, 'true']);
    if (status === 200)
      expect([response.headers.get('content-encoding'), (await response.text()).length]).toEqual(['gzip', 5000]);
    else await response.text();
  }
  const preflight = await fetch(`${url}/text`, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'PUT' },
  });
  expect([preflight.status, preflight.headers.get('access-control-allow-methods')])
    .toEqual([204, expect.stringContaining('PUT')]);
  expect(
    (await fetch(`${url}/text`, { headers: { origin: 'https://evil.example' } })).headers.get(
      'access-control-allow-origin',
    ),
  ).not.toBe('https://evil.example');
  expect(await stop()).toBe(0);
});

test('Bearer tokens: 200 with a token, 401 without one and for each kind of wrong one, 500 without keys', async () => {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const stranger = await generateKeyPair('ES256');
  const issuer = createApp();
  const { url: issuerUrl } = await serve(issuer);
  const jwk = { ...await exportJWK(publicKey), kid: '1', alg: 'ES256' };
  const other = { ...await exportJWK(stranger.publicKey), kid: '3', alg: 'ES256' };
  issuer.get('/keys', () => ({ keys: [jwk, other] })).get('/broken', () => 'no keys');
  const sign = ({
    key = privateKey,
    header = { kid: '1' },
    audience = 'shop',
    from = 'https://id.example',
    until = '1h',
    without,
  }: {
    key?: typeof privateKey;
    header?: { kid?: string };
    audience?: string;
    from?: string;
    until?: string;
    without?: 'sub' | 'exp';
  } = {}): Promise<string> => {
    const token = new SignJWT(without === 'sub' ? {} : { sub: 'ada' }).setProtectedHeader({ alg: 'ES256', ...header })
      .setIssuer(from).setAudience(audience).setIssuedAt();
    return (without === 'exp' ? token : token.setExpirationTime(until)).sign(key);
  };
  const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"ada","iss":"https://id.example","aud":"shop"}').toString('base64url')}.`;
  const hmac = await new SignJWT().setProtectedHeader({ alg: 'HS256', kid: '1' }).setSubject('ada')
    .setIssuer('https://id.example').setAudience('shop').setExpirationTime('1h').sign(Buffer.from(JSON.stringify(jwk)));
  const crit = `${Buffer.from('{"alg":"ES256","kid":"1","crit":["x"],"x":1}').toString('base64url')}.e30.x`;
  const wrong = [
    '', 'x', none, hmac, await sign({ key: stranger.privateKey }), await sign({ header: { kid: '2' } }),
    await sign({ header: {} }), crit, await sign({ audience: 'mail' }), await sign({ from: 'https://evil.example' }),
    await sign({ until: '-1h' }), await sign({ without: 'sub' }), await sign({ without: 'exp' }),
  ];

  const { url, stop } = await startRecipe('Bearer tokens', { env: { JWKS_URL: `${issuerUrl}/keys` } });
  const ask = (authorization?: string): Promise<Response> =>
    fetch(`${url}/me`, { headers: authorization === undefined ? {} : { authorization } });
  const known = await ask(`Bearer ${await sign()}`);
  expect([known.status, await known.json()]).toEqual([200, { user: 'ada' }]);
  for (const header of [undefined, 'Basic eDp5', ...wrong.map((token) => `Bearer ${token}`)]) {
    const refused = await ask(header);
    expect([refused.status, refused.headers.get('www-authenticate')], header).toEqual([401, 'Bearer']);
    await refused.text();
  }
  expect(await stop()).toBe(0);

  for (const keys of ['http://127.0.0.1:1/keys', `${issuerUrl}/broken`, `${issuerUrl}/nowhere`]) {
    const keyless = await startRecipe('Bearer tokens', { env: { JWKS_URL: keys } });
    expect((await fetch(`${keyless.url}/me`, { headers: { authorization: `Bearer ${await sign()}` } })).status, keys)
      .toBe(500);
  }
});

test('Cookies: what was set is known among others, and nothing else is', async () => {
  const { url, stop } = await startRecipe('Cookies');
  const made = await fetch(`${url}/session`, { method: 'POST' });
  expect(made.status).toBe(204);
  const [cookie = '', ...attributes] = made.headers.getSetCookie()[0]?.split('; ') ?? [];
  expect(attributes.sort()).toEqual(['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure']);
  const ask = (header: string): Promise<Response> => fetch(`${url}/session`, { headers: { cookie: header } });
  for (const header of [cookie, `a=1; ${cookie}`, `${cookie}; a=1`]) {
    const response = await ask(header);
    expect([response.status, await response.json()]).toEqual([200, { user: 'ada' }]);
  }
  for (const header of ['', 'a=1', '__Host-id=x', `not-${cookie}`, cookie.toLowerCase()])
    expect((await ask(header)).status, header).toBe(401);
  expect(await stop()).toBe(0);
});

test('Rate limits: the request beyond the limit is refused, with the time to wait, and monitoring is not', async () => {
  const { url, stop } = await startRecipe('Rate limits');
  for (let i = 0; i < 100; i += 1) expect((await fetch(`${url}/search`)).status).toBe(200);
  const refused = await fetch(`${url}/search`);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
  expect((await fetch(`${url}/shop/health/`)).status).toBe(200);
  expect(await stop()).toBe(0);
});

test(
  'At the gateway: a file of the folder is served, and who asks too often is refused',
  { tags: ['gateways'] },
  async () => {
    const root = mkdtempSync(join(tmpdir(), 'postern-site-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    mkdirSync(join(root, 'assets'));
    writeFileSync(join(root, 'assets/app.js'), 'served by nginx');
    const [, http = '', site = ''] =
      /^(.*?)(# site\.conf.*)$/ms.exec(recipe('At the gateway').replace('root /srv;', `root ${root};`)) ?? [];
    writeFileSync(join(root, 'site.conf'), site);
    const { url } = await serve(createApp().get('/items', publicFacing(() => 'from the service')));
    const router = new Router();
    router.add('GET', '/items', publicFacing(() => 1));
    const port = await freePort();
    const gateway = await startGateway(
      'nginx',
      `${http}\n${toNginx(router, { service: 'shop', upstream: url, listen: `127.0.0.1:${port}`, include: join(root, 'site.conf') })}`,
      [port],
    );
    onTestFinished(() => gateway.stop());
    const ask = async (path: string): Promise<[number, string]> => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return [response.status, await response.text()];
    };
    expect(await ask('/items')).toEqual([200, 'from the service']);
    expect(await ask('/assets/app.js')).toEqual([200, 'served by nginx']);
    expect((await ask('/assets/../site.conf'))[0]).toBe(404);
    const answers = (await Promise.all(Array.from({ length: 100 }, () => ask('/items')))).map(([status]) => status);
    expect(answers.filter((status) => status === 200).length).toBeGreaterThanOrEqual(30);
    expect(answers).toContain(429);
    expect([...new Set(answers)].sort()).toEqual([200, 429]);
  },
);

const EVENTS = 'Server-sent events and WebSockets';

test('Server-sent events: every listener gets an event, one that leaves is forgotten, and a drain ends the others', async () => {
  const { url, log, stop } = await startRecipe(EVENTS, {
    more: "app.post('/placed', () => orders.emit('placed', { id: 7 }));\napp.get('/listeners', () => orders.listenerCount('placed'));",
  });
  const leaving = new AbortController();
  const readers = await Promise.all([leaving.signal, null].map(async (signal) => {
    const response = await fetch(`${url}/events`, { signal });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    return (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  }));
  await fetch(`${url}/placed`, { method: 'POST' });
  for (const reader of readers) expect((await reader.read()).value).toBe('data: {"id":7}\n\n');
  const listeners = async (): Promise<unknown> => (await fetch(`${url}/listeners`)).json();
  expect(await listeners()).toBe(2);
  leaving.abort();
  await expect.poll(listeners).toBe(1);
  const stopped = stop();
  expect(await readers[1]?.read()).toEqual({ done: true, value: undefined });
  expect(await stopped).toBe(0);
  expect(log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

test('Server-sent events: a client that does not read holds no events, and its reply ends', async () => {
  const { port, url, stop } = await startRecipe(EVENTS, {
    more: `
      app.post('/placed', () => { for (let i = 0; i < 1000; i += 1) orders.emit('placed', { text: 'x'.repeat(1000) }); });
      app.get('/listeners', () => orders.listenerCount('placed'));`,
  });
  const socket = createConnection(port, '127.0.0.1').on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  socket.pause().write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
  const listeners = async (): Promise<unknown> => (await fetch(`${url}/listeners`)).json();
  await expect.poll(listeners).toBe(1);
  for (let i = 0; i < 30 && (await listeners()) !== 0; i += 1) await fetch(`${url}/placed`, { method: 'POST' });
  expect(await listeners()).toBe(0);
  socket.destroy();
  expect(await stop()).toBe(0);
});

test('WebSockets: what is sent comes back, other origins, paths and plain requests are refused, and a drain says goodbye', async () => {
  const { url, port, stop } = await startRecipe(EVENTS);
  const connect = (path: string, origin: string): Socket => new Client(`ws://127.0.0.1:${port}${path}`, { origin });
  const socket = connect('/chat', 'https://shop.example');
  await once(socket, 'open');
  socket.send('hello');
  expect(String((await once(socket, 'message'))[0])).toBe('hello');
  for (const [path, origin, status] of [
    ['/chat', 'https://evil.example', 401],
    ['/other', 'https://shop.example', 400],
  ] as const) {
    const [error] = (await once(connect(path, origin), 'error').catch((thrown: unknown) => [thrown])) as [Error];
    expect(error.message).toContain(String(status));
  }
  expect((await fetch(`${url}/chat`)).status).toBe(426);
  const large = connect('/chat', 'https://shop.example');
  await once(large, 'open');
  large.send('x'.repeat(65_537));
  expect((await once(large, 'close'))[0]).toBe(1009);
  const closed = once(socket, 'close');
  const stopped = stop();
  expect((await closed)[0]).toBe(1001);
  expect(await stopped).toBe(0);
});

test('Multipart: a file arrives whole; no file, another type, a broken body and one too large are refused', async () => {
  const { url, stop } = await startRecipe('Multipart');
  const send = async (body: FormData | string, headers = {}): Promise<[number, { description: string }]> => {
    const response = await fetch(`${url}/avatars`, { method: 'POST', body, headers });
    return [response.status, await response.json() as { description: string }];
  };
  const formOf = (name: string, value: Blob | string): FormData => {
    const form = new FormData();
    form.set(name, value);
    return form;
  };
  expect(await send(formOf('avatar', new File([new Uint8Array(2_000_000)], 'ada.png'))))
    .toEqual([200, { name: 'ada.png', bytes: 2_000_000 }]);
  for (const form of [formOf('avatar', 'text'), formOf('other', new Blob(['x']))])
    expect(await send(form)).toMatchObject([400, { description: 'Give the file avatar.' }]);
  for (const type of ['multipart/form-data; boundary=x', 'multipart/form-data', 'text/plain'])
    expect(await send('nonsense', { 'content-type': type })).toMatchObject([
      400,
      { description: 'Give multipart/form-data of at most 20 parts.' },
    ]);
  expect((await send(formOf('avatar', new Blob([new Uint8Array(5_000_000)]))))[0]).toBe(413);
  // 76,769 of these take some three seconds to parse.
  const part = '--x\r\nContent-Disposition: form-data; name="a"; filename=""\r\n\r\n\r\n';
  for (const type of [
    'boundary=x',
    'boundary="x"',
    'a=b; boundary=x',
    'x-boundary=y; boundary=x',
    'boundary=x; boundary=y',
  ])
    expect(
      await send(`${part.repeat(76_000)}--x--`, { 'content-type': `multipart/form-data; ${type}` }),
      type,
    ).toMatchObject([400, { description: 'Give multipart/form-data of at most 20 parts.' }]);
  expect(await send(`${part.repeat(20)}--x--`, { 'content-type': 'multipart/form-data; boundary="x"' }))
    .toMatchObject([400, { description: 'Give the file avatar.' }]);
  expect(await stop()).toBe(0);
});

test('ETag: 304 without a body for the version that is known, weak and in a list too', async () => {
  const { url, stop } = await startRecipe('ETag');
  const first = await fetch(`${url}/items/7`);
  const etag = first.headers.get('etag') ?? '';
  expect([first.status, etag, await first.json()]).toEqual([200, '"3"', { version: 3, name: 'tea' }]);
  const ask = async (header: string): Promise<unknown[]> => {
    const response = await fetch(`${url}/items/7`, { headers: { 'if-none-match': header } });
    return [response.status, response.headers.get('etag'), (await response.text()).length > 0];
  };
  for (const header of [etag, `W/${etag}`, `"2", ${etag}`])
    expect(await ask(header), header).toEqual([304, etag, false]);
  for (const header of ['"2"', '"33"', '3']) expect(await ask(header), header).toEqual([200, etag, true]);
  expect((await fetch(`${url}/items/8`)).status).toBe(404);
  expect(await stop()).toBe(0);
});

test('A database: rows are found, a drain ends the connections, and health fails while it is down', async () => {
  const database = await startFakePostgres((id) => (id === '7' ? { id, name: 'Ada' } : undefined));
  const first = await startRecipe('A database', { env: { DATABASE_URL: database.url } });
  const found = await fetch(`${first.url}/users/7`);
  expect([found.status, await found.json()]).toEqual([200, { id: '7', name: 'Ada' }]);
  expect((await fetch(`${first.url}/users/8`)).status).toBe(404);
  expect((await fetch(`${first.url}/shop/health/`)).status).toBe(200);
  const connections = database.connections.size;
  expect(connections).toBeGreaterThan(0);
  expect(await first.stop()).toBe(0);
  await expect.poll(() => database.connections.size).toBe(0);
  expect(database.terminated()).toBe(connections);

  const second = await startRecipe('A database', { env: { DATABASE_URL: database.url } });
  expect((await fetch(`${second.url}/shop/health/`)).status).toBe(200);
  database.stop();
  await expect.poll(async () => (await fetch(`${second.url}/shop/health/`)).status).toBe(503);
  expect((await fetch(`${second.url}/shop/ping/`)).status).toBe(200);
  expect(await second.stop()).toBe(0);
});

test('Background work: the reply does not wait for it, a drain does, and a failure is logged', async () => {
  const more = `
    async function sendMail({ to }) {
      if (to === 'nobody') throw new Error('no such mailbox');
      await new Promise((resolve) => process.once('SIGTERM', resolve));
      await new Promise((resolve) => setTimeout(resolve, 100));
      process.stderr.write('sent\\n');
    }`;
  const { url, log, stop } = await startRecipe('Background work', { more });
  const order = (to: string): Promise<Response> =>
    fetch(`${url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ to }),
    });
  expect((await order('nobody')).status).toBe(202);
  await expect.poll(() => log.join('\n')).toContain('no such mailbox');
  expect((await order('ada')).status).toBe(202);
  expect(log).not.toContain('sent');
  expect(await stop()).toBe(0);
  expect(log).toContain('sent');
});
