/**
 * Many requests on one connection (RFC 9112, section 9): answered once each, in order, and none behind the one that
 * ends it.
 */

import { once } from 'node:events';
import { connect } from 'node:net';
import { Duplex, Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Context } from 'postern';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';
import {
  CANARY, CHUNKED, chunk, END, get, LAST, LAST_ANSWER, post, read, Wire, type NamedRow,
} from '../support/wire.js';

const wire = new Wire();
beforeAll(() => wire.start());
afterAll(() => wire.stop());

const N = CANARY.length;
const SIZED = `Content-Length: ${N}\r\n`;
const EXPECTS = 'Expect: 100-continue\r\n';
const CONNECT = 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n';
const UPGRADE = 'Connection: upgrade\r\nUpgrade: websocket\r\n';
const H2C = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n';

describe('pipelined requests', () => {
  const targets = Array.from({ length: 50 }, (_, i) => (i % 3 === 0 ? '/' : `/later/${(i * 7) % 11}`));
  const all = targets.map((target) => get(target));
  const said = targets.map((target) => `GET ${target}`);
  const later = 'GET /later/9';
  const rows: readonly NamedRow[] = [
    ['are answered in order, however long each takes', { bytes: all.join(''), answers: [...said, LAST_ANSWER] }],
    ['with bodies are answered in order', {
      bytes: (post(SIZED, CANARY) + post(CHUNKED, chunk(CANARY) + END) + get('/later/3')).repeat(5),
      answers: [...Array.from({ length: 5 }, () => [read(CANARY), read(CANARY), 'GET /later/3']).flat(), LAST_ANSWER],
    }],
    ['before one that cannot be parsed are answered, none behind it is seen', {
      bytes: [...all.slice(0, 25), 'nonsense\r\n\r\n', ...all.slice(25)].join(''),
      answers: [...said.slice(0, 25), 400],
    }],
    ['before one that is refused are answered, none behind it is seen', {
      bytes: [...all.slice(0, 25), get('/', 'Host: y\r\n'), ...all.slice(25)].join(''),
      answers: [...said.slice(0, 25), 400],
    }],
    ['before one whose request line says HTTP/2.0 are answered, none behind it is seen', {
      bytes: `${get('/later/9')}GET / HTTP/2.0\r\nHost: x\r\n\r\n${CANARY}`,
      answers: [later, 505],
    }],
    ['before one with a body whose request line says HTTP/2.0 are answered, none behind it is seen', {
      bytes: get('/later/9') + post(CHUNKED, chunk(CANARY) + END, '/read', '2.0') + CANARY,
      answers: [later, 505],
    }],
    ['go on behind one without a route', {
      bytes: get('/later/9') + get('/nowhere') + get('/'),
      answers: [later, 404, 'GET /', LAST_ANSWER], seen: ['/later/9', '/nowhere', '/', '/last'],
    }],
    ['before one whose body is broken are answered', {
      bytes: get('/') + get('/later/9') + post(CHUNKED, 'zz\r\n'),
      answers: ['GET /', later, 400], seen: ['/', '/later/9'], begins: '/read',
    }],
    ['before one with an unknown expectation are answered', {
      bytes: get('/') + get('/later/9') + post(`Expect: magic\r\n${SIZED}`, CANARY),
      answers: ['GET /', later, 417],
    }],
    ['before CONNECT are answered',
      { bytes: get('/') + get('/later/9') + CONNECT + CANARY, answers: ['GET /', later, 501] }],
    ['before one for another protocol are answered', {
      bytes: get('/') + get('/later/9') + get('/later/2', UPGRADE) + CANARY,
      answers: ['GET /', later, 'GET /later/2'],
    }],
    ['before one that asks to close are answered', {
      bytes: get('/') + get('/later/9') + get('/', 'Connection: close\r\n') + CANARY,
      answers: ['GET /', later, 'GET /'],
    }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));

  const whole = post(SIZED, CANARY) + post(CHUNKED, chunk(CANARY) + END);
  const behind = [
    ['nothing', '', []],
    ['half a request', 'GET / HTTP/1.1\r\nHo', [400]],
    ['half a body', post('Content-Length: 99\r\n', 'half'), [400]],
  ] as const;
  test.for(behind)('with bodies are answered when their client ends its side behind them and %s', async ([, rest, more]) => {
    const { port } = await serve(createApp().post('/read', (ctx) => ctx.text()));
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let received = '';
    socket.setEncoding('latin1').on('data', (text) => (received += text)).end(whole + rest);
    await once(socket, 'close');
    expect(parseResponses(received).map(({ status }) => status)).toEqual([200, 200, ...more]);
  });

  test.for(behind)('with bodies are answered when they are read together with the end and %s', async ([, rest, more]) => {
    const app = createApp().post('/read', (ctx) => ctx.text());
    await serve(app);
    let received = '';
    const write = (chunk: Buffer, _encoding: string, done: () => void): void => {
      received += chunk.toString('latin1');
      done();
    };
    const socket = new Duplex({ read: () => undefined, write });
    app.server.emit('connection', socket);
    socket.push(whole + rest, 'latin1');
    socket.push(null);
    await once(socket, 'finish');
    expect(parseResponses(received).map(({ status }) => status)).toEqual([200, 200, ...more]);
  });

  test.for([
    ['nothing', ''],
    ['half a request', 'GET / HTTP/1.1\r\nHo'],
    ['half a body', post('Content-Length: 99\r\n', 'half', '/unread')],
    ['half a body in chunks', post(CHUNKED, chunk('half'), '/unread')],
    ['half a body in chunks of HTTP/1.0', post(CHUNKED, chunk('half'), '/unread', '1.0')],
    ['an unread body that closes', post(`Connection: close\r\n${CHUNKED}`, chunk('half'), '/unread')],
    ['a refused head', 'GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n'],
    ['a body that is late just then', post('Content-Length: 99\r\n', 'half', '/unread'), 'ERR_HTTP_REQUEST_TIMEOUT'],
  ])('that are pending learn that their client has left, if its end is read together with them and %s', async ([, rest, code]) => {
    const app = createApp().post('/unread', () => 'unread');
    const aborted = new Promise((resolve) => {
      app.get('/pending', ({ signal }) => new Promise(() => signal.addEventListener('abort', resolve)));
    });
    await serve(app);
    const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    app.server?.emit('connection', socket);
    socket.push(get('/pending') + rest, 'latin1');
    socket.push(null);
    await once(socket, 'end');
    if (code !== undefined) app.server?.emit('clientError', Object.assign(new Error(code), { code }), socket);
    await Promise.all([aborted, once(socket, 'close')]);
  });
});

describe('behind a request that ends its connection', () => {
  const rows: readonly NamedRow[] = [
    ['nothing is seen: its expectation is unknown',
      { bytes: post(`Expect: magic\r\n${SIZED}`, CANARY), answers: [417] }],
    ['nothing is seen: its expectation is unknown, its body in chunks',
      { bytes: post(`Expect: magic\r\n${CHUNKED}`, chunk(CANARY) + END), answers: [417] }],
    ['nothing is seen: its expectation is unknown, without a body',
      { bytes: get('/', 'Expect: magic\r\n'), answers: [417] }],
    ['nothing is seen: its expectation is unknown, CONNECT behind it',
      { bytes: get('/', 'Expect: magic\r\n') + CONNECT, answers: [417] }],
    ['nothing is seen: its expectation is unknown, a body and CONNECT behind it', {
      bytes: get('/', 'Expect: magic\r\n') + post(SIZED, CANARY) + CONNECT, answers: [417],
    }],
    ['nothing is seen: it asks for that, CONNECT behind it',
      { bytes: get('/', 'Connection: close\r\n') + CONNECT, answers: ['GET /'] }],
    ['nothing is seen: it asks for that', { bytes: get('/', 'Connection: close\r\n') + CANARY, answers: ['GET /'] }],
    ['nothing is seen: it asks for that among other things',
      { bytes: get('/', 'Connection: x, Close\r\n') + CANARY, answers: ['GET /'] }],
    ['nothing is seen: it is HTTP/1.0', { bytes: `GET / HTTP/1.0\r\nHost: x\r\n\r\n${CANARY}`, answers: ['GET /'] }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});

describe('Expect: 100-continue', () => {
  const rows: readonly NamedRow[] = [
    ['is met when the body is read',
      { bytes: post(EXPECTS + SIZED, CANARY), answers: [100, read(CANARY), LAST_ANSWER] }],
    ['is met for chunks',
      { bytes: post(EXPECTS + CHUNKED, chunk(CANARY) + END), answers: [100, read(CANARY), LAST_ANSWER] }],
    ['may be in capitals',
      { bytes: post(`EXPECT: 100-CONTINUE\r\n${SIZED}`, CANARY), answers: [100, read(CANARY), LAST_ANSWER] }],
    ['is ignored in HTTP/1.0 (RFC 9110, section 10.1.1)', {
      bytes: post(`${EXPECTS}Connection: keep-alive\r\n${SIZED}`, CANARY, '/read', '1.0'),
      answers: [read(CANARY), LAST_ANSWER],
    }],
    ['is ignored in HTTP/1.0, whatever it says', {
      bytes: post(`Expect: magic\r\nConnection: keep-alive\r\n${SIZED}`, CANARY, '/read', '1.0'),
      answers: [read(CANARY), LAST_ANSWER],
    }],
    ['ends the connection when the body is not read',
      { bytes: post(EXPECTS + SIZED, CANARY, '/unread'), answers: ['POST /unread'] }],
    ['ends the connection when the chunks are not read',
      { bytes: post(EXPECTS + CHUNKED, chunk(CANARY) + END, '/unread'), answers: ['POST /unread'] }],
    ['ends the connection when there is no route',
      { bytes: post(EXPECTS + SIZED, CANARY, '/nowhere'), answers: [404], seen: ['/nowhere'] }],
    ['ends the connection when there is no body', { bytes: get('/', EXPECTS), answers: ['GET /'] }],
    ['ends the connection before something that cannot be parsed', {
      bytes: post(EXPECTS + SIZED, CANARY, '/unread') + 'nonsense\r\n\r\n', answers: ['POST /unread'],
    }],
    ['ends the connection before a request and something that cannot be parsed', {
      bytes: `${post(EXPECTS + SIZED, CANARY, '/unread') + get('/')}nonsense\r\n\r\n`, answers: ['POST /unread'],
    }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));

  test('lets no handler run behind an answer that ends the connection', async () => {
    const ran: string[] = [];
    const app = createApp().post('/unread', (ctx) => ran.push(ctx.path)).get('/last', (ctx) => ran.push(ctx.path));
    const { port } = await serve(app);
    const responses = parseResponses(await rawExchange(port, post(EXPECTS + SIZED, CANARY, '/unread') + LAST));
    expect([responses.map(({ status, headers }) => [status, headers['connection']]), ran])
      .toEqual([[[200, 'close']], ['/unread']]);
  });
});

describe('a request for another protocol', () => {
  const rows: readonly NamedRow[] = [
    ['(websocket) is answered as it is, and ends the connection', {
      bytes: get('/', `${UPGRADE}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n`),
      answers: ['GET /'],
    }],
    ['(websocket) is answered as it is, whatever frames are behind it',
      { bytes: `${get('/', UPGRADE)}\x81\x05hello`, answers: ['GET /'] }],
    ['(h2c) is answered as it is', { bytes: get('/', H2C), answers: ['GET /'] }],
    ['(h2c) is answered as it is, whatever is behind it',
      { bytes: `${get('/', H2C)}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`, answers: ['GET /'] }],
    ['(h2c) keeps its body', { bytes: post(H2C + SIZED, CANARY), answers: [read(CANARY)] }],
    ['(websocket) keeps its chunks', { bytes: post(UPGRADE + CHUNKED, chunk(CANARY) + END), answers: [read(CANARY)] }],
    ['(websocket) keeps a body that nobody reads',
      { bytes: post(UPGRADE + SIZED, CANARY, '/unread'), answers: ['POST /unread'] }],
    ['(TLS) is answered as it is',
      { bytes: get('/', 'Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n'), answers: ['GET /'] }],
    ['is none without Upgrade', { bytes: get('/', 'Connection: upgrade\r\n'), answers: ['GET /', LAST_ANSWER] }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));

  // node:http drops what is behind it in the same packet: the next one would begin with the body of a request.
  test.for(['/', '/later/50'])('for %s does not let the body of the next request pass for one', async (target) => {
    const outcome = await wire.exchange(get(target, UPGRADE) + post(SIZED, ''), {
      follow: { when: (seen) => seen.length > 0, bytes: CANARY + LAST },
    });
    expect([outcome.answers, outcome.seen]).toEqual([[`GET ${target}`], [target]]);
  });
});

describe('CONNECT', () => {
  const rows: readonly NamedRow[] = [
    ['is refused, and nothing behind it is seen', { bytes: CONNECT + CANARY, answers: [501] }],
    ['with a length is refused, and its body is not seen',
      { bytes: `CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n${SIZED}\r\n${CANARY}`, answers: [501] }],
    ['in absolute form is refused',
      { bytes: `CONNECT http://x/ HTTP/1.1\r\nHost: x\r\n\r\n${CANARY}`, answers: [[400, 501]] }],
    ['of a path is refused',
      { bytes: `CONNECT /smuggled HTTP/1.1\r\nHost: x\r\n\r\n${CANARY}`, answers: [[400, 501]] }],
    ['without Host is refused', { bytes: `CONNECT x:80 HTTP/1.1\r\n\r\n${CANARY}`, answers: [[400, 501]] }],
    ['is refused to a client that ends', { bytes: CONNECT, ends: true, answers: [501] }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});

describe('a client that ends its side', () => {
  const rows: readonly NamedRow[] = [
    ['behind a request is answered', { bytes: get('/'), ends: true, answers: ['GET /'] }],
    ['behind a body is answered', { bytes: post(SIZED, CANARY), ends: true, answers: [read(CANARY)] }],
    ['behind several requests is answered in order', {
      bytes: get('/') + post(SIZED, CANARY) + get('/nowhere'),
      ends: true, answers: ['GET /', read(CANARY), 404], seen: ['/', '/read', '/nowhere'],
    }],
    ['behind half a request line gets 400', { bytes: 'GET /smug', ends: true, answers: [400] }],
    ['behind half a head gets 400', { bytes: 'GET /smuggled HTTP/1.1\r\nHost: x\r\n', ends: true, answers: [400] }],
    ['behind a request and half of another one gets 400 for the second alone', {
      bytes: get('/') + CANARY.slice(0, -2),
      ends: true, answers: ['GET /', 400], seen: ['/'],
    }],
    ['without a request gets no answer', { bytes: '', ends: true, answers: [] }],
    ['behind empty lines gets no answer', { bytes: '\r\n\r\n', ends: true, answers: [] }],
  ];
  test.for(rows)('%s', ([, row]) => wire.check(row));
});

test('a client that is refused in the middle of its body may send the rest of it', async () => {
  const body = 'x'.repeat(500_000);
  const socket = connect({ port: wire.port, host: '127.0.0.1', allowHalfOpen: true }, () => {
    socket.write(`${post(`Host: y\r\nContent-Length: ${body.length}\r\n`, '')}x`);
  });
  await once(socket, 'data');
  for (let at = 1; at < body.length; at += 50_000)
    await new Promise((resolve) => socket.write(body.slice(at, at + 50_000), resolve));
  await once(socket, 'end');
  socket.end();
});

describe('a body that breaks off', () => {
  const answered = (_seen: readonly string[], received: string): boolean => received.includes('POST /');
  test.for([
    ['in its chunks', CHUNKED, 'zz\r\n', false],
    ['where its client ends', 'Content-Length: 99\r\n', '', true],
  ] as const)('%s behind a complete answer gets no second one', async ([, headers, bytes, ends]) => {
    const outcome = await wire.exchange(post(headers, '3\r\nabc\r\n', '/streamed'), {
      follow: { when: answered, bytes: bytes + CANARY },
      ends,
    });
    expect(outcome.seen).toEqual(['/streamed']);
    // Of no declared length: a second response would be taken for the end of the first.
    expect(outcome.responses.map(({ status, body }) => [status, body.includes('HTTP/1.1')])).toEqual([[200, false]]);
    expect((await wire.exchange(LAST)).answers).toEqual([LAST_ANSWER]);
  });
});

describe('the last request of a connection', () => {
  const handlers: Record<string, (ctx: Context) => unknown> = {
    'returns it': () => 'done',
    'writes it by hand': ({ raw }) => void raw.res.end('done'),
    'writes it by hand, later': async ({ raw }) => {
      await null;
      raw.res.end('done');
    },
    'pipes it': ({ raw }) => void Readable.from(['done']).pipe(raw.res),
    'writes it by hand, and says keep-alive': ({ raw }) =>
      void raw.res.setHeader('connection', 'keep-alive').end('done'),
  };
  test.for(Object.entries(handlers))('ends it with its reply, when its handler %s', async ([, handler]) => {
    let ran = 0;
    const app = createApp().get('/', (ctx) => ((ran += 1), handler(ctx) as string));
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const closed = once(socket, 'close');
    socket.write(get('/', UPGRADE));
    let received = '';
    for (; !received.includes('done'); received += String((await once(socket, 'data'))[0]));
    // What comes in a packet of its own is parsed, and must not be what keeps the connection open, unanswered.
    socket.resume().write(get('/'));
    await closed;
    expect([ran, parseResponses(received).map(({ status }) => status)]).toEqual([1, [200]]);
  });
});
