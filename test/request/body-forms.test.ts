/** One body in several forms, and which content types each reader takes. */

import { expect, test } from 'vitest';
import { createApp, serve } from '../support/serve.js';

test('a body that was read may be read again in another form', async () => {
  const app = createApp().post('/', async (ctx) => {
    const value = await ctx.json<{ a: number }>();
    const text = await ctx.text();
    const bytes = (await ctx.bytes()).length;
    let streamed = '';
    for await (const chunk of ctx.stream()) streamed += String(chunk);
    return { value, text, bytes, streamed };
  });
  const response = await fetch((await serve(app)).url, {
    method: 'POST',
    body: '{"a":1}',
    headers: { 'content-type': 'application/json; charset=utf-8' },
  });
  expect(await response.json()).toEqual({ value: { a: 1 }, text: '{"a":1}', bytes: 7, streamed: '{"a":1}' });
});

test('a body that went out as a stream cannot be read again', async () => {
  const app = createApp({ logger: false }).post('/', async (ctx) => {
    ctx.stream().resume();
    await expect(ctx.text()).rejects.toThrow(TypeError);
    expect(() => ctx.stream()).toThrow(TypeError);
    return 'ok';
  });
  expect(await (await fetch((await serve(app)).url, { method: 'POST', body: 'x' })).text()).toBe('ok');
});

test.for([
  ['application/json', 200],
  ['Application/JSON ; charset="utf-8"', 200],
  ['application/vnd.api+json', 200],
  [null, 415],
  ['application/jsonx', 415],
  ['text/json', 415],
  ['json', 415],
  ['application/x-www-form-urlencoded', 415],
] as const)('json() with content type %s: %i', async ([type, status]) => {
  const app = createApp().post('/', (ctx) => ctx.json());
  const body = Buffer.from('\ufeff{"a":1}');
  const response = await fetch((await serve(app)).url, {
    method: 'POST',
    body,
    headers: type === null ? {} : { 'content-type': type },
  });
  expect(response.status).toBe(status);
  if (status === 200) expect(await response.json()).toEqual({ a: 1 });
});

test.for(['application/json', 'text/plain', null])(
  'json() answers 400 to an empty body, with content type %s',
  async (type) => {
    const app = createApp().post('/', (ctx) => ctx.json());
    const response = await app.request('/', { method: 'POST', headers: type === null ? {} : { 'content-type': type } });
    expect([response.status, await response.json()])
      .toMatchObject([400, { description: 'The body is empty; send JSON.' }]);
  },
);

test.for<[string, RequestInit]>([
  ['without a body', { method: 'GET' }],
  ['of length 0', { method: 'POST', body: '' }],
  ['in chunks', { method: 'POST', body: new Blob([]).stream() }],
])('form() of a request without a byte is empty, whatever its content type: %s', async ([, init]) => {
  const app = createApp();
  for (const method of ['get', 'post'] as const) app[method]('/', async (ctx) => [...(await ctx.form())]);
  const response = await app.request('/', { ...init, headers: { 'content-type': 'text/plain' } });
  expect([response.status, await response.text()]).toEqual([200, '[]']);
});

test('form() gives a URLSearchParams, a leading question mark kept', async () => {
  const app = createApp().post('/', async (ctx) => [...(await ctx.form())]);
  const response = await fetch((await serve(app)).url, {
    method: 'POST',
    body: '?a=1&b=x+y',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  expect(await response.json()).toEqual([['?a', '1'], ['b', 'x y']]);
});

test('a form keeps a leading U+FEFF, a text and JSON do not', async () => {
  const app = createApp();
  app.post('/form', async (ctx) => [...(await ctx.form())]);
  app.post('/text', async (ctx) => ctx.text());
  const body = '\uFEFFa=\uFEFFb';
  const send = (path: string): Promise<Response> =>
    app.request(path, { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded' } });
  expect(await (await send('/form')).json()).toEqual([['\uFEFFa', '\uFEFFb']]);
  expect(await (await send('/text')).text()).toBe('a=\uFEFFb');
});
