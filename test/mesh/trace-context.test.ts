import type { IncomingHttpHeaders } from 'node:http';
import { expect, test } from 'vitest';
import { parseTraceContext, traceHeaders } from '../../src/mesh/trace-context.js';

const TRACE = '12345678901234567890123456789012';
const PARENT = '1234567890123456';
const VALID = `00-${TRACE}-${PARENT}-01`;

const propagate = (headers: IncomingHttpHeaders): Record<string, string> => traceHeaders(parseTraceContext(headers));
const tracestateOf = (tracestate: string): string | undefined => propagate({ traceparent: VALID, tracestate })['tracestate'];

test('the trace id and flags are passed on with a parent id of its own for each request', () => {
  const trace = parseTraceContext({ traceparent: VALID });
  const sent = [traceHeaders(trace), traceHeaders(trace)].map(({ traceparent = '' }) => traceparent.split('-'));
  for (const [version, traceId, parentId, flags] of sent) {
    expect({ version, traceId, flags }).toEqual({ version: '00', traceId: TRACE, flags: '01' });
    expect(parentId).toMatch(/^[0-9a-f]{16}$/);
    expect(parentId).not.toBe(PARENT);
  }
  expect(sent[0]?.[2]).not.toBe(sent[1]?.[2]);
});

test.for([
  { flags: '00', passed: '00' },
  { flags: '02', passed: '02' },
  { flags: '03', passed: '03' },
  { flags: 'ff', passed: '03' },
  { flags: '04', passed: '00' },
])('flags $flags go on as $passed', ({ flags, passed }) => {
  expect(propagate({ traceparent: `00-${TRACE}-${PARENT}-${flags}` })['traceparent']).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-${passed}$`));
});

test.for([`cc-${TRACE}-${PARENT}-01`, `cc-${TRACE}-${PARENT}-01-what-the-future-will-be-like`, `01-${TRACE}-${PARENT}-01-`])('the later version %j is understood and goes on as version 00', (traceparent) => {
  expect(propagate({ traceparent, tracestate: 'a=1' })).toMatchObject({ traceparent: expect.stringMatching(new RegExp(`^00-${TRACE}-`)), tracestate: 'a=1' });
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
])('%j begins a new trace without a tracestate', (traceparent) => {
  const sent = propagate({ tracestate: 'a=1', ...(traceparent === undefined ? {} : { traceparent }) });
  expect(sent['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-02$/);
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

test.for(['', ' ', ', ,', 'foo', 'foo=', 'foo=,bar=3', 'foo =1', 'FOO=1', 'foo.bar=1', '@foo=1,bar=2', '_foo=1', 'foo=bar=baz', 'foo=é', 'foo=1\u0001', `${'z'.repeat(257)}=1,foo=1`, `foo=${'x'.repeat(257)}`, members(33)])(
  'the tracestate %j is dropped, not the trace',
  (tracestate) => {
    const sent = propagate({ traceparent: VALID, tracestate });
    expect(sent['traceparent']).toContain(TRACE);
    expect(sent).not.toHaveProperty('tracestate');
  },
);

test('baggage goes on as it came, with or without a trace, up to 8192 bytes', () => {
  expect(propagate({ baggage: 'user=7;ttl=1, a=b' })['baggage']).toBe('user=7;ttl=1, a=b');
  expect(propagate({ traceparent: VALID, baggage: 'x'.repeat(8192) })['baggage']).toHaveLength(8192);
  for (const baggage of ['', 'x'.repeat(8193), 'a=é', 'a=\u0001']) expect(propagate({ baggage })).not.toHaveProperty('baggage');
});

test.for([' ', '\t', ',', 'a', '=', '-', '0', 'a=1,', 'a= ', ' ,', `${VALID}, `, '@'])('16 KiB of %j are read in linear time', (unit) => {
  const hostile = (bytes: number): IncomingHttpHeaders => {
    const text = unit.repeat(Math.ceil(bytes / unit.length));
    return { traceparent: text, tracestate: text, baggage: text };
  };
  for (const prefix of ['', VALID]) {
    for (const suffix of ['', '!', '=']) {
      const headers = hostile(16_384);
      headers.traceparent = prefix === '' ? headers.traceparent + suffix : prefix;
      headers.tracestate += suffix;
      const startedMs = performance.now();
      parseTraceContext(headers);
      // A thousand times what it takes; quadratic time would be a million.
      expect(performance.now() - startedMs).toBeLessThan(500);
    }
  }
});
