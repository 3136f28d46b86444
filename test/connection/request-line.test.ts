/**
 * Request lines: methods that nobody knows, other protocols, the host of a target in absolute form, and expectations.
 */

import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const HEAD = 'Host: x\r\n';
const NEXT = `GET /next HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`;

test.for<[string, number]>([
  ['BREW /pot HTTP/1.1', 501],
  ['get / HTTP/1.1', 501],
  ['GETX / HTTP/1.1', 501],
  ["!#$%&'*+-.^_`|~ / HTTP/1.1", 501],
  ['BREW http://x/ HTTP/1.0', 501],
  ['DESCRIBE / HTTP/1.1', 501],
  ['BREW / HTTP/2.0', 400],
  ['BREW /', 400],
  ['BREW', 400],
  ['BREW/ HTTP/1.1', 400],
  ['BR(W / HTTP/1.1', 400],
  ['EHLO mail.example', 400],
  ['GE T / HTTP/1.1', 400],
  ['\x16\x03\x01\x02', 400],
])('%j is refused with %i, in the uniform body and at debug, and ends the connection', async ([line, status]) => {
  for (const before of ['', `GET /first HTTP/1.1\r\n${HEAD}\r\n`]) {
    const logger = createRecorder();
    const app = createApp({ logger }).get('/:any', () => 'ok');
    if (status === 501) expectFailures(app, 501);
    const { port } = await serve(app);
    const replies = parseResponses(await rawExchange(port, `${before}${line}\r\n${HEAD}\r\n${NEXT}`));
    expect(replies.map((reply) => reply.status)).toEqual(before === '' ? [status] : [200, status]);
    expect(JSON.parse(String(replies.at(-1)?.body))).toMatchObject({ error_code: { value: 999998 } });
    expect(logger.entries.map(({ level }) => level)).toEqual(['debug']);
  }
});

test('a method of which only a part has arrived is not told from what is no request', async () => {
  const { port } = await serve(createApp());
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk))).write('BR');
  await once(socket, 'end');
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
});

test.for([
  'SETUP / RTSP/1.0',
  'DESCRIBE rtsp://x/ RTSP/1.0',
  'SOURCE /mount ICE/1.0',
  'GET / RTSP/1.0\r\nCSeq: 1',
  'OPTIONS * RTSP/1.0\r\ncseq: 1',
])('%j is refused, and nothing behind it is let in', async (line) => {
  const seen: string[] = [];
  const app = createApp().get('/next', () => void seen.push('next'));
  const { port } = await serve(app);
  const replies = parseResponses(await rawExchange(port, `${line}\r\n${HEAD}Connection: keep-alive\r\n\r\n${NEXT}`));
  expect(replies.map(({ status }) => status)).toEqual([400]);
  expect(seen).toEqual([]);
});

test.for(['GET / HTTP/1.1\r\nCSeq: 1', 'GET / HTTP/1.0\r\nAge: 1'])('%j is a request like any other', async (line) => {
  const { port } = await serve(createApp().get('/', () => 'ok'));
  expect(parseResponses(await rawExchange(port, `${line}\r\n${HEAD}Connection: close\r\n\r\n`)))
    .toMatchObject([{ status: 200 }]);
});

test('a method of http.METHODS without a route is 404 or 405, not 501', async () => {
  const app = createApp().get('/here', () => 'ok').route('/stream', { SOURCE: () => 'sourced' });
  const { port } = await serve(app);
  for (const [line, status] of [
    ['PROPFIND /here', 405],
    ['PROPFIND /nowhere', 404],
    ['SOURCE /stream', 200],
  ] as const) {
    expect(parseResponses(await rawExchange(port, `${line} HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`)))
      .toMatchObject([{ status }]);
  }
});

test.for<[string, string]>([
  ['http://api.example:8080/where?a=1', 'api.example:8080'],
  ['http://[::1]/where', '[::1]'],
  ['HTTP://API.example/where', 'API.example'],
])('the authority of %s replaces Host', async ([target, host]) => {
  const app = createApp().get('/where', (ctx) => ({
    host: ctx.headers.host,
    url: ctx.url.href,
    raw: ctx.raw.req.headers.host,
  }));
  const { port } = await serve(app);
  const [reply = { body: '' }] = parseResponses(
    await rawExchange(port, `GET ${target} HTTP/1.1\r\nHost: spoofed.example\r\nConnection: close\r\n\r\n`),
  );
  expect(JSON.parse(String(reply.body))).toEqual({ host, raw: host, url: new URL(target).href });
});

test.for<[string, number]>([
  ['100-continue', 200],
  ['100-Continue', 200],
  ['100-continue, 100-continue', 417],
  ['100-continue, x=y', 417],
  ['x=y, 100-continue', 417],
  ['100-continue; q=1', 417],
  ['"100-continue"', 417],
  ['x-100-continue', 417],
  [', 100-continue,', 200],
])('the expectation %j is %i', async ([expectation, status]) => {
  const app = createApp();
  app.post('/', async (ctx) => ctx.text());
  const { port } = await serve(app);
  const text = await rawExchange(
    port,
    `POST / HTTP/1.1\r\n${HEAD}Expect: ${expectation}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`,
  );
  expect(text.startsWith('HTTP/1.1 100 Continue\r\n\r\n')).toBe(status === 200);
  expect(text.replace('HTTP/1.1 100 Continue\r\n\r\n', '')).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
});
