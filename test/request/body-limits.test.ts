/** Advisories about limits of bodies: what a request says of itself is not believed. */

import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Postern, type Context, type PosternOptions } from 'postern';
import { CHUNKED, READERS, answerTo, createReading, post } from '../support/bodies.js';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const JSON_TYPE = 'Content-Type: application/json\r\n';

/** Eleven bytes and more, for a limit of ten. */
const OVERSIZED: readonly (readonly [what: string, headers: string, body: string])[] = [
  ['a length that says so', 'Content-Length: 11\r\n', 'a'.repeat(11)],
  ['a length that says so, and no byte of it', 'Content-Length: 11\r\n', ''],
  ['a length with zeros before it', 'Content-Length: 00000000000000000011\r\n', 'a'.repeat(11)],
  ['a length beyond safe integers', 'Content-Length: 18446744073709551615\r\n', 'a'.repeat(11)],
  ['one chunk', CHUNKED, `b\r\n${'a'.repeat(11)}\r\n0\r\n\r\n`],
  ['chunks of a byte', CHUNKED, `${'1\r\na\r\n'.repeat(11)}0\r\n\r\n`],
  ['chunks with extensions', CHUNKED, `${'1;length=0\r\na\r\n'.repeat(11)}0\r\nx-trailer: 1\r\n\r\n`],
  ['a chunk that never ends', CHUNKED, `fffffff\r\n${'a'.repeat(11)}`],
];

describe('limits that trust what a request says of itself (GHSA-92vj-g62v-jqhh, CVE-2026-44456, CVE-2026-54288)', () => {
  test.for(OVERSIZED)(
    'a body over the limit by %s gives 413, and its handler gets nothing of it',
    async ([, headers, body]) => {
      const { app, got } = createReading({ bodyLimit: 10 });
      const { port } = await serve(app);
      for (const name of Object.keys(READERS)) {
        const type = name === 'json' ? JSON_TYPE : '';
        expect((await answerTo(port, post(`/${name}`, type + headers, body))).status, name).toBe(413);
      }
      expect(got).toEqual([]);
    },
  );

  test('a length shorter than what follows cuts the body there, and the rest is no body', async () => {
    const { app, got } = createReading({ bodyLimit: 10 });
    const { port } = await serve(app);
    for (const [headers, body] of [
      ['Content-Length: 3\r\n', 'abc'],
      ['', ''],
      ['Content-Length: 0\r\n', ''],
    ]) {
      const responses = parseResponses(
        await rawExchange(port, `POST /text HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}${'x'.repeat(20)}\r\n\r\n`),
      );
      expect(responses.map(({ status }) => status)).toEqual([200, 400]);
      expect(responses[0]?.body).toBe(JSON.stringify({ body }));
    }
    expect(got).toEqual(['text', 'text', 'text']);
  });

  test('a limit of 0 takes empty bodies alone', async () => {
    const { app } = createReading({ bodyLimit: 0 });
    const { port } = await serve(app);
    for (const name of ['form', 'text', 'bytes', 'stream']) {
      for (const [headers, body] of [['', ''], ['Content-Length: 0\r\n', ''], [CHUNKED, '0\r\n\r\n']] as const) {
        expect((await answerTo(port, post(`/${name}`, headers, body))).status, name).toBe(200);
      }
      for (const [headers, body] of [['Content-Length: 1\r\n', 'a'], [CHUNKED, '1\r\na\r\n0\r\n\r\n']] as const) {
        expect((await answerTo(port, post(`/${name}`, headers, body))).status, name).toBe(413);
      }
    }
  });

  test('after a 413 no other reader gives the part that had arrived', async () => {
    const outcomes: unknown[] = [];
    const app = createApp({ bodyLimit: 10 }).post('/:refused', async (ctx) => {
      const readers = Object.entries(READERS).filter(([name]) => name !== ctx.params.refused);
      for (const [, read] of readers) outcomes.push(await read(ctx as Context).catch((error: unknown) => error));
      return 'done';
    });
    const { port } = await serve(app);
    for (const [refused, type] of [['form', JSON_TYPE], ['json', '']])
      await rawExchange(port, post(`/${refused}`, type + CHUNKED, `a\r\n${'1'.repeat(10)}\r\n1\r\n1\r\n0\r\n\r\n`));
    expect(outcomes).toHaveLength(8);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ statusCode: 413 });
  });
});

describe('limits that are none (CVE-2026-12590)', () => {
  const wrong: readonly unknown[] = [
    '10 MBs', '10mb', '1048576', '', Infinity, -Infinity, 2 ** 53, -0.5, 10n, true, [10], {},
  ];
  const options = [
    'bodyLimit', 'parameterLimit', 'maxHeaderSize', 'maxHeadersCount', 'maxConnections',
    'requestTimeout', 'headersTimeout', 'keepAliveTimeout', 'sendTimeout',
  ];
  for (const option of options) {
    test.for(wrong.map((value) => ({ value })))(`${option} of $value throws at construction`, ({ value }) => {
      expect(() => new Postern('users', { logger: false, [option]: value }))
        .toThrow(new RegExp(`^${option} of new Postern\\(\\) is .*; give a whole number (?:of|from) [01] (?:or more|to \\d+)$`));
    });
  }

  test('a limit that is left out, or given as undefined, is 1 MiB', async () => {
    const options: PosternOptions = {};
    Object.assign(options, { bodyLimit: undefined });
    for (const { app } of [createReading(), createReading(options)]) {
      const send = async (length: number): Promise<number> =>
        (await app.request('/bytes', { method: 'POST', body: Buffer.alloc(length) })).status;
      expect([await send(1_048_576), await send(1_048_577)]).toEqual([200, 413]);
    }
  });
});

test('an object of more keys than the limit has room for is refused before it is parsed (CVE-2026-21717, CVE-2025-27209)', async () => {
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  const { app, got } = createReading();
  const body = `{${Array.from({ length: 100_000 }, (_, i) => `"${(i + 1) * 65_536}":0`).join()}}`;
  const streamed = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from(body));
      controller.close();
    },
  });
  for (const given of [body, streamed]) {
    expect(
      (await app.request('/json', { method: 'POST', body: given, headers: { 'content-type': 'application/json' } }))
        .status,
    ).toBe(413);
  }
  expect([got, parse.mock.calls]).toEqual([[], []]);
});
