/**
 * Advisories about uploads: broken off, unread, or parsed by nobody.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Context } from 'postern';
import { CHUNKED, READERS, answerTo, createReading, post, sized } from '../support/bodies.js';
import { inParallel } from '../support/gateway-upstream.js';
import { activeTasksOf, createApp, serve } from '../support/serve.js';

/** Lets everything happen that is due. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** What nobody caught while a test ran: outside of tests it would have ended the process. */
function watchProcess(): unknown[] {
  const escaped: unknown[] = [];
  const add = (error: unknown): void => void escaped.push(error);
  process.on('uncaughtException', add).on('unhandledRejection', add);
  onTestFinished(() => void process.off('uncaughtException', add).off('unhandledRejection', add));
  return escaped;
}

describe('uploads (CVE-2025-47935, CVE-2025-47944, CVE-2025-7338, CVE-2026-2359, CVE-2026-3304, CVE-2026-5038, CVE-2026-8159)', () => {
  test('multipart is parsed by nobody', async () => {
    const { app, got } = createReading();
    const body = '--b\r\nContent-Disposition: form-data; name="__proto__"; filename="../../x"\r\n\r\nx\r\n--b--\r\n';
    for (const [name, status] of [
      ['json', 415],
      ['form', 415],
      ['text', 200],
    ] as const) {
      const response = await app.request(`/${name}`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'multipart/form-data; boundary=b' },
      });
      expect(response.status).toBe(status);
      if (status === 200) expect(await response.json()).toEqual({ body });
    }
    expect(got).toEqual(['text']);
  });

  const left = (ctx: Context): Promise<unknown> =>
    new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
  /** Readers, and handlers that mind a body less than they should. */
  const uploads: typeof READERS = {
    ...READERS,
    piped: (ctx) => {
      ctx.stream().pipe(new PassThrough()).resume();
      return left(ctx);
    },
    'streamed and left alone': (ctx) => {
      ctx.stream();
      return left(ctx);
    },
    'streamed too late': async (ctx) => {
      await left(ctx);
      for await (const chunk of ctx.stream()) void chunk;
    },
    'read too late': async (ctx) => {
      await left(ctx);
      return ctx.bytes();
    },
    ignored: left,
  };

  test('a stream that is read on behind the reply ends with an error, and holds nothing open', async () => {
    const target = new PassThrough().resume();
    let outcome: unknown;
    const app = createApp().post('/', (ctx) => {
      pipeline(ctx.stream(), target).catch((error: unknown) => (outcome = error));
      return 'accepted';
    });
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf');
    await once(socket, 'data');
    socket.write(' here');
    await expect.poll(() => outcome).toMatchObject({ statusCode: 400 });
    expect(target.destroyed).toBe(true);
    socket.destroy();
  });

  test('a thousand uploads cut half-way leave no handler, no task, no connection, no memory and no error behind', async () => {
    const escaped = watchProcess();
    const kinds = Object.entries(uploads);
    const app = createApp();
    const contexts: WeakRef<Context>[] = [];
    const started = new Map<string, () => void>();
    const running = new Set<string>();
    for (const [i, [, read]] of kinds.entries()) {
      app.post(`/${i}/:id`, (ctx) => {
        contexts.push(new WeakRef<Context>(ctx));
        started.get(ctx.params.id)?.();
        running.add(ctx.params.id);
        return read(ctx).finally(() => running.delete(ctx.params.id));
      });
    }
    const { port } = await serve(app);
    const head = (i: number): string =>
      `POST /${i % kinds.length}/${i} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n`;
    // No more than node:http takes ahead of a reader: beyond, it would not see who leaves.
    const upload = (i: number): Promise<void> => new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        // Some leave in the head, some at once behind a part of the body, most when their handler has begun.
        if (i % 20 === 0) socket.write(head(i), () => socket.destroy());
        else if (i % 20 < 5) socket.write(`${head(i)}\r\n${'x'.repeat(12_000)}`, () => socket.destroy());
        else {
          started.set(String(i), () => socket.destroy());
          socket.write(`${head(i)}\r\n${'x'.repeat(12_000)}`);
        }
      });
      socket.on('error', () => undefined).on('close', () => {
        started.delete(String(i));
        resolve();
      });
    });

    setFlagsFromString('--expose-gc');
    const collectGarbage: () => void = runInNewContext('gc');
    const used = (): number => {
      collectGarbage();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const settled = async (): Promise<void> => {
      await expect.poll(() => [...running]).toEqual([]);
      await expect.poll(() => activeTasksOf(app)).toBe(0);
      await expect
        .poll(() => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count))))
        .toBe(0);
    };

    await inParallel(Array.from({ length: 200 }, (_, i) => i), upload, 40);
    await settled();
    const usedBefore = used();
    await inParallel(Array.from({ length: 1000 }, (_, i) => i), upload, 40);
    await settled();
    expect(contexts.length).toBeGreaterThanOrEqual(900);
    await expect.poll(() => {
      collectGarbage();
      return contexts.filter((context) => context.deref() !== undefined).length;
    }).toBeLessThan(20);
    // 12 MB were received.
    expect(used() - usedBefore).toBeLessThan(8_000_000);
    expect(escaped).toEqual([]);
    expect((await fetch(`http://127.0.0.1:${port}/users/ping/`)).status).toBe(200);
  });

  test('an upload that nobody reads, longer than what is taken ahead, ends with requestTimeout when its client has left', async () => {
    const app = createApp({ requestTimeout: 1000, headersTimeout: 1000 });
    const handlers: Promise<unknown>[] = [];
    app.post('/', (ctx) => {
      const ended = left(ctx);
      handlers.push(ended);
      return ended;
    });
    const { port } = await serve(app);
    for (let i = 0; i < 10; i += 1)
      connect(port, '127.0.0.1')
        .on('error', () => undefined)
        .end(post('/', 'Content-Length: 1000000\r\n', 'x'.repeat(200_000)));
    await expect.poll(() => handlers.length).toBe(10);
    await Promise.all(handlers);
    await expect.poll(() => activeTasksOf(app)).toBe(0);
    await expect
      .poll(() => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count))))
      .toBe(0);
  });

  test.for([
    ['as a stream', (ctx: Context) => ctx.stream()],
    ['as a stream, after it failed to be read', async (ctx: Context) => {
      await ctx.bytes().catch(() => undefined);
      return ctx.stream();
    }],
  ] as const)(
    'a body over the limit, piped %s by a handler that listens for no error, does not end the process',
    async ([, open]) => {
      const escaped = watchProcess();
      const app = createApp({ bodyLimit: 10 }).post('/', async (ctx) => {
        (await open(ctx)).pipe(new PassThrough()).resume();
        await turns(20);
        return 'done';
      });
      const { port } = await serve(app);
      expect((await answerTo(port, post('/', CHUNKED, `b\r\n${'a'.repeat(11)}\r\n0\r\n\r\n`))).body).toBe('done');
      expect(escaped).toEqual([]);
    },
  );

  test.for(['json', 'form', 'text', 'bytes'] as const)(
    '%s() that fails while its handler waits for something else gives its own status',
    async (name) => {
      const escaped = watchProcess();
      const app = createApp({ bodyLimit: 10 }).post('/', async (ctx) => {
        const body = ctx[name]();
        await turns(20);
        return { body: await body };
      });
      const { port } = await serve(app);
      expect((await answerTo(port, sized('/', 'text/plain', 'a'.repeat(11)))).status)
        .toBe(name === 'json' || name === 'form' ? 415 : 413);
      expect(escaped).toEqual([]);
    },
  );
});
