/** No line of the log has credentials of a target, its query, or the bytes of a request that could not be parsed. */

import { connect as tlsConnect } from 'node:tls';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Postern, type Logger, type PosternOptions } from 'postern';
import { rawExchange } from '../support/raw.js';
import { createRecorder, serve } from '../support/serve.js';
import { WireConnection } from '../support/strict-client.js';

const SECRET = 'hunter2';

/** All text in a value, however deep: strings, keys, bytes as text, and what is not enumerable, as of an error. */
function textIn(value: unknown, seen: Set<unknown> = new Set()): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null || seen.has(value)) return '';
  seen.add(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  const names = Reflect.ownKeys(value).map(String);
  const members = Reflect.ownKeys(value).map((name) => textIn(Reflect.get(value, name), seen));
  return [...names, ...members].join('\n');
}

/** What the application logged at any level, by a logger of its user's and by the default one, in both its forms. */
async function logOf(
  play: (port: number) => Promise<unknown>,
  options: PosternOptions = {},
): Promise<Record<string, string>> {
  const logs: Record<string, string> = {};
  const recorder = createRecorder();
  for (const [how, logger] of Object.entries<Logger | undefined>({ recorder, json: undefined, text: undefined })) {
    let written = '';
    vi.stubEnv('LOG_FORMAT', how === 'text' ? 'text' : 'json');
    const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      written += String(text);
      return true;
    });
    try {
      const app = new Postern('users', { logLevel: 'debug', accessLog: true, logger, ...options });
      app.get('/', () => 'ok').post('/read', (ctx) => ctx.text());
      app.server.on('upgrade', (_req, socket) => socket.destroy());
      const { port } = await serve(app);
      await play(port);
      await app.close({ timeout: 1000 });
    } finally {
      spy.mockRestore();
      vi.unstubAllEnvs();
    }
    const decimal = [...written.matchAll(/\[(\d{1,3}(?:,\d{1,3})+)\]/g)]
      .map(([, bytes = '']) => Buffer.from(bytes.split(',').map(Number)).toString('latin1'));
    logs[how] = logger === undefined ? [written, ...decimal].join('\n') : textIn(recorder.entries);
  }
  return logs;
}

const lined = (line: string, headers = ''): string => `${line}\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`;

describe('credentials of a target', () => {
  const TARGETS: readonly (readonly [what: string, bytes: string, status: number])[] = [
    ['in a request line', lined(`GET http://user:${SECRET}@x/a HTTP/1.1`), 400],
    ['of a user without a password', lined(`GET http://${SECRET}@x/a HTTP/1.1`), 400],
    ['of a password without a user', lined(`GET http://:${SECRET}@x/a HTTP/1.1`), 400],
    ['in capitals', lined(`GET HTTP://USER:${SECRET}@X/a HTTP/1.1`), 400],
    ['of https', lined(`GET https://user:${SECRET}@x/a HTTP/1.1`), 400],
    ['of another scheme', lined(`GET ftp://user:${SECRET}@x/a HTTP/1.1`), 400],
    ['with an at sign in the password', lined(`GET http://user:${SECRET}@${SECRET}@x/a HTTP/1.1`), 400],
    ['with a slash after the host', lined(`GET http://user:${SECRET}@x HTTP/1.1`), 400],
    ['with a query', lined(`GET http://user:${SECRET}@x?q=${SECRET} HTTP/1.1`), 400],
    ['of OPTIONS', lined(`OPTIONS http://user:${SECRET}@x/ HTTP/1.1`), 400],
    ['of CONNECT', `CONNECT user:${SECRET}@x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n`, 501],
    ['without Host', `GET http://user:${SECRET}@x/a HTTP/1.1\r\n\r\n`, 400],
    ['with a malformed Host', `GET http://user:${SECRET}@x/a HTTP/1.1\r\nHost: a b\r\n\r\n`, 400],
    ['with an unknown expectation', lined(`GET http://user:${SECRET}@x/a HTTP/1.1`, 'Expect: more\r\n'), 417],
    ['of an upgrade',
      `GET http://user:${SECRET}@x/a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`, 400],
    ['in a host alone', `GET / HTTP/1.1\r\nHost: user:${SECRET}@x\r\nConnection: close\r\n\r\n`, 400],
  ];

  test.for(TARGETS)('%s are in no line', async ([, bytes, status]) => {
    const logs = await logOf(async (port) => {
      expect(await rawExchange(port, bytes)).toContain(`HTTP/1.1 ${status}`);
    });
    for (const [how, text] of Object.entries(logs)) expect(text, how).not.toContain(SECRET);
  });

  test('leave the rest of the target in the line', async () => {
    const logger = createRecorder();
    const app = new Postern('users', { logger, accessLog: true });
    onTestFinished(() => app.close());
    const { port } = await serve(app);
    await rawExchange(port, lined(`GET http://user:${SECRET}@x.example/a/b?q=1 HTTP/1.1`));
    const targets = logger.entries.map(({ object }) => String(object['target']));
    expect(targets).toHaveLength(2);
    for (const target of targets) expect(target).toContain('x.example/a/b');
  });
});

test.for<[string, string]>([
  ['a served request', lined(`GET /?token=${SECRET} HTTP/1.1`)],
  ['a request without a route', lined(`GET /nowhere?token=${SECRET} HTTP/1.1`)],
  ['a method without a route', lined(`DELETE /?token=${SECRET} HTTP/1.1`)],
  ['a refused head', `GET /?token=${SECRET} HTTP/1.1\r\n\r\n`],
  ['a target in absolute form', lined(`GET http://x/?token=${SECRET} HTTP/1.1`)],
  ['a target with dot segments', lined(`GET /../?token=${SECRET} HTTP/1.1`)],
  ['a refused upgrade',
    `GET /x?token=${SECRET} HTTP/1.1\r\nHost: x,y\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`],
])('the query of %s is in no line', async ([, bytes]) => {
  const logs = await logOf((port) => rawExchange(port, bytes));
  for (const [how, text] of Object.entries(logs)) {
    expect(text, how).not.toContain(SECRET);
    expect(text, how).not.toBe('');
  }
});

describe('the bytes of what could not be parsed', () => {
  const AUTH = `Authorization: Bearer ${SECRET}\r\nCookie: session=${SECRET}\r\n`;
  const MALFORMED: readonly (readonly [what: string, bytes: string])[] = [
    ['a field without a colon', `GET /?token=${SECRET} HTTP/1.1\r\nHost: x\r\n${AUTH}broken\r\n\r\n`],
    ['a field with a NUL', `GET /?token=${SECRET} HTTP/1.1\r\nHost: x\r\n${AUTH}X: a\0b\r\n\r\n`],
    ['a folded field', `GET /?token=${SECRET} HTTP/1.1\r\nHost: x\r\n${AUTH}X: a\r\n b\r\n\r\n`],
    ['two lengths', `POST /read HTTP/1.1\r\nHost: x\r\n${AUTH}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    ['a length and chunks',
      `POST /read HTTP/1.1\r\nHost: x\r\n${AUTH}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['an unknown method', `BREW /?token=${SECRET} HTTP/1.1\r\nHost: x\r\n${AUTH}\r\n`],
    ['an unknown version', `GET /?token=${SECRET} HTTP/3.0\r\nHost: x\r\n${AUTH}\r\n`],
    ['a broken chunk', `POST /read HTTP/1.1\r\nHost: x\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\nzz${SECRET}\r\n`],
    ['a broken chunk for nobody',
      `POST /nowhere HTTP/1.1\r\nHost: x\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\nzz${SECRET}\r\n`],
    ['chunk extensions without an end',
      `POST /read HTTP/1.1\r\nHost: x\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\n1;${SECRET.repeat(4000)}\r\na\r\n`],
    ['header fields that are too large',
      `GET /?token=${SECRET} HTTP/1.1\r\nHost: x\r\n${AUTH}X: ${'x'.repeat(99_000)}`],
    ['a target that is too long', `GET /?token=${SECRET.repeat(9000)} HTTP/1.1\r\nHost: x\r\n${AUTH}\r\n`],
    ['what is no HTTP', `EHLO ${SECRET}\r\n${AUTH}\r\n`],
    ['a second request', lined('GET / HTTP/1.1').replace('Connection: close\r\n', '') +
      `GET /?token=${SECRET} HTTP/1.1\r\nHost: x\r\n${AUTH}broken\r\n\r\n`],
  ];

  test.for(MALFORMED)('are in no line: %s', async ([, bytes]) => {
    const logs = await logOf(async (port) => {
      expect(await rawExchange(port, bytes)).toMatch(/HTTP\/1\.1 [45]\d\d/);
    });
    for (const [how, text] of Object.entries(logs)) {
      expect(text, how).not.toContain(SECRET);
      expect(text, how).not.toMatch(/rawPacket/);
      expect(text, how).toContain('request refused');
    }
  });

  test.for([
    ['head', `GET /?token=${SECRET} HTTP/1.1\r\nHost: x\r\n${AUTH}`],
    ['body', `POST /read HTTP/1.1\r\nHost: x\r\n${AUTH}Content-Length: 99\r\n\r\n${SECRET}`],
  ] as const)('are in no line when the rest of a %s never comes', async ([, bytes]) => {
    const logs = await logOf(
      async (port) => expect(await rawExchange(port, bytes)).toContain('HTTP/1.1 408'),
      { requestTimeout: 300, headersTimeout: 300 },
    );
    for (const [how, text] of Object.entries(logs)) expect(text, how).not.toContain(SECRET);
  });

  test('are in no line when the client ends its side in the middle of a head', async () => {
    const logs = await logOf(async (port) => {
      const client = await WireConnection.open(port);
      await client.write(`GET /?token=${SECRET} HTTP/1.1\r\nHost: x\r\n${AUTH}`);
      client.end();
      expect((await client.finalResponse())?.status).toBe(400);
      await client.destroy();
    });
    for (const [how, text] of Object.entries(logs)) expect(text, how).not.toContain(SECRET);
  });

  test('are in no line when a client speaks TLS', async () => {
    const logs = await logOf((port) => new Promise<void>((resolve) => {
      const servername = `${SECRET}.example`;
      const socket = tlsConnect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false });
      socket.on('error', () => undefined).on('close', () => resolve());
    }));
    for (const [how, text] of Object.entries(logs)) expect(text, how).not.toContain(SECRET);
  });
});
