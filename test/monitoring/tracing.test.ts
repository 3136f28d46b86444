/** The tracing channel `postern.request`. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import { NotFound, ServiceUnavailable, type RequestTraceMessage } from 'postern';
import { createApp, expectFailures, serve } from '../support/serve.js';

type Event = [string, RequestTraceMessage];

function subscribe(): Event[] {
  const events: Event[] = [];
  const at = (name: string) => (message: unknown): void =>
    void events.push([name, { ...(message as RequestTraceMessage) }]);
  const subscribers = {
    start: at('start'),
    end: at('end'),
    asyncStart: at('asyncStart'),
    asyncEnd: at('asyncEnd'),
    error: at('error'),
  };
  const channel = tracingChannel<string, RequestTraceMessage>('postern.request');
  channel.subscribe(subscribers);
  onTestFinished(() => void channel.unsubscribe(subscribers));
  return events;
}

test.for([
  { path: '/sync/1', events: ['start', 'end'], route: '/sync/:x', statusCode: 200 },
  { path: '/async/1', events: ['start', 'end', 'asyncStart', 'asyncEnd'], route: '/async/:x', statusCode: 200 },
  { path: '/fails', events: ['start', 'end'], route: '/fails', statusCode: 404,
    errorCode: 'framework_error_unspecified' },
  { path: '/rejects', events: ['start', 'end', 'error', 'asyncStart', 'asyncEnd'], route: '/rejects', statusCode: 500,
    errorCode: 'framework_unknown_error' },
  { path: '/down', events: ['start', 'error', 'end'], route: '/down', statusCode: 503,
    errorCode: 'framework_error_unspecified' },
  { path: '/nowhere', events: ['start', 'end'], route: null, statusCode: 404,
    errorCode: 'framework_error_unspecified' },
])('$path publishes $events with its route and error code', async ({ path, events, route, statusCode, errorCode }) => {
  const app = expectFailures(createApp(), statusCode);
  app.get('/sync/:x', () => 'ok').get('/async/:x', async () => 'ok');
  app.get('/fails', () => { throw new NotFound(); }).get('/rejects', async () => Promise.reject(new Error('x')));
  app.get('/down', () => { throw new ServiceUnavailable(); });
  const published = subscribe();
  await fetch((await serve(app)).url + path);
  expect(published.map(([name]) => name)).toEqual(events);
  const [, last] = published.at(-1) as Event;
  expect([last.route?.path ?? null, last.statusCode, last.errorCode?.name]).toEqual([route, statusCode, errorCode]);
  expect(last.ctx.path).toBe(path);
  expect('error' in last).toBe(events.includes('error'));
});

test('a store bound to start holds for everything that the handler starts', async () => {
  const storage = new AsyncLocalStorage<{ path: string }>();
  const { start } = tracingChannel<{ path: string }, RequestTraceMessage>('postern.request');
  start.bindStore(storage, ({ ctx }) => ({ path: ctx.path }));
  onTestFinished(() => void start.unbindStore(storage));
  const app = createApp().get('/:x', async () => {
    await new Promise(setImmediate);
    return storage.getStore();
  });
  const { url } = await serve(app);
  const answers = await Promise.all(['/a', '/b', '/c'].map(async (path) => (await fetch(url + path)).json()));
  expect(answers).toEqual([{ path: '/a' }, { path: '/b' }, { path: '/c' }]);
  expect(storage.getStore()).toBeUndefined();
});
