/** Advisories about nesting without an end, read and written. */

import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Postern, type Handler, type PosternOptions } from 'postern';
import { JsonLogger } from '../../src/base/log.js';
import { createApp, expectFailures } from '../support/serve.js';

const DEPTH = 200_000;

describe('nesting without an end while asynchronous contexts are kept (CVE-2025-59466)', () => {
  const store = new AsyncLocalStorage<string>();

  /** Contexts kept by a middleware, by a subscriber to the tracing channel, and by hooks. */
  function createNested(options: PosternOptions): { app: Postern; stores: unknown[] } {
    const hook = createHook({ init() {}, before() {}, after() {} }).enable();
    const { start } = tracingChannel('postern.request');
    const traced = new AsyncLocalStorage<unknown>();
    start.bindStore(traced, () => 'traced');
    onTestFinished(() => {
      hook.disable();
      start.unbindStore(traced);
    });
    const stores: unknown[] = [];
    const app = createApp({ bodyLimit: 8 * DEPTH, ...options })
      .use((_ctx, next) => store.run('kept', next))
      .post('/', async (ctx) => {
        await ctx.json().finally(() => stores.push(store.getStore(), traced.getStore()));
      })
      .get('/', () => 'alive');
    return { app, stores };
  }

  test.for([
    ['arrays', '['.repeat(DEPTH) + ']'.repeat(DEPTH)],
    ['arrays that are not closed', '['.repeat(DEPTH)],
    ['objects', `${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`],
    ['objects that are not closed', '{"":'.repeat(DEPTH)],
    ['both by turns', `${'[{"a":'.repeat(DEPTH / 2)}1${'}]'.repeat(DEPTH / 2)}`],
  ] as const)('JSON of %s, 200,000 deep, gives 400, and the process serves on', async ([, body]) => {
    const { app, stores } = createNested({});
    const response = await app.request('/', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    expect([response.status, ((await response.json()) as { description: string }).description])
      .toEqual([400, 'The body is nested more than 1000 deep.']);
    expect(stores).toEqual(['kept', 'traced']);
    expect(await (await app.request('/')).text()).toBe('alive');
  });

  const nested = (): unknown[] => {
    let value: unknown[] = [];
    for (let depth = 0; depth < DEPTH; depth += 1) value = [value];
    return value;
  };
  const chained = (): Error => {
    let error = new Error('innermost');
    for (let depth = 0; depth < 10_000; depth += 1) error = new Error('outer', { cause: error });
    return error;
  };
  const raises: readonly (readonly [what: string, raise: Handler])[] = [
    ['an error with a deep property', () => Object.assign(new Error('x'), { body: nested() })],
    ['an error with a deep cause', () => new Error('x', { cause: nested() })],
    ['an error behind 10,000 others', chained],
    ['a deep value that is thrown', () => { throw nested(); }],
  ];
  test('a deep value that is returned gives 500', async () => {
    const { app } = createNested({});
    expectFailures(app, 500).get('/deep', nested);
    expect((await app.request('/deep')).status).toBe(500);
    expect(await (await app.request('/')).text()).toBe('alive');
  });

  test.for(raises)('%s gives 500 and one line in the log', async ([, raise]) => {
    let written = '';
    const { app } = createNested({ logger: new JsonLogger('users', (line) => (written += line)) });
    expectFailures(app, 500).get('/deep', raise);
    expect((await app.request('/deep')).status).toBe(500);
    expect(await (await app.request('/')).text()).toBe('alive');
    expect(written.trimEnd().split('\n').map((line) => (JSON.parse(line) as { level: string }).level))
      .toEqual(['error']);
  });
});
