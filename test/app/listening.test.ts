/** Listening and closing. */

import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { parseResponses, rawExchange } from '../support/raw.js';
import { activeTasksOf, createApp, expectFailures, serve } from '../support/serve.js';

test('listen tells where, close ends it, and closing twice is once', async () => {
  const app = createApp().get('/', () => 'ok');
  const { url, host, port } = await serve(app);
  expect([url, host]).toEqual([`http://127.0.0.1:${port}`, '127.0.0.1']);
  expect(await (await fetch(url)).text()).toBe('ok');
  let hooks = 0;
  app.onClose(() => void (hooks += 1));
  await Promise.all([app.close(), app.close()]);
  await app.close();
  expect(hooks).toBe(1);
  await expect(fetch(url)).rejects.toThrow();
  await expect(app.listen({ port: 0 })).rejects.toThrow(/closed/);
});

test('listening on all interfaces gives a URL that can be fetched', async () => {
  const app = createApp().get('/', () => 'ok');
  const { url } = await app.listen({ port: 0 });
  expect(await (await fetch(url)).text()).toBe('ok');
});

test.for([{ host: '127.0.0.1' }, {}])('closing while listen(%j) is under way ends what it opened', async (where) => {
  const app = createApp();
  const listening = app.listen({ port: 0, ...where });
  await app.close();
  const { url } = await listening;
  await expect(fetch(url)).rejects.toThrow();
  expect(app.server.listening).toBe(false);
});

test('a port that is undefined is one that was left out', async () => {
  const app = createApp();
  const where: unknown[] = [];
  app.server.listen = ((options: unknown) => {
    where.push(options);
    setImmediate(() => app.server.emit('error', new Error('not today')));
    return app.server;
  }) as never;
  await expect(app.listen({ port: undefined as never, host: '127.0.0.1' })).rejects.toThrow('not today');
  expect(where).toEqual([{ port: 8000, host: '127.0.0.1' }]);
});

test('a port that is taken rejects', async () => {
  const { port } = await serve(createApp());
  await expect(createApp().listen({ host: '127.0.0.1', port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

test('close lets what is in flight finish, and ends its connection', async () => {
  let arrived = (): void => undefined;
  const waiting = new Promise<void>((resolve) => (arrived = resolve));
  let release = (): void => undefined;
  const app = createApp().get('/slow', () => new Promise((resolve) => {
    release = () => resolve('done');
    arrived();
  }));
  const { port } = await serve(app);
  const idle = connect(port, '127.0.0.1');
  const answered = rawExchange(port, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await waiting;
  const closed = app.close({ timeout: 5000 });
  await new Promise((resolve) => idle.once('close', resolve));
  release();
  await closed;
  const [response] = parseResponses(await answered);
  expect([response?.status, response?.body, response?.headers['connection']]).toEqual([200, 'done', 'close']);
});

test('what outlives the time limit is cut', async () => {
  let arrived = (): void => undefined;
  const waiting = new Promise<void>((resolve) => (arrived = resolve));
  const app = createApp().get('/never', () => {
    arrived();
    return new Promise<string>(() => undefined);
  });
  const { port } = await serve(app);
  const answered = rawExchange(port, 'GET /never HTTP/1.1\r\nHost: x\r\n\r\n');
  await waiting;
  await app.close({ timeout: 20 });
  expect(await answered).toBe('');
});

test('while the application drains, health says so with 503 and requests are still served', async () => {
  const app = expectFailures(createApp(), 503).get('/', () => 'ok');
  const { url } = await serve(app);
  const closed = app.close({ delay: 300 });
  const health = await fetch(`${url}/users/health/`);
  expect([health.status, ((await health.json()) as { status: string }).status]).toEqual([503, 'DRAINING']);
  expect(await (await fetch(url)).text()).toBe('ok');
  expect((await fetch(`${url}/users/ping/`)).status).toBe(200);
  expect(await (await fetch(`${url}/users/metrics/`)).text()).toContain('status="DRAINING"');
  await closed;
});

test('what is no promise cannot be tracked, and times that are none throw', async () => {
  const app = createApp();
  for (const value of [5, null, {}]) expect(() => app.track(value as never)).toThrow(TypeError);
  expect(activeTasksOf(app)).toBe(0);
  for (const options of [{ delay: -1 }, { timeout: NaN }, { timeout: '5' }]) {
    await expect(app.close(options as never)).rejects.toThrow(TypeError);
    await expect(app.run({ port: 0, ...options } as never)).rejects.toThrow(TypeError);
  }
  await app.close({ delay: undefined, timeout: undefined } as never);
});

test('a time limit beyond what timers can do waits instead of cutting', async () => {
  let release = (): void => undefined;
  const app = createApp().get('/', () => new Promise((resolve) => (release = () => resolve('done'))));
  const { port } = await serve(app);
  const answered = rawExchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await expect.poll(() => activeTasksOf(app)).toBe(1);
  const closed = app.close({ timeout: Infinity });
  // A timer of that long would fire after 1 ms.
  await new Promise((resolve) => setTimeout(resolve, 30));
  release();
  await closed;
  expect(await answered).toContain('done');
});
