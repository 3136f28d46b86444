import type { IncomingHttpHeaders } from 'node:http';
import { expect, test } from 'vitest';
import {
  beginCallSpan, beginRequestSpan, outgoingHeaders, RequestSpan, sampledTraceId,
} from '../../src/propagation/trace-context.js';

const TRACE = '12345678901234567890123456789012';
const PARENT = '1234567890123456';
const VALID = `00-${TRACE}-${PARENT}-01`;

/** What a call takes along on behalf of a request with these headers. */
function propagate(headers: IncomingHttpHeaders): Record<string, string> {
  const span = beginCallSpan(beginRequestSpan(headers));
  const { 'x-request-id': _id, ...sent } = outgoingHeaders({ id: 'a', headers }, span);
  return sent;
}
const tracestateOf = (tracestate: string): string | undefined =>
  propagate({ traceparent: VALID, tracestate })['tracestate'];

test('a request is a span below the one that its traceparent names, a call one below the request', () => {
  const span = beginRequestSpan({ traceparent: VALID });
  const calls = [beginCallSpan(span), beginCallSpan(span)];
  expect(span).toEqual({
    traceId: TRACE,
    spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
    parentId: PARENT,
    flags: '01',
  });
  for (const call of calls)
    expect(call).toEqual({
      traceId: TRACE,
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      parentId: span.spanId,
      flags: '01',
    });
  expect(new Set([PARENT, span.spanId, ...calls.map(({ spanId }) => spanId)]).size).toBe(4);
});

test('a sampler decides by digits of the trace id, so the next service decides alike', () => {
  for (let count = 0; count < 1000; count += 1) {
    const half = 2 ** 47;
    const span = new RequestSpan({}, ({ chance }) => chance >= half);
    const { traceId, spanId, parentId, flags } = span;
    expect(`${traceId}-${spanId}`).toMatch(/^[0-9a-f]{32}-[0-9a-f]{16}$/);
    expect([span.traceId, span.spanId, parentId]).toEqual([traceId, spanId, undefined]);
    expect(flags).toBe(Number.parseInt(traceId.slice(18, 30), 16) >= half ? '03' : '02');
    const next = new RequestSpan({ traceparent: `00-${traceId}-${spanId}-${flags}` });
    expect([next.traceId, next.parentId, next.chance]).toEqual([traceId, spanId, span.chance]);
  }
});

test.for([
  { flags: '00', passed: '00' },
  { flags: '02', passed: '02' },
  { flags: '03', passed: '03' },
  { flags: 'ff', passed: '03' },
  { flags: '04', passed: '00' },
])('flags $flags go on as $passed', ({ flags, passed }) => {
  expect(propagate({ traceparent: `00-${TRACE}-${PARENT}-${flags}` })['traceparent'])
    .toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-${passed}$`));
});

test.for([
  `cc-${TRACE}-${PARENT}-01`,
  `cc-${TRACE}-${PARENT}-01-what-the-future-will-be-like`,
  `01-${TRACE}-${PARENT}-01-`,
])('the later version %j is understood and goes on as version 00', (traceparent) => {
  expect(propagate({ traceparent, tracestate: 'a=1' }))
    .toMatchObject({ traceparent: expect.stringMatching(new RegExp(`^00-${TRACE}-`)), tracestate: 'a=1' });
});

test.for([
  undefined,
  '',
  ' ',
  `${VALID}.`,
  `${VALID}-what`,
  `${VALID}-`,
  `cc-${TRACE}-${PARENT}-01.what`,
  `ff-${TRACE}-${PARENT}-01`,
  `0-${TRACE}-${PARENT}-01`,
  `000-${TRACE}-${PARENT}-01`,
  `.0-${TRACE}-${PARENT}-01`,
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.slice(1)}-${PARENT}-01`,
  `00-${TRACE}0-${PARENT}-01`,
  `00-${TRACE}-${PARENT}0-01`,
  `00-${TRACE}-${PARENT}-1`,
  `00-${TRACE}-${PARENT}-001`,
  `00-${TRACE}-${PARENT}-0A`,
  `00-A${TRACE.slice(1)}-${PARENT}-01`,
  `00_${TRACE}_${PARENT}_01`,
  `${VALID}, ${VALID}`,
  `cc-${TRACE}-${PARENT}-01-x, cc-${TRACE}-${PARENT}-01`,
  ` ${VALID}`,
])('%j begins a new sampled trace without a tracestate', (traceparent) => {
  const headers = { tracestate: 'a=1', ...(traceparent === undefined ? {} : { traceparent }) };
  expect(beginRequestSpan(headers).parentId).toBeUndefined();
  const sent = propagate(headers);
  expect(sent['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-03$/);
  expect(sent['traceparent']).not.toContain(TRACE);
  expect(sent).not.toHaveProperty('tracestate');
});

const members = (count: number): string => Array.from({ length: count }, (_, i) => `bar${i}=${i}`).join(',');
test.for([
  'foo=1',
  'foo=1,bar=2',
  'foo=1,foo=1',
  'foo=1 \t , \t bar=2, \t baz=3',
  ',foo=1,,',
  '0a=1',
  'foo@=1,bar=2',
  'foo@bar@baz=1',
  `${'z'.repeat(256)}=1`,
  `foo=${' '.repeat(255)}x`,
  'abc_-*/@09=!"#$%&\'()*+-./:;<>?@[\\]^_`{|}~',
  members(32),
])('the tracestate %j goes on as it came', (tracestate) => {
  expect(tracestateOf(tracestate)).toBe(tracestate);
});

test.for([
  '',
  ' ',
  ', ,',
  'foo',
  'foo=',
  'foo=,bar=3',
  'foo =1',
  'FOO=1',
  'foo.bar=1',
  '@foo=1,bar=2',
  '_foo=1',
  'foo=bar=baz',
  'foo=é',
  'foo=1\u0001',
  `${'z'.repeat(257)}=1,foo=1`,
  `foo=${'x'.repeat(257)}`,
  members(33),
])('the tracestate %j is dropped, not the trace', (tracestate) => {
  const sent = propagate({ traceparent: VALID, tracestate });
  expect(sent['traceparent']).toContain(TRACE);
  expect(sent).not.toHaveProperty('tracestate');
});

test.for([' ', '\t', ',', 'a', '=', '-', '0', 'a=1,', 'a= ', ' ,', `${VALID}, `, '@'])(
  '1 MiB of %j are read in linear time',
  (unit) => {
    const hostile = (bytes: number): IncomingHttpHeaders => {
      const text = unit.repeat(Math.ceil(bytes / unit.length));
      return { traceparent: text, tracestate: text };
    };
    for (const prefix of ['', VALID]) {
      for (const suffix of ['', '!', '=']) {
        const headers = hostile(1_048_576);
        headers.traceparent = prefix === '' ? headers.traceparent + suffix : prefix;
        headers.tracestate += suffix;
        // In quadratic time it takes many minutes, more than a test has.
        propagate(headers);
      }
    }
  },
);

test.for([
  { headers: { host: 'x', traceparent: VALID }, id: TRACE },
  { headers: { traceparent: VALID.replace(/01$/, '03') }, id: TRACE },
  { headers: { traceparent: VALID.replace(/01$/, '02') }, id: undefined },
  { headers: { traceparent: `${VALID}.` }, id: undefined },
  // node:http joins two fields of one name. They name no trace, for a span neither.
  { headers: { traceparent: `${VALID}, ${VALID}` }, id: undefined },
  { headers: { tracestates: VALID }, id: undefined },
  { headers: {}, id: undefined },
])('the headers $headers are of the sampled trace $id', ({ headers, id }) => {
  expect(sampledTraceId(undefined, headers)).toBe(id);
});
