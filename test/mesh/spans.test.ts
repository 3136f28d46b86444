/** Traces across services: passed through as they are, or one span for each hop where somebody records them. */

import { tracingChannel } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import type { Context, RequestTraceMessage } from 'postern';
import { startMesh } from '../support/mesh.js';
import { createApp } from '../support/serve.js';

const forward = (service: string) => async (ctx: Context) => (await ctx.service(service).get('/work')).body;

/** a → b → c; c answers with the headers that it got. */
async function startChain(): Promise<(headers: Record<string, string>) => Promise<Record<string, string>>> {
  const mesh = await startMesh({ a: ['b'], b: ['c'], c: [] });
  mesh.a.app.get('/work', forward('b'));
  mesh.b.app.get('/work', forward('c'));
  mesh.c.app.get('/work', (ctx) => ctx.headers);
  return async (headers) => (await (await fetch(`${mesh.a.url}/work`, { headers })).json()) as Record<string, string>;
}

function record(): RequestTraceMessage[] {
  const started: RequestTraceMessage[] = [];
  const { start } = tracingChannel<RequestTraceMessage, RequestTraceMessage>('postern.request');
  const onStart = (message: unknown): void => void started.push(message as RequestTraceMessage);
  start.subscribe(onStart);
  onTestFinished(() => void start.unsubscribe(onStart));
  return started;
}

const VALID = '00-12345678901234567890123456789012-1234567890123456-00';
test.for<Record<string, string>>([
  {},
  { traceparent: VALID },
  { traceparent: VALID, tracestate: 'vendor=1, other=2' },
  { traceparent: 'cc-12345678901234567890123456789012-1234567890123456-ff-more', tracestate: 'a=1' },
  { baggage: 'user=7;ttl=1, a=b' },
  { baggage: `long=${'x'.repeat(8187)}` },
])('while nobody records spans %j goes through two services unchanged, and nothing is added', async (headers) => {
  const { traceparent, tracestate, baggage } = await (await startChain())(headers);
  expect(JSON.parse(JSON.stringify({ traceparent, tracestate, baggage }))).toEqual(headers);
});

test('a subscriber sees one span for each hop, each below a span of the hop before, and the last one is on the wire', async () => {
  const call = await startChain();
  const started = record();
  const { traceparent, tracestate } = await call({ traceparent: VALID.replace(/00$/, '01'), tracestate: 'a=1', baggage: 'b=2' });
  const traces = started.map(({ trace }) => trace);
  expect(traces).toHaveLength(3);
  expect(new Set(traces.map(({ traceId, flags }) => `${traceId} ${flags}`))).toEqual(new Set(['12345678901234567890123456789012 01']));
  expect(traces[0]?.parentId).toBe('1234567890123456');
  expect(new Set(traces.flatMap(({ spanId, parentId }) => [spanId, parentId])).size).toBe(6);
  expect(traceparent).toBe(`00-${traces[2]?.traceId}-${traces[2]?.parentId}-01`);
  expect(tracestate).toBe('a=1');
  expect(started.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET']);
});

test('with a subscriber a request without a trace begins a sampled one, which every hop is of', async () => {
  const call = await startChain();
  const started = record();
  const { traceparent } = await call({ tracestate: 'a=1' });
  const traces = started.map(({ trace }) => trace);
  expect(traces[0]).toEqual({ traceId: expect.stringMatching(/^[0-9a-f]{32}$/), spanId: expect.stringMatching(/^[0-9a-f]{16}$/), parentId: undefined, flags: '03' });
  expect(new Set(traces.map(({ traceId }) => traceId)).size).toBe(1);
  expect(traceparent).toMatch(new RegExp(`^00-${traces[0]?.traceId}-[0-9a-f]{16}-03$`));
});

test('the trace of a sampled request is the exemplar of its duration, of another it is not', async () => {
  const app = createApp().get('/work', () => 'done');
  for (const traceparent of [VALID, VALID.replace(/00$/, '01')]) await app.request('/work', { headers: { traceparent } });
  const text = await (await app.request('/users/metrics/', { headers: { accept: 'application/openmetrics-text' } })).text();
  expect([...text.matchAll(/^http_request_duration_seconds_bucket.*# \{trace_id="(.*?)"\}/gm)].map(([, id]) => id)).toEqual(['12345678901234567890123456789012']);
  expect(await (await app.request('/users/metrics/')).text()).not.toContain('trace_id');
});
