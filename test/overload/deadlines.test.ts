/** Deadlines of requests: a handler does not run for a caller that no longer waits. */

import { expect, test } from 'vitest';
import type { Context, Postern, PosternOptions, Reply, StandardSchemaV1 } from 'postern';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

const DEADLINE = 'x-envoy-expected-rq-timeout-ms';
const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** An application whose middleware takes longer than 20 ms; `runs` has the routes whose handlers ran. */
function createSlow(options: PosternOptions): { app: Postern; runs: string[] } {
  const runs: string[] = [];
  const app = createApp(options);
  app.get(
    '/route',
    { middleware: [async (_ctx: Context, next: () => Promise<Reply>) => (await later(30), next())] },
    () => void runs.push('route'),
  );
  app.group('/group', (group) => {
    group.use(async (_ctx, next) => (await later(30), next()));
    group.get('', () => void runs.push('group'));
  });
  const body: StandardSchemaV1 = {
    '~standard': { version: 1, vendor: 'test', validate: async (value: unknown) => (await later(30), { value }) },
  };
  app.post('/schema', { body }, () => void runs.push('schema'));
  return { app, runs };
}

const ask = (app: Postern, path: string, deadline: string): Promise<Response> =>
  app.request(path, { headers: { [DEADLINE]: deadline }, method: path === '/schema' ? 'POST' : 'GET' });

test.for(['/route', '/group', '/schema'])(
  'a deadline that passes before the handler of %s is a 504, and the handler does not run',
  async (path) => {
    const logger = createRecorder();
    const { app, runs } = createSlow({ logger });
    expectFailures(app, 504);
    const response = await ask(app, path, '20');
    expect([response.status, await response.json()]).toEqual([504, {
      message: 'Gateway timeout.',
      description: 'The deadline of the request passed before it could be handled.',
      error_code: { name: 'framework_timeout', value: 999504 },
    }]);
    expect(runs).toEqual([]);
    expect(app.metrics.expose()).toContain(`http_requests_refused_total{route="${path}",reason="deadline"} 1.0\n`);
    expect(logger.entries.map(({ level, message }) => [level, message])).toEqual([['debug', 'request refused']]);
  },
);

test('refusals share one body, but each has the id and the content type of its request', async () => {
  const { app } = createSlow({});
  expectFailures(app, 504);
  const late = async (id: string, accept: string): Promise<(string | null)[]> => {
    const headers = { [DEADLINE]: '20', 'x-request-id': id, accept };
    const response = await app.request('/route', { headers });
    expect((await response.arrayBuffer()).byteLength).toBe(Number(response.headers.get('content-length')));
    return ['x-request-id', 'content-type'].map((name) => response.headers.get(name));
  };
  expect(await late('first', '*/*')).toEqual(['first', 'application/json']);
  expect(await late('second', 'application/problem+json')).toEqual(['second', 'application/problem+json']);
  expect(await late('third', '*/*')).toEqual(['third', 'application/json']);
});

test('a deadline that has not passed, and one that is not a positive integer, changes nothing', async () => {
  const { app, runs } = createSlow({});
  for (const deadline of ['5000', '-1', '0.5', 'soon']) expect((await ask(app, '/route', deadline)).status).toBe(204);
  expect(runs).toHaveLength(4);
});

test('{ observe: true } runs the handler and counts the request as refusable', async () => {
  const { app, runs } = createSlow({ loadShedding: { observe: true } });
  expect((await ask(app, '/route', '20')).status).toBe(204);
  expect(runs).toEqual(['route']);
  expect(app.metrics.expose()).toContain('http_requests_refusable_total{route="/route",reason="deadline"} 1.0\n');
  expect(app.metrics.expose()).not.toContain('http_requests_refused_total');
});

test('loadShedding: false runs the handler and counts nothing', async () => {
  const { app, runs } = createSlow({ loadShedding: false });
  expect((await ask(app, '/route', '20')).status).toBe(204);
  expect(runs).toEqual(['route']);
  expect(app.metrics.expose()).not.toMatch(/http_requests_refus/);
});
