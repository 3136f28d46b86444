/**
 * Random pipelines of good, bad, slow, cut and half-closed requests on random routes, over connections that end in
 * random ways: whatever a client does to one, replies are well formed and in order, and nothing is left behind.
 */

import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Postern, type Context } from 'postern';
import { PATIENCE_MS } from '../support/patience.js';
import type { Random } from '../support/random.js';
import { assert, type Target } from './target.js';

const ENDS = ['FIN', 'reset', 'FIN at once', 'reset at once', 'waits'] as const;

export const connections: Target = {
  name: 'connections',
  outcomes: ['answered', 'refused', 'cut', ...ENDS],
  async run(random, met) {
    const app = makeApp();
    const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
    try {
      await Promise.all(Array.from({ length: 12 }, () => visit(random, port, met)));
      await poll(() => activeOf(app) === 0, () => `${activeOf(app)} requests are active`);
      await poll(async () => (await openOf(app)) === 0, () => 'connections are open');
    } catch (failure) {
      await app.close({ timeout: 0 });
      throw failure;
    }
    const startedAt = performance.now();
    await app.close({ timeout: PATIENCE_MS });
    assert(performance.now() - startedAt < PATIENCE_MS, 'the drain ran into its time limit');
  },
};

function makeApp(): Postern {
  const app = new Postern('fuzz', {
    logger: false,
    requestTimeout: 600,
    headersTimeout: 600,
    keepAliveTimeout: 150,
    sendTimeout: 600,
  });
  const both = (path: string, handler: (ctx: Context) => object | string): void =>
    void app.route(path, { GET: handler, POST: handler });
  const named = (ctx: Context): string => `<${ctx.query.get('n') ?? ''}>`;
  const aborted = ({ signal }: Context): Promise<void> =>
    new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve())));
  both('/now', named);
  both('/later', async (ctx) => (await sleep(5), named(ctx)));
  both('/read', async (ctx) => (await ctx.text(), named(ctx)));
  both('/quiet', (ctx) => (async function* () { yield named(ctx); await Promise.race([aborted(ctx), sleep(200)]); })());
  both('/silent', async (ctx) => (await Promise.race([aborted(ctx), sleep(200)]), named(ctx)));
  both('/slow', (ctx) =>
    (async function* () {
      for (const part of [named(ctx), '.', '.']) {
        await sleep(4);
        yield part;
      }
    })(),
  );
  both('/fails', () =>
    Readable.from(
      (async function* () {
        yield '!';
        await sleep(3);
        throw new Error('the source failed');
      })(),
    ),
  );
  both('/fails-first', () =>
    Readable.from(
      (async function* () {
        await sleep(3);
        throw new Error('the source failed');
      })(),
    ),
  );
  both('/throws', () => { throw new Error('thrown'); });
  both('/bad-header', (ctx) => { ctx.raw.res.setHeader('trailer', 'x'); return 'x'; });
  both('/big', (ctx) => named(ctx) + 'x'.repeat(300_000));
  app.post('/echo', (ctx) => ctx.stream());
  app.route('/raw', {
    GET: (ctx) => void ctx.raw.res.end(named(ctx)),
    POST: (ctx) => void ctx.raw.res.end(named(ctx)),
  });
  app.route('/piped', {
    GET: (ctx) => void Readable.from([named(ctx)]).pipe(ctx.raw.res),
    POST: (ctx) => void Readable.from([named(ctx)]).pipe(ctx.raw.res),
  });
  app.post('/raw-read', (ctx) => { ctx.raw.req.resume(); return named(ctx); });
  return app;
}

const PATHS = [
  '/now', '/now', '/later', '/read', '/quiet', '/silent', '/slow', '/fails', '/fails-first', '/throws', '/bad-header',
  '/big', '/echo', '/raw', '/piped', '/raw-read', '/nowhere',
];

/**
 * The bytes of a request; what stands behind one that is not whole is no request, but where it takes the next bytes for
 * its body: those behind them may be one again.
 */
function request(random: Random, n: number): { bytes: string; isWhole: boolean; takesNext?: boolean } {
  const target = `${random.pick(PATHS)}?n=${n}`;
  const kind = random.int(16);
  const extra = random.pick([
    '', '', '', '', 'Connection: close\r\n', 'Expect: 100-continue\r\n', 'Expect: magic\r\n',
    'Connection: upgrade\r\nUpgrade: x\r\n',
  ]);
  const body = 'b'.repeat(random.pick([0, 1, 10, 3000, 90_000]));
  const head = (method: string, fields: string): string =>
    `${method} ${target} HTTP/1.1\r\nHost: x\r\n${extra}${fields}\r\n`;
  if (kind < 6) return { bytes: head('GET', ''), isWhole: true };
  if (kind < 9) return { bytes: head('POST', `Content-Length: ${body.length}\r\n`) + body, isWhole: true };
  if (kind < 11)
    return {
      bytes:
        head('POST', 'Transfer-Encoding: chunked\r\n') +
        (body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`) +
        `0\r\n${random.pick(['', '', 'Connection: close\r\n', 'X: y\r\n'])}\r\n`,
      isWhole: true,
    };
  if (kind === 11)
    return { bytes: head('POST', `Content-Length: ${body.length + 99}\r\n`) + body, isWhole: false, takesNext: true };
  if (kind === 12)
    return {
      bytes:
        head('POST', 'Transfer-Encoding: chunked\r\n') +
        random.pick([
          'zz\r\n',
          '5\r\nabc',
          '1\r\nab\r\n',
          '0\r\nbad trailer\r\n\r\n',
          `${(99_999).toString(16)}\r\n${body}`,
        ]),
      isWhole: false,
    };
  if (kind === 13)
    return {
      bytes: random.pick([
        'nonsense\r\n\r\n',
        'G',
        'GET /now HTTP/1.1\r\nHo',
        'GET /now HTTP/9.9\r\nHost: x\r\n\r\n',
        '\u0000',
      ]),
      isWhole: false,
    };
  if (kind === 14) return { bytes: 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', isWhole: false };
  return {
    bytes: `GET ${target} HTTP/1.1\r\nHost: ${random.pick(['a b', 'x\r\nHost: y', ''])}\r\n\r\n`,
    isWhole: false,
  };
}

async function visit(random: Random, port: number, met: (outcome: string) => void): Promise<void> {
  const requests = Array.from({ length: 1 + random.int(random.int(4) === 0 ? 40 : 6) }, (_, n) => request(random, n));
  const whole = requests.findIndex(({ isWhole }) => !isWhole);
  const most = (whole === -1 || requests[whole]?.takesNext === true ? requests.length : whole + 1) + 1;
  const bytes = requests.map((each) => each.bytes).join('');
  const end = random.pick(ENDS);
  const cuts = Array.from({ length: random.int(4) }, () => random.int(bytes.length)).sort((a, b) => a - b);
  const pieces = [0, ...cuts].map((at, index) => bytes.slice(at, cuts[index] ?? bytes.length));
  const pauses = pieces.map(() => random.pick([0, 0, 1, 8]));
  const [wait, isDeaf] = [random.pick([0, 2, 20]), random.int(8) === 0];
  met(end);

  const socket = connect(port, '127.0.0.1');
  let received = '';
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => undefined);
  if (!isDeaf) socket.on('data', (chunk) => (received += chunk.toString('latin1')));
  for (const [index, piece] of pieces.entries()) {
    if (socket.destroyed) break;
    socket.write(Buffer.from(piece, 'latin1'));
    if ((pauses[index] as number) > 0) await sleep(pauses[index]);
  }
  if (!end.endsWith('at once')) await sleep(wait);
  if (end.startsWith('FIN')) socket.end();
  else if (end.startsWith('reset')) socket.resetAndDestroy();
  if (isDeaf) socket.resume();
  await Promise.race([
    closed,
    sleep(PATIENCE_MS).then(() => assert(socket.destroyed, `a connection has no end (${end})`, bytes.slice(0, 2000))),
  ]);
  checkReplies(received, most, met, bytes);
}

/** Whole heads, no more than there can be, and bodies in the order of their requests; the last reply may be cut. */
function checkReplies(received: string, most: number, met: (outcome: string) => void, sent: string): void {
  let rest = received;
  let [count, last] = [0, -1];
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return met('cut');
    const head = rest.slice(0, end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? NaN);
    assert(status >= 100 && status <= 599, 'a reply is malformed', {
      head: head.slice(0, 300),
      sent: sent.slice(0, 1500),
    });
    rest = rest.slice(end + 4);
    if (status === 100) continue;
    count += 1;
    assert(count <= most, `there are more than ${most} replies`, { sent: sent.slice(0, 1500) });
    met(status < 400 ? 'answered' : 'refused');
    const body = takeBody(head, rest);
    if (body === null) return met('cut');
    rest = body.rest;
    const n = /^<(\d+)>/.exec(body.text)?.[1];
    if (n === undefined) continue;
    assert(Number(n) > last, `reply ${n} is behind reply ${last}`, { sent: sent.slice(0, 1500) });
    last = Number(n);
  }
}

function takeBody(head: string, rest: string): { text: string; rest: string } | null {
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  if (/^HTTP\/1\.1 (?:204|304)/.test(head)) return { text: '', rest };
  if (length !== undefined)
    return rest.length < Number(length)
      ? null
      : { text: rest.slice(0, Number(length)), rest: rest.slice(Number(length)) };
  if (!/^transfer-encoding: chunked/im.test(head)) return { text: rest, rest: '' };
  let text = '';
  for (let at = 0; ; ) {
    const line = rest.indexOf('\r\n', at);
    if (line === -1) return null;
    const size = Number.parseInt(rest.slice(at, line), 16);
    assert(Number.isInteger(size), 'a chunk is malformed', rest.slice(at, at + 100));
    if (rest.length < line + 2 + size + 2) return null;
    if (size === 0) return { text, rest: rest.slice(line + 4) };
    text += rest.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
}

async function poll(holds: () => boolean | Promise<boolean>, what: () => string): Promise<void> {
  const until = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert(performance.now() < until, what());
    await sleep(2);
  }
}

function activeOf(app: Postern): number {
  return Number(/^active_task_count (\S+)/m.exec(app.metrics.expose())?.[1]);
}

function openOf(app: Postern): Promise<number> {
  return new Promise((resolve, reject) =>
    app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
