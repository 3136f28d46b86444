/** Advisories about queries and forms: how many parameters, how long they take, and what their names may mean. */

import { describe, expect, onTestFinished, test } from 'vitest';
import { createReading, FORM } from '../support/bodies.js';
import { assertGrowth, cpuMs } from '../support/growth.js';
import { createApp } from '../support/serve.js';

describe('forms of many parts (CVE-2024-45590, CVE-2025-13466)', () => {
  test.for([
    ['1,000 fields', 200, 'a=1&'.repeat(999)],
    ['1,000 fields of nothing', 200, '&'.repeat(999)],
    ['1,001 fields', 413, `${'a=1&'.repeat(1000)}a`],
    ['1,001 fields of nothing', 413, '&'.repeat(1000)],
    ['100,000 fields', 413, 'a&'.repeat(100_000)],
  ] as const)('%s give %i', async ([, status, body]) => {
    const { app } = createReading();
    expect((await app.request('/form', { method: 'POST', body, headers: { 'content-type': FORM } })).status)
      .toBe(status);
  });

  test.for([[1000, 200], [1001, 400]] as const)('a query of %i parameters gives %i', async ([count, status]) => {
    const app = createApp().get('/', (ctx) => ctx.query.size);
    expect((await app.request(`/?${'a&'.repeat(count - 1)}a`)).status).toBe(status);
  });

  const shapes: readonly (readonly [what: string, make: (n: number) => string])[] = [
    ['fields', (n) => 'a&'.repeat(n / 2)],
    ['fields of nothing', (n) => '&'.repeat(n)],
    ['equals signs', (n) => '='.repeat(n)],
    ['pluses', (n) => `a=${'+'.repeat(n)}`],
    ['escapes', (n) => `a=${'%41'.repeat(n / 3)}`],
    ['broken escapes', (n) => `a=${'%'.repeat(n)}`],
    ['brackets', (n) => `a${'[]'.repeat(n / 2)}=`],
  ];
  test.for(shapes)('a form of %s takes linear time', async ([what, make]) => {
    const app = createApp().post('/', async (ctx) => {
      await ctx.bytes();
      const startedAt = cpuMs();
      const size = await ctx.form().then((form) => form.size, () => 0);
      return { size, ms: cpuMs() - startedAt };
    });
    const measure = async (n: number): Promise<number> => {
      const response = await app.request('/', { method: 'POST', body: make(n), headers: { 'content-type': FORM } });
      return ((await response.json()) as { ms: number }).ms;
    };
    await assertGrowth(`a form of ${what}`, measure, 48_000);
  });
});

test.for([
  ['a list', 'a[]=1&a[]=2', [['a[]', '1'], ['a[]', '2']]],
  ['a large index', 'a[0][50000000]=x', [['a[0][50000000]', 'x']]],
  ['the largest index, and a length', 'a[4294967295]=x&a.length=9', [['a[4294967295]', 'x'], ['a.length', '9']]],
  ['nested keys, and their root', 'a[b][c][d]=x&a=y', [['a[b][c][d]', 'x'], ['a', 'y']]],
  ['escaped brackets', 'a%5B0%5D=x', [['a[0]', 'x']]],
  ['commas', 'a=1,2,3', [['a', '1,2,3']]],
  ['a thousand brackets', `a${'[x]'.repeat(1000)}=y`, [[`a${'[x]'.repeat(1000)}`, 'y']]],
] as const)('%s stays flat, in a form as in a query (CVE-2025-15284)', async ([, text, pairs]) => {
  const app = createApp().post('/', async (ctx) => ({ form: [...(await ctx.form())], query: [...ctx.query] }));
  const response = await app.request(`/?${text}`, { method: 'POST', body: text, headers: { 'content-type': FORM } });
  expect(await response.json()).toEqual({ form: pairs, query: pairs });
});

describe('names that reach a prototype (CVE-2026-8161 and others)', () => {
  const NAMES = [
    '__proto__', '__proto__[polluted]', '__proto__.polluted', 'constructor', 'constructor[prototype][polluted]',
    'constructor.prototype.polluted',
    'prototype', 'toString', 'hasOwnProperty', '__defineGetter__', '__lookupSetter__',
  ];

  test.for(NAMES)('%s in the query, a form, the path and the state is a name like any other', async (name) => {
    const before = Reflect.ownKeys(Object.prototype);
    const app = createApp().post('/:first/*rest', async (ctx) => {
      ctx.state[name] = 'polluted';
      const form = await ctx.form();
      return {
        query: [ctx.query.get(name), [...ctx.query]],
        form: [form.get(name), [...form]],
        params: Object.entries(ctx.params),
        inherited: ['polluted', 'toString', 'constructor', '__proto__'].filter(
          (key) => key in ctx.params || (key !== name && key in ctx.state),
        ),
        state: Object.entries(ctx.state),
      };
    });
    const body = new URLSearchParams([[name, 'polluted']]).toString();
    const segment = encodeURIComponent(name);
    const response = await app.request(`/${segment}/${segment}?${body}`, {
      method: 'POST',
      body,
      headers: { 'content-type': FORM },
    });
    expect(await response.json()).toEqual({
      query: ['polluted', [[name, 'polluted']]],
      form: ['polluted', [[name, 'polluted']]],
      params: [['first', name], ['rest', name]],
      inherited: [],
      state: [[name, 'polluted']],
    });
    expect(Reflect.ownKeys(Object.prototype)).toEqual(before);
  });

  test('a request without a route, or without parameters, has no prototype behind its parameters either', async () => {
    const inherited: unknown[] = [];
    const app = createApp().get('/', () => 'x').use((ctx, next) => {
      inherited.push('constructor' in ctx.params, '__proto__' in ctx.params, 'toString' in ctx.state);
      return next();
    });
    for (const path of ['/', '/nowhere', '/__proto__']) await app.request(path);
    expect(inherited).toEqual(Array.from({ length: 9 }, () => false));
  });

  test('what a handler merges of a JSON body never reaches Object.prototype', async () => {
    onTestFinished(() => void Reflect.deleteProperty(Object.prototype, 'polluted'));
    const merged: Record<string, unknown> = {};
    const merge = (into: Record<string, unknown>, from: object): void => {
      for (const [key, value] of Object.entries(from)) {
        if (typeof value === 'object' && value !== null)
          merge((into[key] ??= {}) as Record<string, unknown>, value as object);
        else into[key] = value;
      }
    };
    const app = createApp().post('/', async (ctx) => merge(merged, await ctx.json<object>()));
    const bodies = [
      '{"__proto__":{"polluted":1}}', '{"a":{"__proto__":{"polluted":1}}}', '{"\\u005f\\u005fproto__":{"polluted":1}}',
      '{"constructor":{"prototype":{"polluted":1}}}', '[{"a":[{"constructor":{"prototype":{"polluted":1}}}]}]',
      '{"__proto__":1,"__proto__":{"polluted":1}}', '{"constructor":1,"constructor":{"prototype":{"polluted":1}}}',
    ];
    for (const body of bodies) {
      const { status } = await app.request('/', {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      });
      expect(status, body).toBe(400);
    }
    expect('polluted' in {}).toBe(false);
    expect(merged).toEqual({});
  });
});

test.for<[number, number]>([
  [3, 200],
  [4, 400],
])('with parameterLimit 3, a query of %i parameters gives %i', async ([count, status]) => {
  const app = createApp({ parameterLimit: 3 }).get('/', (ctx) => [...ctx.query.keys()].length);
  expect((await app.request(`/?${Array.from({ length: count }, () => 'a=1').join('&')}`)).status).toBe(status);
  expect((await app.request('/?')).status).toBe(200);
});

test.for<[number, number]>([
  [3, 200],
  [4, 413],
])('with parameterLimit 3, a form of %i fields gives %i', async ([count, status]) => {
  const app = createApp({ parameterLimit: 3 }).post('/', async (ctx) => (await ctx.form()).size);
  const body = Array.from({ length: count }, () => 'a=1').join('&');
  expect(
    (await app.request('/', { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded' } }))
      .status,
  ).toBe(status);
});
