/** The durations of requests and of calls: their buckets, their labels, their exemplars. */

import { describe, expect, test } from 'vitest';
import { Registry } from 'postern/metrics';
import { createCallMetrics } from '../../src/monitor/request-metrics.js';
import { parseExposition, sampleMap } from '../support/exposition-parser.js';
import { createApp } from '../support/serve.js';

describe('durationBuckets', () => {
  test('are the buckets of both histograms', async () => {
    const app = createApp({ durationBuckets: [0.5, 30, Infinity] }).get('/', () => 'ok');
    await app.request('/');
    const samples = sampleMap(app.metrics.expose());
    const bounds = [...samples.keys()].filter((name) => name.startsWith('http_request_duration_seconds_bucket'))
      .map((name) => /le=([^}]+)/.exec(name)?.[1]);
    expect(bounds).toEqual(['0.5', '30.0', '+Inf']);
  });

  const WRONG: readonly { readonly durationBuckets: unknown; readonly message: string }[] = [
    { durationBuckets: [], message: '"durationBuckets" has no finite bound' },
    { durationBuckets: [Infinity], message: '"durationBuckets" has no finite bound' },
    { durationBuckets: [1, 0.5], message: 'sort the buckets' },
    { durationBuckets: ['1'], message: 'give a number' },
    { durationBuckets: '0.5,1', message: 'an array' },
    { durationBuckets: null, message: 'an array' },
  ];

  test.for(WRONG)('$durationBuckets are refused when the application is made', ({ durationBuckets, message }) => {
    const make = (): unknown => createApp({ durationBuckets: durationBuckets as readonly number[] });
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('durationBuckets');
  });
});

describe('calls of other services', () => {
  test('each try is a sample of its service, method and status, 0 without an answer', () => {
    const registry = new Registry();
    const observe = createCallMetrics(registry, [0.1, 1]);
    observe('billing', 'GET', 200, 0.05);
    observe('billing', 'GET', 200, 0.5);
    observe('billing', 'GET', 0, 5);
    observe('mail', 'POST', 503, 0.2);
    observe('mail', 'MADE-UP', 501, 0.2);
    const samples = sampleMap(registry.expose());
    expect(samples.get('service_request_duration_seconds_count{service=billing,method=GET,status_code=200}')).toBe(2);
    expect(samples.get('service_request_duration_seconds_bucket{service=billing,method=GET,status_code=200,le=0.1}'))
      .toBe(1);
    expect(samples.get('service_request_duration_seconds_sum{service=billing,method=GET,status_code=0}')).toBe(5);
    expect(samples.get('service_request_duration_seconds_count{service=mail,method=POST,status_code=503}')).toBe(1);
    expect(samples.get('service_request_duration_seconds_count{service=mail,method=_OTHER,status_code=501}')).toBe(1);
  });

  test('their histogram is there before the first call', () => {
    expect(createApp().metrics.expose()).toContain('# TYPE service_request_duration_seconds histogram\n');
  });
});

test('a request of a sampled trace is the exemplar of its bucket, others leave it', async () => {
  const app = createApp({ durationBuckets: [60] }).get('/users/:id', () => 'user');
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
  await app.request('/users/7');
  await app.request('/users/7', { headers: { traceparent } });
  await app.request('/users/7', { headers: { traceparent: traceparent.replace(/01$/, '00') } });
  await app.request('/users/7');
  const family = parseExposition(app.metrics.expose('openmetrics'), 'openmetrics')
    .find(({ name }) => name === 'http_request_duration_seconds');
  const exemplars = family?.samples.filter(({ name }) => name.endsWith('_bucket'))
    .map(({ value, exemplar }) => [value, exemplar?.labels]);
  expect(exemplars).toEqual([[4, { trace_id: traceId }], [4, undefined]]);
});
