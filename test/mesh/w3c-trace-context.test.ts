/**
 * The cases of the W3C's own suite for trace context (github.com/w3c/trace-context, `test/test.py`, specification level
 * 2, strict level 2), under its names. It tests a service that records the spans of requests and of calls.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Postern } from 'postern';
import { rawRequest } from '../support/raw.js';

const TRACE = '12345678901234567890123456789012';
const PARENT = '1234567890123456';
const PARENTED = `00-${TRACE}-${PARENT}`;

type Lines = [name: string, value: string][];
interface Sent {
  readonly traceId: string;
  readonly parentId: string;
  readonly flags: number;
  /** Members of tracestate in order. */
  readonly state: readonly string[];
}
interface Step {
  /** Header lines of the request, as sent. */
  readonly lines: Lines;
  /** How many calls the service makes; 1 unless given. */
  readonly calls?: number;
  readonly check: (sent: readonly Sent[]) => void;
}

const parent = (flags = '00', trace = TRACE, id = PARENT): [string, string] =>
  ['traceparent', `00-${trace}-${id}-${flags}`];
const state = (...values: string[]): Lines =>
  [parent(), ...values.map((value): [string, string] => ['tracestate', value])];

const inherited = ([sent]: readonly Sent[]): void => expect(sent?.traceId).toBe(TRACE);
const restarted = ([sent]: readonly Sent[]): void => {
  expect(sent?.traceId).not.toBe(TRACE);
  expect(sent?.parentId).not.toBe(PARENT);
};
const keeps = (...members: string[]) => (sent: readonly Sent[]): void => {
  inherited(sent);
  expect(sent[0]?.state).toEqual(members);
};
const drops = (sent: readonly Sent[]): void => {
  inherited(sent);
  expect(sent[0]?.state).toEqual([]);
};
const step = (check: Step['check'], ...lines: Lines): Step => ({ lines, check });
const each = (check: Step['check'], ...values: string[]): Step[] =>
  values.map((value) => step(check, ['traceparent', value]));

const KEY = 'abcdefghijklmnopqrstuvwxyz0123456789_-*/';
const VALUE = Array.from({ length: 0x7f - 0x20 }, (_, i) => String.fromCharCode(0x20 + i))
  .filter((char) => char !== ',' && char !== '=').join('');
const members = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `bar${String(from + i).padStart(2, '0')}=${from + i}`);
const Z256 = `${'z'.repeat(256)}=1`;

const CASES: Record<string, Step[]> = {
  both_traceparent_and_tracestate_missing: [step(restarted)],
  traceparent_included_tracestate_missing: [
    step((sent) => {
      inherited(sent);
      expect(sent[0]?.parentId).not.toBe(PARENT);
    }, parent('01')),
  ],
  traceparent_duplicated: [
    step(
      (sent) => {
        restarted(sent);
        expect(sent[0]?.traceId).not.toBe(`${TRACE.slice(0, -1)}1`);
      },
      parent('01', `${TRACE.slice(0, -1)}1`),
      parent('01'),
    ),
  ],
  traceparent_header_name: [
    step(restarted, ['trace-parent', `${PARENTED}-01`]),
    step(restarted, ['trace.parent', `${PARENTED}-01`]),
  ],
  traceparent_header_name_valid_casing: ['TraceParent', 'TrAcEpArEnT', 'TRACEPARENT'].map((name) =>
    step(inherited, [name, `${PARENTED}-01`]),
  ),
  traceparent_version_0x00: each(restarted, `${PARENTED}-01.`, `${PARENTED}-01-what-the-future-will-be-like`),
  traceparent_version_0xcc: [
    ...each(inherited, `cc-${TRACE}-${PARENT}-01`, `cc-${TRACE}-${PARENT}-01-what-the-future-will-be-like`),
    ...each(restarted, `cc-${TRACE}-${PARENT}-01.what-the-future-will-be-like`),
  ],
  traceparent_version_0xff: each(restarted, `ff-${TRACE}-${PARENT}-01`),
  traceparent_version_illegal_characters: each(restarted, `.0-${TRACE}-${PARENT}-01`, `0.-${TRACE}-${PARENT}-01`),
  traceparent_version_too_long: each(restarted, `000-${TRACE}-${PARENT}-01`, `0000-${TRACE}-${PARENT}-01`),
  traceparent_version_too_short: each(restarted, `0-${TRACE}-${PARENT}-01`),
  traceparent_trace_id_all_zero: [
    step(([sent]) => expect(sent?.traceId).not.toBe('0'.repeat(32)), parent('01', '0'.repeat(32))),
  ],
  traceparent_trace_id_illegal_characters: each(
    restarted,
    `00-.${TRACE.slice(1)}-${PARENT}-01`,
    `00-${TRACE.slice(0, -1)}.-${PARENT}-01`,
  ),
  traceparent_trace_id_too_long: [
    step(
      (sent) => {
        restarted(sent);
        expect(sent[0]?.traceId).not.toBe(`${TRACE.slice(1)}3`);
      },
      parent('01', `${TRACE}3`),
    ),
  ],
  traceparent_trace_id_too_short: each(restarted, `00-${TRACE.slice(0, -1)}-${PARENT}-01`),
  traceparent_parent_id_all_zero: each(restarted, `00-${TRACE}-${'0'.repeat(16)}-01`),
  traceparent_parent_id_illegal_characters: each(
    restarted,
    `00-${TRACE}-.${PARENT.slice(1)}-01`,
    `00-${TRACE}-${PARENT.slice(0, -1)}.-01`,
  ),
  traceparent_parent_id_too_long: each(restarted, `00-${TRACE}-${PARENT}7-01`),
  traceparent_parent_id_too_short: each(restarted, `00-${TRACE}-${PARENT.slice(1)}-01`),
  traceparent_trace_flags_illegal_characters: each(restarted, `${PARENTED}-.0`, `${PARENTED}-0.`),
  traceparent_trace_flags_too_long: each(restarted, `${PARENTED}-001`),
  traceparent_trace_flags_too_short: each(restarted, `${PARENTED}-1`),
  traceparent_ows_handling: each(
    inherited,
    ` ${PARENTED}-01`,
    `\t${PARENTED}-01`,
    `${PARENTED}-01 `,
    `${PARENTED}-01\t`,
    `\t ${PARENTED}-01 \t`,
  ),
  tracestate_included_traceparent_missing: ['foo=1', 'foo=1,bar=2'].map((value) =>
    step(([sent]) => expect(sent?.state).toEqual([]), ['tracestate', value]),
  ),
  tracestate_included_traceparent_included: [step(keeps('foo=1', 'bar=2'), ...state('foo=1,bar=2'))],
  tracestate_header_name: ['trace-state', 'trace.state'].map((name) => step(drops, parent(), [name, 'foo=1'])),
  tracestate_header_name_valid_casing: ['TraceState', 'TrAcEsTaTe', 'TRACESTATE'].map((name) =>
    step(keeps('foo=1'), parent(), [name, 'foo=1']),
  ),
  tracestate_empty_header: [
    step(drops, ...state('')),
    step(keeps('foo=1'), ...state('foo=1', '')),
    step(keeps('foo=1'), ...state('', 'foo=1')),
  ],
  tracestate_multiple_headers_different_keys: [
    step(keeps('foo=1', 'bar=2', 'rojo=1', 'congo=2', 'baz=3'), ...state('foo=1,bar=2', 'rojo=1,congo=2', 'baz=3')),
  ],
  tracestate_duplicated_keys: [
    step(keeps('foo=1', 'foo=1'), ...state('foo=1,foo=1')),
    step(keeps('foo=1', 'foo=2'), ...state('foo=1,foo=2')),
    step(keeps('foo=1', 'foo=1'), ...state('foo=1', 'foo=1')),
    step(keeps('foo=1', 'foo=2'), ...state('foo=1', 'foo=2')),
  ],
  tracestate_all_allowed_characters: [KEY, `${KEY}@a-z0-9_-*/`].map((key) =>
    step(keeps(`${key}=${VALUE}`), ...state(`${key}=${VALUE}`)),
  ),
  tracestate_ows_handling: [
    ...['foo=1 \t , \t bar=2, \t baz=3', 'foo=1\t \t,\t \tbar=2,\t \tbaz=3'].map((value) =>
      step(keeps('foo=1', 'bar=2', 'baz=3'), ...state(value)),
    ),
    ...[' foo=1', '\tfoo=1', 'foo=1 ', 'foo=1\t', '\t foo=1 \t'].map((value) => step(keeps('foo=1'), ...state(value))),
  ],
  tracestate_key_illegal_characters: ['foo =1', 'FOO=1', 'foo.bar=1'].map((value) => step(drops, ...state(value))),
  tracestate_key_illegal_vendor_format: [
    step(drops, ...state('@foo=1,bar=2')),
    ...['foo@', 'foo@@bar', 'foo@bar@baz'].map((key) => step(keeps(`${key}=1`, 'bar=2'), ...state(`${key}=1,bar=2`))),
  ],
  tracestate_member_count_limit: [
    step(
      keeps(...members(1, 32)),
      ...state(members(1, 10).join(), members(11, 20).join(), members(21, 30).join(), members(31, 32).join()),
    ),
    step(
      drops,
      ...state(members(1, 10).join(), members(11, 20).join(), members(21, 30).join(), members(31, 33).join()),
    ),
  ],
  tracestate_key_length_limit: [
    step(drops, ...state('foo=1', `z${Z256}`)),
    ...[Z256, `${'t'.repeat(241)}@${'v'.repeat(14)}=1`, `${'t'.repeat(242)}@v=1`, `t@${'v'.repeat(15)}=1`].map(
      (value) => step(keeps('foo=1', value), ...state('foo=1', value)),
    ),
  ],
  tracestate_value_illegal_characters: ['foo=bar=baz', 'foo=,bar=3'].map((value) => step(drops, ...state(value))),
  multiple_requests_with_valid_traceparent: [{
    lines: [parent('01')],
    calls: 3,
    check: (sent) => {
      expect(new Set(sent.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
      expect(new Set(sent.map(({ parentId }) => parentId)).size).toBe(3);
    },
  }],
  multiple_requests_without_traceparent: [
    { lines: [], calls: 3, check: (sent) => expect(new Set(sent.map(({ parentId }) => parentId)).size).toBe(3) },
  ],
  multiple_requests_with_illegal_traceparent: [{
    lines: [parent('01', '0'.repeat(32))],
    calls: 3,
    check: (sent) => {
      expect(sent.map(({ traceId }) => traceId)).not.toContain('0'.repeat(32));
      expect(new Set(sent.map(({ parentId }) => parentId)).size).toBe(3);
    },
  }],
  propagates_random_flag: [
    step((sent) => {
      inherited(sent);
      expect((sent[0]?.flags ?? 0) & 2).toBe(2);
      expect(sent[0]?.parentId).not.toBe(PARENT);
    }, parent('02')),
  ],
};

const noop = (): void => undefined;
const channels = [tracingChannel('postern.request'), tracingChannel('postern.call')];
const subscribers = { start: noop, end: noop, asyncStart: noop, asyncEnd: noop, error: noop };
const received: Record<string, string | undefined>[] = [];
const harness = new Postern('harness', { logger: false, attachMonitorEndpoints: false });
let service: Postern;
let port = 0;

beforeAll(async () => {
  harness.get('/', (ctx) => void received.push({ ...ctx.headers } as Record<string, string>));
  const { url } = await harness.listen({ host: '127.0.0.1', port: 0 });
  service = new Postern('service', { logger: false, settings: { SERVICE_CONNECTIONS: [`harness=${url}`] } });
  service.get('/:calls', async (ctx) => {
    for (let left = Number(ctx.params.calls); left > 0; left -= 1) await ctx.service('harness').get('/');
  });
  ({ port } = await service.listen({ host: '127.0.0.1', port: 0 }));
  for (const channel of channels) channel.subscribe(subscribers);
});
afterAll(async () => {
  for (const channel of channels) channel.unsubscribe(subscribers);
  await service.close();
  await harness.close();
});

function read(headers: Record<string, string | undefined>): Sent {
  const [, traceId, parentId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(headers['traceparent'] ?? '') ?? [];
  if (traceId === undefined || parentId === undefined || flags === undefined)
    throw new Error(`traceparent is ${headers['traceparent']}`);
  const list = (headers['tracestate'] ?? '').split(',').map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''));
  return { traceId, parentId, flags: Number.parseInt(flags, 16), state: list.filter((member) => member !== '') };
}

test('there are as many cases as in the suite', () => expect(Object.keys(CASES)).toHaveLength(41));

test.for(Object.entries(CASES))('%s', async ([, steps]) => {
  for (const { lines, calls = 1, check } of steps) {
    received.length = 0;
    const head = [
      `GET /${calls} HTTP/1.1`,
      'Host: x',
      'Connection: close',
      ...lines.map(([name, value]) => `${name}: ${value}`),
    ];
    expect((await rawRequest(port, `${head.join('\r\n')}\r\n\r\n`)).status).toBe(204);
    expect(received).toHaveLength(calls);
    check(received.map(read));
  }
});
