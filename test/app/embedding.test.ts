/** An application inside a server that someone else made. */

import { EventEmitter, once } from 'node:events';
import { Agent, createServer, get, IncomingMessage, ServerResponse } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Postern } from 'postern';
import { expect, onTestFinished, test } from 'vitest';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, createRecorder, listening, portOf, serve } from '../support/serve.js';

const listen = async (server: Server): Promise<number> => portOf(await listening(server));

/** Ways to embed an application. */
const WAYS: Record<string, (app: Postern) => Server> = {
  handler: (app) => createServer(app.handler),
  attach: (app) => {
    const server = createServer();
    app.attach(server);
    return server;
  },
};

test('app.handler serves inside a server that someone else made; attach gives its parse errors the uniform body', async () => {
  const app = createApp().get('/', () => 'embedded');
  const plain = await listen(createServer(app.handler));
  expect(await (await fetch(`http://127.0.0.1:${plain}/`)).text()).toBe('embedded');
  const attached = await listen(WAYS['attach']!(app));
  for (const head of ['nonsense', 'GET / HTTP/1.1']) {
    const [response] = parseResponses(await rawExchange(attached, `${head}\r\n\r\n`));
    expect([response?.status, JSON.parse(response?.body ?? '')])
      .toMatchObject([400, { message: 'Bad Request', error_code: { value: 999998 } }]);
  }
});

test('applications that share a server share its connections, too: each answers its own requests', async () => {
  const [a, b] = ['a', 'b'].map((name) => createApp().get('/:n', (ctx) => `${name}${ctx.params.n}`));
  const port = await listen(createServer((req, res) => (req.headers.host === 'a' ? a : b)!.handler(req, res)));
  const head = (host: string, n: number, rest = ''): string => `GET /${n} HTTP/1.1\r\nHost: ${host}\r\n${rest}\r\n`;
  const pipelined = head('a', 1) + head('b', 2) + head('b', 3) + head('a', 4, 'Connection: close\r\n');
  expect(parseResponses(await rawExchange(port, pipelined)).map(({ body }) => body)).toEqual(['a1', 'b2', 'b3', 'a4']);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const ask = (host: string): Promise<string> =>
    new Promise((resolve) => get({ port, agent, path: '/5', headers: { host } }, (res) => resolve(text(res))));
  for (const host of ['a', 'b', 'a']) expect(await ask(host)).toBe(`${host}5`);
});

test('an application may be mounted in another one', async () => {
  const inner = createApp().get('/hi', () => 'inner');
  const outer = createApp().get('/hi', () => 'outer').mount('/in', inner.handler);
  for (const path of ['/hi', '/in/hi', '/hi']) {
    const response = await outer.request(path);
    expect([path, response.status, await response.text()]).toEqual([path, 200, path === '/hi' ? 'outer' : 'inner']);
  }
  expect((await outer.request('/in/none')).status).toBe(404);
});

test('a request that an adapter or a mock has made is refused with what to use instead', () => {
  const req = new IncomingMessage(Object.assign(new PassThrough(), { remoteAddress: '127.0.0.1' }) as never);
  expect(() => createApp().handler(req, new ServerResponse(req))).toThrow(
    new TypeError('app.handler got a request that no server of node:http received; use app.request() instead'),
  );
});

const late = [
  { request: 'GET / HTTP/1.1\r\nHost: a\r\n\r\n' },
  { request: 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab' },
  { request: 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab' },
];
test.for(late)('a request that gets to app.handler after its client has left is over: $request', async ({ request }) => {
  const logger = createRecorder();
  const app = createApp({ accessLog: true, logger }).get('/', () => 'never').post('/', () => 'never');
  const client = new Socket();
  client.on('connect', () => client.write(request));
  await new Promise<void>((resolve) => {
    const hold: RequestListener = (req, res) => {
      req.socket.once('close', () => {
        app.handler(req, res);
        resolve();
      });
      client.destroy();
    };
    void listen(createServer(hold)).then((port) => client.connect(port, '127.0.0.1'));
  });
  expect(logger.entries).toMatchObject([{ message: 'request', object: { status: 499 } }]);
  await app.close({ timeout: 60_000 });
});

test.for(Object.keys(WAYS))('a drain cuts what outlives its timeout: %s', async (way) => {
  const app = createApp();
  const events = new EventEmitter();
  app.get('/', ({ signal }) => {
    signal.addEventListener('abort', () => events.emit('aborted'));
    events.emit('begun');
    return new Promise(() => {});
  });
  const port = await listen(WAYS[way]!(app));
  const [begun, aborted] = [once(events, 'begun'), once(events, 'aborted')];
  const reply = fetch(`http://127.0.0.1:${port}/`).catch(() => 'cut');
  await begun;
  await app.close({ timeout: 1 });
  expect(await reply).toBe('cut');
  await aborted;
});

test.for([true, false])('the log warns that nothing opens the listener of the option monitor (listen called: %s)', async (
  hasListener,
) => {
  const logger = createRecorder();
  const app = createApp({ logger, accessLog: false, monitor: { port: 0, host: '127.0.0.1' } });
  const server = createServer();
  app.attach(server, { scope: 'public' });
  if (hasListener) await serve(app);
  await listening(server);
  app.attach(await listening(createServer()));
  expect(logger.entries.map(({ level, message }) => [level, message])).toEqual(
    Array(hasListener ? 0 : 2).fill(['warn', expect.stringMatching(/metrics; call listen\(\), .* option monitor$/)]),
  );
});
