/** Advisories about clients of other services: what is passed on, and what an answer may do. */

import { generateKeyPairSync, sign } from 'node:crypto';
import { connect, type AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import type { ServiceError } from 'postern';
import { clientOf } from '../support/clients.js';
import { startMesh } from '../support/mesh.js';
import { startPeer, startRawPeer } from '../support/peer.js';
import { rawRequest } from '../support/raw.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const HOP_BY_HOP = [
  'Connection: keep-alive, X-Hop', 'X-Hop: 1', 'Keep-Alive: timeout=5', 'TE: trailers', 'Trailer: x-t', 'Upgrade: h2c',
  'Proxy-Authorization: Basic x',
  'Proxy-Connection: keep-alive',
];
const CREDENTIALS = [
  'Authorization: Bearer secret', 'Cookie: session=secret', 'X-Api-Key: secret', 'X-Forwarded-For: 6.6.6.6',
  'Forwarded: for=6.6.6.6',
  'X-Forwarded-Host: evil.test', 'Origin: http://evil.test', 'Referer: http://evil.test', 'Accept-Language: de',
  'Content-Type: text/plain',
];

test('neither a call nor a ping passes on what belongs to the caller or to its connection (CVE-2026-48931)', async () => {
  const peer = await startPeer((_req, res) =>
    res.setHeader('content-type', 'application/json').end('{"response":"pong","process_time":"0 ms"}'),
  );
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  app.post('/call', async (ctx) => { await ctx.service('peer').post('/', { json: await ctx.text() }); });
  const { port } = await serve(app);
  const fields = [...HOP_BY_HOP, ...CREDENTIALS].map((field) => `${field}\r\n`).join('');
  for (const [index, line] of ['POST /call', 'GET /users/ping/?depth=1'].entries()) {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(
        `${line} HTTP/1.1\r\nHost: inbound.test\r\n${fields}Content-Length: 2\r\nX-Request-Id: mine\r\n\r\nhi`,
      ),
    );
    await expect.poll(() => peer.requests.length).toBe(index + 1);
    socket.destroy();
  }
  const [call, ping] = peer.requests.map(({ rawHeaders }) =>
    rawHeaders
      .filter((_, i) => i % 2 === 0)
      .map((name) => name.toLowerCase())
      .sort(),
  );
  expect(call).toEqual([
    'accept', 'connection', 'content-length', 'content-type', 'host', 'user-agent', 'x-envoy-expected-rq-timeout-ms',
    'x-request-id',
  ]);
  expect(ping).toEqual(['accept', 'connection', 'host']);
  for (const { headers } of peer.requests) {
    expect(headers.host).toBe(new URL(peer.url).host);
    expect(headers.connection).toBe('keep-alive');
    expect(JSON.stringify(headers)).not.toMatch(/secret|6\.6\.6\.6|evil|inbound/);
  }
});

test('of the headers of a failed answer none reaches the client but Retry-After (CVE-2026-48931)', async () => {
  const peer = await startPeer((_req, res) => {
    res
      .setHeader('set-cookie', 'session=stolen')
      .setHeader('www-authenticate', 'Basic')
      .setHeader('access-control-allow-origin', '*')
      .setHeader('x-hop', '1');
    res.writeHead(503, {
      'retry-after': '7',
      location: 'http://evil.test',
      connection: 'close, x-hop',
      'content-type': 'text/html',
      'x-request-id': 'theirs',
    });
    res.end('<script>');
  });
  const app = expectFailures(createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } }), 503)
    .get('/', async (ctx) => (await ctx.service('peer').get('/')).body);
  const { url } = await serve(app);
  const response = await fetch(url, { headers: { 'x-request-id': 'mine' } });
  expect(
    Object.fromEntries(
      [
        ...response.headers,
      ].filter(([name]) => !['date', 'connection', 'keep-alive', 'content-length'].includes(name)),
    ),
  ).toEqual({ 'content-type': 'application/json', 'retry-after': '7', vary: 'accept', 'x-request-id': 'mine' });
  expect(await response.json()).toEqual({
    message: 'Service Unavailable',
    description: 'peer answered 503',
    error_code: { name: 'framework_error_unspecified', value: 999998 },
  });
});

const LIMIT = 10 * 1024 * 1024;
test.for([
  { what: 'as announced', size: LIMIT, chunked: false, taken: true },
  { what: 'in chunks', size: LIMIT, chunked: true, taken: true },
  { what: 'and a byte, as announced', size: LIMIT + 1, chunked: false, taken: false },
  { what: 'and a byte, in chunks', size: LIMIT + 1, chunked: true, taken: false },
])('an answer of 10 MiB $what: taken $taken (CVE-2026-48931)', async ({ size, chunked, taken }) => {
  const peer = await startPeer((_req, res) => {
    res.setHeader('content-type', 'text/plain');
    if (!chunked) res.setHeader('content-length', size);
    res.write(Buffer.alloc(size, 'x'));
    res.end();
  });
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  const answer: unknown = await app
    .service('peer')
    .get('/')
    .then(
      ({ body }) => String(body).length,
      (error: ServiceError) => [error.statusCode, error.description],
    );
  expect(answer).toEqual(taken ? LIMIT : [502, 'peer answered with more than 10485760 bytes']);
});

test('neither a call nor a ping follows a redirect, and a call can be led to no other host (CVE-2026-48931)', async () => {
  const elsewhere = await startPeer((_req, res) => res.end('elsewhere'));
  const peer = await startPeer((_req, res) => res.writeHead(307, { location: `${elsewhere.url}/` }).end());
  // A path that leads off the service is a mistake of the handler: 500.
  const app = expectFailures(createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } }), 500)
    .get('/call/*path', (ctx) => ctx.service('peer').get(`/${ctx.params.path}`).then(({ status }) => ({ status })));
  const { port } = await serve(app);
  const host = new URL(elsewhere.url).host;
  expect((await rawRequest(port, 'GET /call/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).body)
    .toBe('{"status":307}');
  for (const path of [
    `%2f${host}/`,
    `%5c${host}`,
    `..%2f..%2fadmin`,
    `%2e%2e/admin`,
    `x%0d%0aHost: ${host}`,
    `x%23`,
    `@${host}/`,
    `http:%2f%2f${host}/`,
  ]) {
    await rawRequest(port, `GET /call/${path.replaceAll(' ', '%20')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  }
  await rawRequest(port, 'GET /users/ping/?depth=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(elsewhere.requests).toHaveLength(0);
  expect(peer.requests.map(({ url }) => url)).toEqual(['/x', `/@${host}/`, `/http://${host}/`, '/peer/ping/?depth=0']);
});

test('a connection over which data came unasked serves no second call (CVE-2026-48931)', async () => {
  const answer = (text: string): string => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
  const peer = await startRawPeer((_chunk, socket) => answer(`connection ${peer.sockets.indexOf(socket)}`));
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } })
    .get('/', async (ctx) => (await ctx.service('peer').get('/')).body);
  const ask = async (): Promise<string> => (await app.request('/')).text();
  expect([await ask(), await ask()]).toEqual(['connection 0', 'connection 0']);
  for (const index of [0, 1]) {
    const idle = peer.sockets[index];
    idle?.write(answer('poison'));
    await expect.poll(() => idle?.closed).toBe(true);
    expect([await ask(), await ask()]).toEqual([`connection ${index + 1}`, `connection ${index + 1}`]);
  }
});

test('a poisoned ping is one entry, and the next ping is right (CVE-2026-48931)', async () => {
  const document = '{"response":"pong","process_time":"0 ms"}';
  const head = (length: number): string =>
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  const peer = await startRawPeer(() => `${head(document.length)}${document}${head(1)}7`);
  const { a } = await startMesh({ a: [`b=${peer.url}`] });
  for (let i = 0; i < 3; i += 1) {
    const ping = await (await fetch(`${a.url}/a/ping/?depth=1`)).json();
    expect(ping).toMatchObject({ response: { b: { status_code: 200, response: { response: 'pong' } } } });
  }
  expect(peer.sockets).toHaveLength(3);
});

const der = (tag: number, ...parts: (Buffer | string)[]): Buffer => {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
};
/** A certificate that nobody but itself vouches for. */
function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const ed25519 = der(0x30, der(0x06, Buffer.from('2b6570', 'hex')));
  const name = der(0x30, der(0x31, der(0x30, der(0x06, Buffer.from('550403', 'hex')), der(0x0c, 'localhost'))));
  const validity = der(0x30, der(0x17, '200101000000Z'), der(0x17, '491231235959Z'));
  const body = der(
    0x30,
    der(0xa0, der(0x02, '\x02')),
    der(0x02, '\x01'),
    ed25519,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const certificate = der(0x30, body, ed25519, der(0x03, '\0', sign(null, body, privateKey)));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64')}\n-----END CERTIFICATE-----`,
  };
}

test('a call over https goes to no service whose certificate nobody vouches for (CVE-2026-21637)', async () => {
  let reached = 0;
  const server = createTlsServer(selfSigned(), (socket) =>
    socket
      .on('error', () => undefined)
      .on('data', () => {
        reached += 1;
        socket.end('HTTP/1.1 204 x\r\n\r\n');
      }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const logger = createRecorder();
  const app = createApp({ logger, settings: { SERVICE_CONNECTIONS: [`peer=https://localhost:${port}`] } });
  const error: unknown = await app
    .service('peer')
    .get('/', { headers: { authorization: 'secret' } })
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    statusCode: 503,
    description: 'peer is unreachable',
    cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
  });
  expect(await (await app.request('/users/ping/?depth=1')).json())
    .toMatchObject({ response: { peer: { status_code: 503 } } });
  expect(reached).toBe(0);
});

test.for(['a\x01b', 'a\x7fb', 'a\x00'])('a reason phrase of %j reaches nobody, and its answer is read', async (phrase) => {
  const peer = await startRawPeer(() => `HTTP/1.1 200 ${phrase}\r\nContent-Length: 2\r\n\r\nhi`);
  const response = await clientOf(peer).fetch('/');
  expect([response.status, response.statusText, await response.text()]).toEqual([200, '', 'hi']);
});
