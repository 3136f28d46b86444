/**
 * Random header fields and targets over real sockets: what the framework reads out of them against oracles that know
 * how they were made.
 */

import { channel } from 'node:diagnostics_channel';
import { gunzipSync } from 'node:zlib';
import { Postern, type Context } from 'postern';
import { parseExposition } from '../support/exposition-parser.js';
import { cut, oneIn, several, type Random } from '../support/random.js';
import { assertUniformError, WireConnection, type WireResponse } from '../support/strict-client.js';
import { assert, assertLinear, assertSame, type Target } from './target.js';

/** One request, and what its answer must be. */
interface Case {
  readonly outcome: string;
  readonly bytes: string;
  readonly method: string;
  /** @throws when the answer is another */
  readonly check: (response: WireResponse) => void;
}

type Make = (random: Random, trusted: readonly Network[]) => Case;

const SECRET = 'never-passed-on';

export const headers: Target = {
  name: 'headers',
  outcomes: [
    'address', 'request id', 'accept', 'accept gzip', 'trace', 'no trace', 'content type', 'wrong content type', 'host',
    'wrong host', 'target', 'wrong target', 'junk',
  ],
  async run(random, met) {
    const trusted = randomNetworks(random);
    const echo = new Postern('echo', { logger: false }).get('/', (ctx) => ctx.headers);
    const { url } = await echo.listen({ host: '127.0.0.1', port: 0 });
    const app = createApp(trusted, url);
    // What reads a trace at all is a service that records its spans.
    channel('tracing:postern.request:start').subscribe(ignore);
    try {
      const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
      const cases = several(random, 30, 60, () => random.pick(MAKERS)(random, trusted));
      await ask(random, port, cases, met);
      for (let count = 4; count > 0; count -= 1) await checkLongField(random, port);
    } finally {
      channel('tracing:postern.request:start').unsubscribe(ignore);
      await Promise.all([app.close({ timeout: 0 }), echo.close({ timeout: 0 })]);
    }
  },
};

function ignore(): void {}

function createApp(trusted: readonly Network[], echo: string): Postern {
  const app = new Postern('fuzz', {
    logger: false,
    trustProxy: trusted.map(({ cidr }) => cidr),
    settings: { SERVICE_CONNECTIONS: [`echo=${echo}`] },
  });
  const probe = (ctx: Context): object => ({ ip: ctx.ip, id: ctx.id, path: ctx.path, query: [...ctx.query] });
  app.get('/', probe).get('/*rest', probe);
  app.get('/trace', async (ctx) => ({ id: ctx.id, sent: (await ctx.service('echo').get('/')).body }));
  app.post('/json', (ctx) => ctx.json());
  app.post('/form', async (ctx) => [...(await ctx.form())]);
  return app;
}

/** What may end its connection; anything sent behind it could make the client lose the answers before. */
const CLOSING: ReadonlySet<string> = new Set(['host', 'wrong host', 'wrong target', 'junk']);

/** Sends all requests, pipelined up to one whose answer may close the connection. */
async function ask(
  random: Random,
  port: number,
  cases: readonly Case[],
  met: (outcome: string) => void,
): Promise<void> {
  let connection = await WireConnection.open(port);
  for (let from = 0, to = 0; from < cases.length; from = to) {
    do to += 1;
    while (to < cases.length && !CLOSING.has(cases[to - 1]?.outcome ?? ''));
    const group = cases.slice(from, to);
    const written = connection.write(
      ...cut(random, Buffer.from(group.map(({ bytes }) => bytes).join(''), 'latin1'), 3),
    );
    for (const one of group) {
      const response = await connection.finalResponse(one.method);
      const request = JSON.stringify(one.bytes.slice(0, 1000));
      assert(response !== null, `no answer to ${request}`);
      try {
        one.check(response);
      } catch (error) {
        throw new Error(
          `${request} was answered with ${response.status} ${JSON.stringify(response.headers)} ${response.body.toString('latin1').slice(0, 500)}`,
          { cause: error },
        );
      }
      met(one.outcome);
      if (response.headers['connection'] !== 'close') continue;
      assert(one === group.at(-1), `the connection was closed behind ${request}`);
      await connection.destroy();
      connection = await WireConnection.open(port);
    }
    await written;
  }
  await connection.destroy();
}

function get(target: string, fields: readonly string[], method = 'GET'): string {
  return `${method} ${target} HTTP/1.1\r\n${['Host: x', ...fields].map((field) => `${field}\r\n`).join('')}\r\n`;
}

function post(target: string, fields: readonly string[], body: string): string {
  return `${get(target, [...fields, `Content-Length: ${body.length}`], 'POST')}${body}`;
}

function json(response: WireResponse): Record<string, unknown> {
  assertSame(response.status, 200, 'the status');
  return JSON.parse(response.body.toString('utf8')) as Record<string, unknown>;
}

function isRefused(response: WireResponse, statuses: readonly number[]): void {
  assert(statuses.includes(response.status), `status ${response.status} is none of ${statuses.join()}`);
  assertUniformError(response);
}

function upperCaseSome(random: Random, text: string): string {
  return oneIn(random, 3) ? [...text].map((char) => (oneIn(random, 2) ? char.toUpperCase() : char)).join('') : text;
}

function ows(random: Random): string {
  return oneIn(random, 3) ? random.pick([' ', '\t', '  ', ' \t ']) : '';
}

const NAME_CHARS = [...'abcdefghijklmnopqrstuvwxyzABC0123456789._-'];
/** All that a field may hold; without the no-break space, which `trim()` takes for a space. */
const FIELD_CHARS = [
  '\t',
  ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(0x20 + i)),
  ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(0xa1 + i)),
];

function junk(random: Random, most: number): string {
  return several(random, 0, most, () => random.pick(FIELD_CHARS)).join('').replace(/^[ \t]+|[ \t]+$/g, '');
}

// Client address.

interface Network {
  readonly cidr: string;
  readonly base: bigint;
  /** Of 128. */
  readonly bits: number;
}

const ADDRESSES = [
  '127.0.0.1', '10.1.2.3', '10.255.255.255', '11.0.0.0', '192.168.0.1', '172.16.5.4', '0.0.0.0', '255.255.255.255',
  '::1', '::', 'fe80::1', '2001:db8::1', '2001:0DB8:0:0::1', 'fd00::ab:cd', '::ffff:10.1.2.3', '::FFFF:127.0.0.1',
  '::ffff:0a01:0203', '0:0:0:0:0:ffff:10.1.2.3', '64:ff9b::10.1.2.3', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7::',
];
const NO_ADDRESSES = [
  '', 'unknown', '10.1.2', '10.1.2.3.4', '010.1.2.3', '10.1.2.256', '10.1.2.3:80', '[::1]', '[::1]:80', '::1::',
  '1:2:3:4:5:6:7:8:9', ':::', 'g::1', '10.1.2.3/8', '"10.1.2.3"', 'for=10.1.2.3', '0x0a.1.2.3', '::ffff:10.1.2.999',
  '12345::', '1.1.1.1 2.2.2.2', '_hidden', '-1.0.0.0', '::ffff:1.2.3', '１.1.1.1'.replace('１', '\xb9'),
];

function randomAddress(random: Random): string {
  switch (random.int(4)) {
    case 0:
      return several(random, 4, 4, () => random.pick([0, 1, 10, 127, 168, 192, 254, 255, random.int(256)])).join('.');
    case 1: {
      const groups = several(random, 8, 8, () =>
        random.pick([0, 0, 1, 0xffff, 0x2001, 0xdb8, random.int(65_536)]).toString(16),
      );
      if (oneIn(random, 2)) return groups.join(':');
      const start = random.int(8);
      const length = 1 + random.int(8 - start);
      return `${groups.slice(0, start).join(':')}::${groups.slice(start + length).join(':')}`;
    }
    default:
      return random.pick(ADDRESSES);
  }
}

/** As a number of 128 bits, IPv4 mapped into IPv6; null for what is no address. */
function parseAddress(text: string): bigint | null {
  const v4 = (part: string): bigint | null => {
    const octets = part.split('.');
    if (octets.length !== 4 || octets.some((octet) => !/^(?:0|[1-9]\d{0,2})$/.test(octet) || Number(octet) > 255))
      return null;
    return octets.reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n);
  };
  if (!text.includes(':')) {
    const number = v4(text);
    return number === null ? null : 0xffff_0000_0000n | number;
  }
  let rest = text;
  let tail: string[] = [];
  const dotted = text.slice(text.lastIndexOf(':') + 1);
  if (dotted.includes('.')) {
    const number = v4(dotted);
    if (number === null) return null;
    tail = [(number >> 16n).toString(16), (number & 0xffffn).toString(16)];
    rest = text.slice(0, text.length - dotted.length);
    if (!rest.endsWith('::')) rest = rest.slice(0, -1);
  }
  const halves = rest.split('::');
  if (halves.length > 2) return null;
  const [left = [], right] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const after = [...(right ?? []), ...tail];
  const before = right === undefined ? [...left, ...tail] : left;
  const groups =
    right === undefined
      ? before
      : [...before, ...Array.from({ length: 8 - before.length - after.length }, () => '0'), ...after];
  if (
    groups.length !== 8 ||
    (right !== undefined && before.length + after.length > 7) ||
    groups.some((group) => !/^[0-9A-Fa-f]{1,4}$/.test(group))
  )
    return null;
  return groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

function randomNetworks(random: Random): Network[] {
  const networks = several(random, 0, 4, () => randomNetwork(random));
  return oneIn(random, 6) ? networks : [{ cidr: '127.0.0.0/8', base: 0xffff_7f00_0000n, bits: 104 }, ...networks];
}

function randomNetwork(random: Random): Network {
  const address = randomAddress(random);
  const base = parseAddress(address);
  assert(base !== null, `${address} is no address`);
  const most = address.includes(':') ? 128 : 32;
  const bits = oneIn(random, 3) ? most : random.int(most + 1);
  return { cidr: bits === most && oneIn(random, 2) ? address : `${address}/${bits}`, base, bits: bits + 128 - most };
}

function isTrusted(address: string, trusted: readonly Network[]): boolean {
  const number = parseAddress(address);
  return (
    number !== null && trusted.some(({ base, bits }) => number >> BigInt(128 - bits) === base >> BigInt(128 - bits))
  );
}

function expectedAddress(forwarded: readonly string[], trusted: readonly Network[]): string {
  let client = '127.0.0.1';
  for (const entry of forwarded.toReversed()) {
    const address = /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(entry) ? entry.slice(7) : entry;
    if (!isTrusted(client, trusted) || parseAddress(address) === null) break;
    client = address;
  }
  return client;
}

const addressCase: Make = (random, trusted) => {
  const inside = trusted.map(({ cidr }) => cidr.replace(/\/\d+$/, ''));
  const entry = (): string =>
    oneIn(random, 12)
      ? random.pick(NO_ADDRESSES)
      : oneIn(random, 2) && inside.length > 0
        ? random.pick(inside)
        : randomAddress(random);
  const entries = several(random, 0, 6, entry);
  const text = entries.map((one) => `${ows(random)}${one}${ows(random)}`);
  // Fields of one name are one list.
  const at = random.int(text.length + 1);
  const lists = oneIn(random, 3) ? [text.slice(0, at), text.slice(at)] : [text];
  const fields =
    entries.length === 0 && oneIn(random, 2)
      ? []
      : lists.map((list) => `${upperCaseSome(random, 'x-forwarded-for')}: ${list.join(',')}`);
  const known = lists.flatMap((list) => (list.length === 0 ? [''] : list.map((one) => one.trim())));
  return {
    outcome: 'address',
    method: 'GET',
    bytes: get('/', fields),
    check: (response) =>
      assertSame(
        json(response)['ip'],
        expectedAddress(fields.length === 0 ? [] : known, trusted),
        'ctx.ip',
        trusted.map(({ cidr }) => cidr),
      ),
  };
};

// Request id.

function isRequestId(text: string): boolean {
  return (
    text.length >= 1 &&
    text.length <= 128 &&
    [...text].every((char) => /[A-Za-z0-9]/.test(char) || '._-'.includes(char))
  );
}

const idCase: Make = (random) => {
  const id = oneIn(random, 3)
    ? junk(random, 20)
    : several(random, 1, oneIn(random, 4) ? 132 : 30, () => random.pick(NAME_CHARS)).join('') +
      (oneIn(random, 6) ? random.pick([' a', ',', '\t.', ':', 'é'.normalize('NFC')]) : '');
  const isError = oneIn(random, 2);
  const twice = oneIn(random, 8);
  const fields = [`X-Request-Id: ${id}`, ...(twice ? ['x-request-id: a'] : [])];
  const kept = isRequestId(id) && !twice;
  return {
    outcome: 'request id',
    method: 'GET',
    bytes: get(isError ? '/%zz' : '/', fields),
    check(response) {
      if (isError) isRefused(response, [400]);
      const seen = isError ? response.headers['x-request-id'] : json(response)['id'];
      assert(typeof seen === 'string' && isRequestId(seen), `the id ${String(seen)}`);
      assertSame(seen === id, kept, 'whether the id is kept', { id, seen });
    },
  };
};

// Accept and Accept-Encoding.

interface Range {
  readonly name: string;
  readonly version: string | undefined;
  readonly q: string | undefined;
}

const QUALITIES = [
  undefined, undefined, '0', '0.', '0.5', '0.50', '0.501', '0.1', '0.999', '1', '1.', '1.000', '0.000', '0.001', '2',
  '-1', '1.001', 'abc', '', '0.1234', '.5', '1e0', '+1', 'NaN',
];

function qualityOf(q: string | undefined): number {
  if (q === undefined) return 1;
  const [whole, decimals = '', ...rest] = q.split('.');
  const valid =
    (whole === '0' || whole === '1') &&
    rest.length === 0 &&
    decimals.length <= 3 &&
    [...decimals].every((digit) => (whole === '0' ? digit >= '0' && digit <= '9' : digit === '0'));
  return valid ? Number(`${whole}.${decimals}0`) : 0;
}

function printRange(random: Random, { name, version, q }: Range): string {
  const parameters: string[] = [];
  const parameter = (key: string, value: string): string =>
    `${upperCaseSome(random, key)}=${/^[\w.]+$/.test(value) && !oneIn(random, 3) ? value : `"${value}"`}`;
  if (version !== undefined) parameters.push(parameter('version', version));
  if (oneIn(random, 5))
    parameters.push(
      random.pick([
        'charset=utf-8',
        'note="a,b;q=0"',
        'escaping=allow-utf-8',
        'n="\\",application/openmetrics-text;q=1"',
        'x',
        'x=',
      ]),
    );
  if (q !== undefined) parameters.push(`${upperCaseSome(random, 'q')}=${q}`);
  return [upperCaseSome(random, name), ...parameters].map((part) => `${ows(random)}${part}${ows(random)}`).join(';');
}

function preference(
  ranges: readonly Range[],
  type: string,
  versions: readonly (string | undefined)[],
): { readonly q: number; readonly precision: number; readonly index: number } {
  const precision = (name: string): number =>
    (name === type ? 2 : name === `${type.split('/')[0]}/*` ? 1 : name === '*/*' ? 0 : -1);
  const matching = ranges
    .map(({ name, version, q }, index) => ({
      q: qualityOf(q),
      precision: versions.includes(version) ? precision(name) : -1,
      index,
    }))
    .filter((range) => range.precision >= 0);
  const exact = matching.filter((range) => range.precision === Math.max(...matching.map((other) => other.precision)));
  return exact.sort((a, b) => b.q - a.q || a.index - b.index)[0] ?? { q: 0, precision: -1, index: Infinity };
}

const acceptCase: Make = (random) => {
  const name = (): string => random.pick([
    'text/plain', 'text/plain', 'application/openmetrics-text', 'application/openmetrics-text', '*/*', 'text/*',
    'application/*', 'application/json', 'image/*', 'text/plainer', 'text', '*',
  ]);
  const ranges = several(random, 0, 5, (): Range => {
    const range = name();
    const versions = range.startsWith('text/plain')
      ? [undefined, '0.0.4', '1.0.0']
      : range.startsWith('application/o')
        ? [undefined, '1.0.0', '0.0.1', '2.0.0']
        : [undefined];
    return { name: range, version: versions[random.int(versions.length)], q: QUALITIES[random.int(QUALITIES.length)] };
  });
  const codings = [
    ...new Set(
      several(random, 0, 4, () => random.pick(['gzip', 'x-gzip', 'identity', 'br', 'deflate', '*', 'gzipped'])),
    ),
  ].map((coding): Range => ({ name: coding, version: undefined, q: QUALITIES[random.int(QUALITIES.length)] }));
  const printed = ranges.map((range) => printRange(random, range));
  const at = random.int(printed.length + 1);
  const fields = printed.length === 0 ? [] : (oneIn(random, 3) ? [printed.slice(0, at), printed.slice(at)] : [printed])
    .filter((list) => list.length > 0).map((list) => `Accept: ${list.join(',')}`);
  if (codings.length > 0)
    fields.push(`accept-encoding: ${codings.map((coding) => printRange(random, coding)).join(',')}`);
  const openMetrics = preference(ranges, 'application/openmetrics-text', [undefined, '1.0.0', '0.0.1']);
  const text = preference(ranges, 'text/plain', [undefined, '0.0.4']);
  const wins =
    openMetrics.q > 0 &&
    (openMetrics.q - text.q || openMetrics.precision - text.precision || text.index - openMetrics.index) > 0;
  const qualityOfCoding = (names: readonly string[]): number =>
    Math.max(0, ...codings.filter((coding) => names.includes(coding.name)).map(({ q }) => qualityOf(q)));
  const gzip = qualityOfCoding(['gzip', 'x-gzip']);
  const zipped = gzip > 0 && gzip >= qualityOfCoding(['identity']);
  return {
    outcome: zipped ? 'accept gzip' : 'accept',
    method: 'GET',
    bytes: get('/fuzz/metrics/', fields),
    check(response) {
      assertSame(
        response.headers['content-type'],
        wins
          ? 'application/openmetrics-text; version=1.0.0; charset=utf-8'
          : 'text/plain; version=0.0.4; charset=utf-8',
        'the type',
        { openMetrics, text },
      );
      assertSame(response.headers['content-encoding'] ?? null, zipped ? 'gzip' : null, 'the coding');
      assertReadable(response);
    },
  };
};

/** @throws unless the metrics can be read */
function assertReadable({ status, headers: fields, body }: WireResponse): void {
  assertSame(status, 200, 'the status');
  const bytes = fields['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
  parseExposition(
    bytes.toString('utf8'),
    fields['content-type']?.startsWith('text/plain') === true ? 'text' : 'openmetrics',
  );
}

// Trace context.

function isHex(text: string, length: number): boolean {
  return (
    text.length === length &&
    [...text].every((char) => '0123456789abcdef'.includes(char)) &&
    [...text].some((char) => char !== '0' || length === 2)
  );
}

function isTraceparent(text: string): boolean {
  const [version = '', trace = '', parent = '', flags = '', ...rest] = text.split('-');
  return (
    isHex(version, 2) &&
    version !== 'ff' &&
    isHex(trace, 32) &&
    isHex(parent, 16) &&
    isHex(flags, 2) &&
    (rest.length === 0 || version !== '00')
  );
}

function isTracestate(text: string): boolean {
  const members = text.split(',').map((member) => member.replace(/^[ \t]+/, '').replace(/[ \t]+$/, ''))
    .filter((member) => member !== '');
  const isMember = (member: string): boolean => {
    const equals = member.indexOf('=');
    const [key, value] = [member.slice(0, equals), member.slice(equals + 1)];
    const keyChars = [...key].every(
      (char) => (char >= 'a' && char <= 'z') || (char >= '0' && char <= '9') || '_-*/@'.includes(char),
    );
    const valueChars = [...value].every((char) => char >= ' ' && char <= '~' && char !== ',' && char !== '=');
    return (
      equals > 0 &&
      keyChars &&
      /[a-z0-9]/.test(key[0] ?? '') &&
      key.length <= 256 &&
      valueChars &&
      value.length >= 1 &&
      value.length <= 256 &&
      !value.endsWith(' ')
    );
  };
  return members.length > 0 && members.length <= 32 && members.every(isMember);
}

const traceCase: Make = (random) => {
  const hex = (length: number): string =>
    oneIn(random, 12)
      ? '0'.repeat(length)
      : several(random, length, length, () => random.pick([...'0123456789abcdef'])).join('');
  let traceparent = [
    oneIn(random, 3) ? random.pick(['01', 'cc', 'fe', 'ff', '0', '000', 'FF']) : '00',
    hex(32),
    hex(16),
    hex(2),
  ].join('-');
  if (oneIn(random, 8)) traceparent += random.pick(['-', '-extra', '-a-b', 'x', '.']);
  if (oneIn(random, 6)) {
    const at = random.int(traceparent.length);
    traceparent =
      traceparent.slice(0, at) +
      random.pick(['A', 'g', '', '-', ' ', '0', 'é']) +
      traceparent.slice(at + random.int(2));
  }
  // Blanks around a field are not part of it.
  traceparent = traceparent.replace(/^ +| +$/g, '');
  const member = (index: number): string => {
    const key = oneIn(random, 10)
      ? random.pick(['A', '@a', '', 'a b', 'a.b', 'k'.repeat(256), 'k'.repeat(257)])
      : `${random.pick(['k', '0', 'tenant@sys', 'a*/_-'])}${index}`;
    const value = oneIn(random, 10)
      ? random.pick(['', '=', 'a=b', 'é', ' ', 'v'.repeat(256), 'v'.repeat(257), 'a b', '\t'])
      : random.pick(['1', '00f067aa', 'a b', '~!"']);
    return `${key}=${value}`;
  };
  // Around the most that there may be, or few, of which some are wrong.
  const parts = oneIn(random, 6)
    ? several(random, 31, 34, (index) => `k${index}=v`)
    : several(random, 0, 4, (index) => (oneIn(random, 20) ? '' : `${ows(random)}${member(index)}${ows(random)}`));
  const tracestate = parts.join(',').replace(/^[ \t]+|[ \t]+$/g, '');
  const baggage = oneIn(random, 2)
    ? ''
    : oneIn(random, 4)
      ? junk(random, 30)
      : several(random, 1, 4, (index) => `k${index}=${random.pick(['v', '%20', 'v;p=1', '"'])}`).join(',');
  const fields = [`traceparent: ${traceparent}`, `Cookie: ${SECRET}`, `Authorization: ${SECRET}`, `X-Other: ${SECRET}`];
  if (parts.length > 0) fields.push(`tracestate: ${tracestate}`);
  if (baggage !== '') fields.push(`baggage: ${baggage}`);
  const valid = isTraceparent(traceparent);
  const isPassedOn = valid && isTracestate(tracestate);
  return {
    outcome: valid ? 'trace' : 'no trace',
    method: 'GET',
    bytes: get('/trace', fields),
    check(response) {
      const { id, sent } = json(response) as { id: string; sent: Record<string, string> };
      assert(!JSON.stringify(sent).includes(SECRET), 'a header was passed on');
      assertSame(sent['x-request-id'], id, 'the id passed on');
      const [version, trace = '', parent, flags] = sent['traceparent']?.split('-') ?? [];
      assert(version === '00' && isTraceparent(sent['traceparent'] ?? ''), `traceparent ${sent['traceparent']}`);
      const given = traceparent.split('-');
      assertSame(trace === given[1] && parent !== given[2], valid, 'whether the trace goes on', sent);
      assertSame(flags, valid ? (parseInt(given[3] ?? '', 16) & 3).toString().padStart(2, '0') : '03', 'the flags');
      assertSame(sent['tracestate'] ?? null, isPassedOn ? tracestate : null, 'tracestate');
      assertSame(sent['baggage'] ?? null, baggage === '' ? null : baggage, 'baggage');
    },
  };
};

// Content type and coding.

function isType(text: string, kind: 'json' | 'form'): boolean {
  const type = (text.split(';')[0] ?? '').replace(/^[ \t]+/, '').replace(/[ \t]+$/, '').toLowerCase();
  if (kind === 'form') return type === 'application/x-www-form-urlencoded';
  if (type === 'application/json') return true;
  const prefix = type.slice('application/'.length, -'+json'.length);
  return (
    type.startsWith('application/') &&
    type.endsWith('+json') &&
    prefix !== '' &&
    [...prefix].every(
      (char) => (char >= 'a' && char <= 'z') || (char >= '0' && char <= '9') || '!#$&^_.+-'.includes(char),
    )
  );
}

const typeCase: Make = (random) => {
  const kind = random.pick(['json', 'form'] as const);
  const types = [
    'application/json', 'application/json', 'application/x-www-form-urlencoded', 'application/problem+json',
    'application/vnd.a-b.c+json', 'text/plain', 'application/jsonp', 'application/+json', 'text/json',
    'application/json,text/plain', 'application /json', 'application/ json', 'json', '', '*/*', 'application/a/b+json',
    'xapplication/json', 'multipart/form-data', 'application/a(b)+json', 'application/json+json',
  ];
  const type = oneIn(random, 8)
    ? junk(random, 12)
    : `${upperCaseSome(random, random.pick(types))}${random.pick(['', '', ';', '; charset=utf-8', ' ;charset="utf-8"', '\t;x', ';;', '; a="b;c"', ' x'])}`;
  const fields = oneIn(random, 10) ? [] : [`Content-Type: ${type}`];
  // The first of two counts, as in node:http.
  if (fields.length > 0 && oneIn(random, 12)) fields.push('content-type: application/json');
  const coding = oneIn(random, 6)
    ? upperCaseSome(random, random.pick(['identity', 'gzip', 'identity, identity', 'br', '']))
    : undefined;
  if (coding !== undefined) fields.push(`Content-Encoding: ${coding}`);
  const isTyped = fields[0]?.startsWith('Content-T') === true;
  const read =
    (isTyped ? isType(type, kind) : kind === 'form') && (coding === undefined || coding.toLowerCase() === 'identity');
  return {
    outcome: read ? 'content type' : 'wrong content type',
    method: 'POST',
    bytes: post(`/${kind}`, fields, kind === 'json' ? '[["a","b"]]' : 'a=b'),
    check(response) {
      if (read) assertSame(json(response), [['a', 'b']], 'the body');
      else isRefused(response, [415]);
    },
  };
};

// Host.

const HOSTS = [
  'x', 'example.com', 'EXAMPLE.com:80', 'a-b_c.d~e', '127.0.0.1', '127.0.0.1:8000', '[::1]', '[::1]:80',
  '[2001:db8::1]', 'a:', "!$&'()*+;=", '%41', 'a%2fb',
];
const NO_HOSTS = [
  '', 'a b', 'a@b', 'a/b', 'a\\b', 'a?b', 'a#b', 'a:b', 'a:80:80', '[::1', '::1', '[::1]a', '[::1%25eth0]', 'a%2',
  'a%zz', 'é', 'a,b c', 'a,b', '<a>', '"a"', '{a}', 'a|b', 'a^b', '`', ':80', '[]', 'a\tb', 'http://a', 'x y', '[a b]',
];

const hostCase: Make = (random) => {
  const version = oneIn(random, 6) ? '1.0' : '1.1';
  const count = oneIn(random, 6) ? random.int(4) : 1;
  const valid = oneIn(random, 2);
  const hosts = several(random, count, count, () => random.pick(valid ? HOSTS : NO_HOSTS));
  const served = count === 0 ? version === '1.0' : count === 1 && valid;
  const fields = hosts.map((host) => `${upperCaseSome(random, 'host')}:${ows(random)}${host}${ows(random)}`);
  if (oneIn(random, 4)) fields.unshift('Hosts: y', 'xhost: z');
  return {
    outcome: served ? 'host' : 'wrong host',
    method: 'GET',
    bytes: `GET /a HTTP/${version}\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`,
    check(response) {
      if (served) assertSame(json(response)['path'], '/a', 'the path');
      else isRefused(response, [400]);
    },
  };
};

// Target.

const targetCase: Make = (random) => {
  const text = (): string => random.pick([
    'a', 'b c', 'é', '%', 'a/b', '?', '#', '&', '=', '+', '', ':', '@', '//', '\u0000', '😀', '.', '..', ';', '\\',
  ]);
  const segments = several(random, 1, 4, text);
  const path = `/${segments.map((segment) => encodeURIComponent(segment)).join('/')}`;
  const pairs = several(random, 0, 3, (): [string, string] => [text(), text()]);
  const query = pairs
    .map(
      ([key, value]) =>
        `${encodeURIComponent(key)}=${random.pick([encodeURIComponent, (plain: string) => encodeURIComponent(plain).replaceAll('%20', '+').replaceAll('%2F', '/').replaceAll('%3F', '?')])(value)}`,
    )
    .join('&');
  const search = query === '' ? random.pick(['', '', '?']) : `?${query}`;
  const authority = random.pick(['x', 'x:80', '[::1]:8', 'EXAMPLE.com', '%41.b']);
  const wrong = oneIn(random, 4);
  const target = wrong
    ? random.pick([
        `${path}#`,
        `${path}${search}#a`,
        'a',
        'a/b',
        '*',
        'x:80',
        'ftp://x/',
        'http:/a',
        'http://',
        'http:///a',
        'http://a@b/',
        'http://x:y/',
        '//%',
        `${path}%zz`,
        `${path}%C3`,
        'http://x/%',
        '?a=b',
        '',
        ' ',
        '%',
        'http://[::1/',
        'javascript:a',
        `${path}\x7f`,
      ])
    : random.pick([
        path,
        path,
        `${upperCaseSome(random, random.pick(['http', 'https']))}://${authority}${path === '/' && oneIn(random, 2) ? '' : path}`,
      ]) + search;
  return {
    outcome: wrong ? 'wrong target' : 'target',
    method: 'GET',
    bytes: get(target, []),
    check(response) {
      if (wrong || segments.some((segment) => segment === '.' || segment === '..')) isRefused(response, [400]);
      else {
        const { path: seen, query: read } = json(response);
        assertSame(seen, `/${segments.join('/')}`, 'ctx.path');
        assertSame(read, pairs, 'ctx.query');
      }
    },
  };
};

// Anything.

const FIELDS = [
  'x-forwarded-for', 'x-request-id', 'accept', 'accept-encoding', 'traceparent', 'tracestate', 'baggage',
  'content-type', 'content-encoding', 'host', 'cookie', 'expect', 'connection', 'x-any', '__proto__', 'constructor',
  'range', 'if-none-match', 'upgrade', 'te', 'forwarded', 'origin', 'date', 'keep-alive', 'proxy-connection',
  'x-http-method-override',
];

/** Whatever the fields hold, the answer is proper. */
const junkCase: Make = (random) => {
  const fields = several(random, 1, 4, () => `${upperCaseSome(random, random.pick(FIELDS))}: ${junk(random, 60)}`);
  const target = random.pick(['/', '/trace', '/fuzz/metrics/', '/json', '/fuzz/health/']);
  return {
    outcome: 'junk',
    method: 'GET',
    bytes: get(target, fields),
    check(response) {
      if (response.status >= 400) isRefused(response, [400, 405, 417]);
      else if (target === '/fuzz/metrics/') assertReadable(response);
      else assertSame(response.status, 200, 'the status');
    },
  };
};

const MAKERS: readonly Make[] = [
  addressCase, addressCase, idCase, acceptCase, traceCase, typeCase, hostCase, targetCase, junkCase,
];

const PIECES = [
  ' ', ',', ';', '"', '\\', '=', ';q=', '\t', ', ,', 'a', '::', '1.', '10.0.0.1,', '-', '0', 'a=1,', '"\\', '*/*,',
  'q=0.1;', '%', '[', 'é', 'gzip,', 'text/plain;q=0.1,',
];
const TRACEPARENT = 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
/** Where each field is read that the framework parses; the others are read nowhere. */
const READ_AT: readonly (readonly [field: string, method: string, target: string])[] = [
  ['x-forwarded-for', 'GET', '/'],
  ['x-request-id', 'GET', '/'],
  ['accept', 'GET', '/fuzz/metrics/'],
  ['accept-encoding', 'GET', '/fuzz/metrics/'],
  ['traceparent', 'GET', '/trace'],
  ['tracestate', 'GET', '/trace'],
  ['baggage', 'GET', '/trace'],
  ['content-type', 'POST', '/form'],
  ['content-encoding', 'POST', '/json'],
  ['host', 'GET', '/'],
];

/** One field of up to 12 KiB: the time that it takes grows no faster than its length. */
async function checkLongField(random: Random, port: number): Promise<void> {
  const [field, method, target] = oneIn(random, 4)
    ? ([random.pick(FIELDS), 'GET', '/trace'] as const)
    : random.pick(READ_AT);
  const [head, piece, tail] = [
    random.pick(['', 'a', '1.1.1.1', '"', 'application/json', '00-']),
    random.pick(PIECES),
    random.pick(['', 'a', '"', ' x']),
  ];
  const connection = await WireConnection.open(port);
  let closed = false;
  const work = async (n: number): Promise<void> => {
    if (closed) return;
    await connection.write(
      get(
        target,
        [`${field}: ${head}${piece.repeat(n / piece.length)}${tail}`, ...(field === 'tracestate' ? [TRACEPARENT] : [])],
        method,
      ),
    );
    const response = await connection.finalResponse();
    closed = response === null || response.headers['connection'] === 'close';
  };
  await assertLinear(6_000, work, `a field ${field} of ${JSON.stringify([head, piece, tail])} for ${target}`);
  await connection.destroy();
}
