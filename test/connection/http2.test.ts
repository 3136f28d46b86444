/** HTTP/2 is not served: its requests are answered with 505, and end nothing. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import {
  connect as connectHttp2, createSecureServer, createServer as createHttp2Server, type ClientHttp2Session,
  type Http2SecureServer, type Http2Server,
} from 'node:http2';
import { request as httpsRequest, createServer as createHttpsServer } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Postern } from 'postern';
import { CERTIFICATE, KEY } from '../support/localhost-certificate.js';
import { activeTasksOf, createApp, createRecorder, expectFailures } from '../support/serve.js';

const TLS = { cert: CERTIFICATE, key: KEY };

function createWatched(): { app: Postern; seen: string[]; lines: () => string[] } {
  const seen: string[] = [];
  const logger = createRecorder();
  const app = createApp({ logger, accessLog: true });
  // Declared before the check of `createApp`, which runs after this: whether a 505 is counted is not the subject here.
  onTestFinished(() => void (app.metrics.expose().includes('status_code="505"') && expectFailures(app, 505)));
  app.use((ctx, next) => (seen.push(ctx.path), next())).get('/', () => 'served').post('/', (ctx) => ctx.text());
  return { app, seen, lines: () => logger.entries.map(({ level, message }) => `${level} ${message}`) };
}

async function listening<Listener extends Server>(server: Listener): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

interface Answer {
  readonly status: unknown;
  readonly type: unknown;
  readonly body: string;
}

function open(url: string): ClientHttp2Session {
  const session = connectHttp2(url, { rejectUnauthorized: false });
  session.on('error', () => undefined);
  onTestFinished(() => void session.destroy());
  return session;
}

function ask(session: ClientHttp2Session, method = 'GET', body = ''): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':method': method, ':path': '/' }, { endStream: body === '' });
    let [status, type]: unknown[] = [];
    let text = '';
    stream.on('response', (headers) => ([status, type] = [headers[':status'], headers['content-type']]));
    stream.on('data', (chunk) => (text += String(chunk))).on('error', reject);
    stream.on('end', () => resolve({ status, type, body: text }));
    session.once('close', () => reject(new Error('the session was closed')));
    if (body !== '') stream.end(body);
  });
}

const REFUSED = {
  status: 505,
  type: 'application/json',
  body: expect.stringMatching(/"error_code":\{"name":"framework_error_unspecified","value":999998\}/) as unknown,
};

interface Http2 {
  readonly scheme: string;
  create(app: Postern): Http2Server | Http2SecureServer;
}

const SERVERS: Readonly<Record<string, Http2>> = {
  'a secure server that allows HTTP/1':
    { scheme: 'https', create: (app) => createSecureServer({ ...TLS, allowHTTP1: true }, app.handler as never) },
  'a secure server': { scheme: 'https', create: (app) => createSecureServer(TLS, app.handler as never) },
  'a server without TLS': { scheme: 'http', create: (app) => createHttp2Server(app.handler as never) },
};

describe.for(Object.keys(SERVERS))('app.handler in %s', (name) => {
  const { scheme, create } = SERVERS[name] as (typeof SERVERS)[string];

  test('answers every request of HTTP/2 with 505, on one connection and on others', async () => {
    const { app, seen, lines } = createWatched();
    const port = await listening(create(app));
    const session = open(`${scheme}://127.0.0.1:${port}`);
    const answers = [await ask(session), await ask(session), await ask(session, 'POST', 'body')];
    expect(answers).toEqual(answers.map(() => REFUSED));
    expect(await Promise.all([1, 2, 3].map(() => ask(session)))).toEqual([REFUSED, REFUSED, REFUSED]);
    expect(session.closed).toBe(false);
    expect(await ask(open(`${scheme}://127.0.0.1:${port}`))).toEqual(REFUSED);
    expect(seen).toEqual([]);
    // Any client can send such a request: it is no error of the service.
    expect(lines().filter((line) => /^(?:error|warn)/.test(line))).toEqual([]);
  });

  test('answers HEAD with 505, without a body', async () => {
    const { app } = createWatched();
    const port = await listening(create(app));
    expect(await ask(open(`${scheme}://127.0.0.1:${port}`), 'HEAD')).toEqual({ ...REFUSED, body: '' });
  });

  test('is not harmed by a client that disconnects', async () => {
    const { app } = createWatched();
    const port = await listening(create(app));
    for (let i = 0; i < 3; i += 1) {
      const session = open(`${scheme}://127.0.0.1:${port}`);
      await once(session, 'connect');
      session.request({ ':path': '/' }).on('error', () => undefined).end();
      session.destroy();
    }
    expect(await ask(open(`${scheme}://127.0.0.1:${port}`))).toEqual(REFUSED);
    await expect.poll(() => activeTasksOf(app)).toBe(0);
  });
});

test('app.handler in a secure server serves HTTP/1 beside HTTP/2', async () => {
  const { app, seen } = createWatched();
  const port = await listening(createSecureServer({ ...TLS, allowHTTP1: true }, app.handler as never));
  const session = open(`https://127.0.0.1:${port}`);
  for (let i = 0; i < 3; i += 1) {
    expect(await ask(session)).toEqual(REFUSED);
    const outgoing = httpsRequest({ port, host: '127.0.0.1', rejectUnauthorized: false }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response) text += String(chunk);
    expect([response.statusCode, text]).toEqual([200, 'served']);
  }
  expect(seen).toEqual(['/', '/', '/']);
});

describe('attach', () => {
  test.for<[string, () => unknown]>([
    ['a secure server of node:http2', () => createSecureServer(TLS)],
    ['a secure server of node:http2 that allows HTTP/1', () => createSecureServer({ ...TLS, allowHTTP1: true })],
    ['a server of node:http2 without TLS', () => createHttp2Server()],
  ])('refuses %s, and leaves it alone', ([, create]) => {
    const server = create() as Http2Server;
    const before = server.eventNames().map((name) => server.listenerCount(name));
    expect(() => createApp().attach(server as never)).toThrow(TypeError);
    expect(() => createApp().attach(server as never)).toThrow(/node:http2/);
    expect(server.eventNames().map((name) => server.listenerCount(name))).toEqual(before);
  });

  test('takes servers of node:http and node:https', () => {
    for (const server of [createServer(), createHttpsServer(TLS)])
      expect(() => createApp().attach(server as never)).not.toThrow();
  });
});
