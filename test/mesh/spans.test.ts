/** Traces across services: passed through as they are, or one span for each hop where somebody records them. */

import { tracingChannel } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import type { CallTraceMessage, Context, RequestTraceMessage, TraceSpan } from 'postern';
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

/** Subscribes to `postern.call`. @returns spans of attempts */
function recordCalls(): (TraceSpan | undefined)[] {
  const spans: (TraceSpan | undefined)[] = [];
  const { start } = tracingChannel<CallTraceMessage, CallTraceMessage>('postern.call');
  const onStart = (message: unknown): void => void spans.push((message as CallTraceMessage).trace);
  start.subscribe(onStart);
  onTestFinished(() => void start.unsubscribe(onStart));
  return spans;
}

test.for([
  { recorded: 'requests', ids: 4 },
  { recorded: 'requests and calls', ids: 6 },
  { recorded: 'calls', ids: 0 },
])(
  'with a subscriber to $recorded every parent that a trace names is a span that somebody recorded',
  async ({ recorded, ids }) => {
    const call = await startChain();
    const requests = recorded.includes('requests') ? record() : [];
    const attempts = recorded.includes('calls') ? recordCalls() : [];
    const sampled = VALID.replace(/00$/, '01');
    const { traceparent, tracestate } = await call({ traceparent: sampled, tracestate: 'a=1', baggage: 'b=2' });
    const spans = [...requests.map(({ trace }) => trace), ...attempts].filter((span) => span !== undefined);
    expect(new Set(spans.flatMap(({ spanId, parentId }) => [spanId, parentId])).size).toBe(ids);
    expect(new Set(spans.map(({ traceId, flags }) => `${traceId} ${flags}`)).size).toBe(ids === 0 ? 0 : 1);
    const known = new Set(['1234567890123456', ...spans.map(({ spanId }) => spanId)]);
    for (const { parentId } of spans) expect(known).toContain(parentId);
    // The last service records nothing below itself: what reaches it is the innermost span of the one before.
    const innermost = attempts.at(-1)?.spanId ?? requests[1]?.trace.spanId;
    expect(traceparent).toBe(ids === 0 ? sampled : `00-12345678901234567890123456789012-${innermost}-01`);
    expect(tracestate).toBe('a=1');
    expect(requests.map(({ method }) => method)).toEqual(requests.map(() => 'GET'));
  },
);

test('a subscriber that clears the sampled flag at start clears it for every hop after', async () => {
  const call = await startChain();
  const { start } = tracingChannel<RequestTraceMessage, RequestTraceMessage>('postern.request');
  const onStart = (message: unknown): void => void ((message as RequestTraceMessage).trace.flags = '00');
  start.subscribe(onStart);
  onTestFinished(() => void start.unsubscribe(onStart));
  expect((await call({ traceparent: VALID.replace(/00$/, '01') }))['traceparent']).toMatch(/-00$/);
});

test('with a subscriber a request without a trace begins a sampled one, which every hop is of', async () => {
  const call = await startChain();
  const started = record();
  const { traceparent } = await call({ tracestate: 'a=1' });
  const traces = started.map(({ trace }) => trace);
  expect(traces[0]).toEqual({
    traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
    spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
    parentId: undefined,
    flags: '03',
  });
  expect(new Set(traces.map(({ traceId }) => traceId)).size).toBe(1);
  expect(traceparent).toMatch(new RegExp(`^00-${traces[0]?.traceId}-[0-9a-f]{16}-03$`));
});

test('the trace of a sampled request is the exemplar of its duration, of another it is not', async () => {
  const app = createApp().get('/work', () => 'done');
  for (const traceparent of [VALID, VALID.replace(/00$/, '01')])
    await app.request('/work', { headers: { traceparent } });
  const text = await (await app.request('/users/metrics/', { headers: { accept: 'application/openmetrics-text' } }))
    .text();
  expect([...text.matchAll(/^http_request_duration_seconds_bucket.*# \{trace_id="(.*?)"\}/gm)].map(([, id]) => id))
    .toEqual(['12345678901234567890123456789012']);
  expect(await (await app.request('/users/metrics/')).text()).not.toContain('trace_id');
});
