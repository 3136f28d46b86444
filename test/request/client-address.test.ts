/** Which address is the client's, and whose word is taken for it. */

import { expect, test } from 'vitest';
import type { Context } from 'postern';
import { trustNetworks } from '../../src/answer/client-address.js';
import { get, HEAD, rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const addresses: { trustProxy: string[]; forwarded: string | null; ip: string }[] = [
  { trustProxy: [], forwarded: '1.1.1.1', ip: '127.0.0.1' },
  { trustProxy: ['10.0.0.0/8'], forwarded: '1.1.1.1', ip: '127.0.0.1' },
  { trustProxy: ['127.0.0.0/8'], forwarded: null, ip: '127.0.0.1' },
  { trustProxy: ['127.0.0.0/8'], forwarded: '1.1.1.1', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1'], forwarded: '9.9.9.9, 1.1.1.1', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1', '10.0.0.0/8'], forwarded: '9.9.9.9, 1.1.1.1,10.1.2.3', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1', '10.0.0.0/8'], forwarded: '10.0.0.9, 10.1.2.3', ip: '10.0.0.9' },
  { trustProxy: ['127.0.0.1', '10.0.0.0/8'], forwarded: '1.1.1.1, nonsense, 10.1.2.3', ip: '10.1.2.3' },
  { trustProxy: ['127.0.0.1', '10.0.0.0/8'], forwarded: '1.1.1.1, ::ffff:10.1.2.3', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1', '2001:db8::/32'], forwarded: '1.1.1.1, 2001:0db8:0:0::1', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1'], forwarded: `${' ,'.repeat(4000)}1.1.1.1`, ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1'], forwarded: '', ip: '127.0.0.1' },
];
test.for(addresses)('behind $trustProxy, "$forwarded" means $ip', async ({ trustProxy, forwarded, ip }) => {
  const { url } = await serve(createApp({ trustProxy }).get('/', (ctx: Context) => ctx.ip));
  expect(await (await fetch(url, { headers: forwarded === null ? {} : { 'x-forwarded-for': forwarded } })).text())
    .toBe(ip);
});

test.for(['10.0.0.0/33', '10.0.0/8', 'x', '', '10.0.0.0/8/8', '::/129', '1.1.1.1/-1', '1.1.1.1/ 8'])(
  'trustProxy with %j throws',
  (network) => {
    expect(() => createApp({ trustProxy: [network] })).toThrow(TypeError);
  },
);

const SPOOFED = '6.6.6.6';
const CLAIMS = [
  'X-Forwarded-For', 'X-Forwarded', 'Forwarded-For', 'X-Real-IP', 'X-Client-IP', 'Client-IP', 'True-Client-IP',
  'CF-Connecting-IP', 'X-Cluster-Client-IP',
  'Fastly-Client-IP', 'X-Originating-IP', 'X-Remote-IP', 'X-Remote-Addr', 'X-Forwarded-Host',
];
const others = `Forwarded: for=${SPOOFED};host=${SPOOFED};proto=https\r\nVia: 1.1 ${SPOOFED}\r\nX-Forwarded-Proto: https\r\n`;
const claims = CLAIMS.map((name) => `${name}: ${SPOOFED}\r\n`).join('') + others;
const UNTRUSTING: { trustProxy: string[] | undefined }[] = [
  { trustProxy: undefined },
  { trustProxy: [] },
  { trustProxy: ['10.0.0.0/8', '::1', '128.0.0.0/1', '126.255.255.255', '127.0.0.2/31'] },
];
test.for(UNTRUSTING)(
  'no header of a direct client changes its address when $trustProxy is trusted (CVE-2026-3635)',
  async ({ trustProxy }) => {
    const { port } = await serve(createApp(trustProxy === undefined ? {} : { trustProxy }).get('/', (ctx) => ctx.ip));
    expect((await rawRequest(port, get('/', HEAD + claims))).body).toBe('127.0.0.1');
  },
);

test('of a trusted proxy x-forwarded-for alone is read, and of several lines the last (CVE-2026-3635)', async () => {
  const { port } = await serve(createApp({ trustProxy: ['127.0.0.1'] }).get('/', (ctx) => ctx.ip));
  const ipOf = async (fields: string): Promise<string> => (await rawRequest(port, get('/', HEAD + fields))).body;
  expect(await ipOf(claims.replace(/^X-Forwarded-For: .*\r\n/, ''))).toBe('127.0.0.1');
  expect(await ipOf(`${claims}X-Forwarded-For: 1.1.1.1\r\n`)).toBe('1.1.1.1');
  expect(await ipOf(`X-Forwarded-For: ${SPOOFED}, ${SPOOFED}\r\nx-forwarded-for: ${SPOOFED},1.1.1.1\r\n`))
    .toBe('1.1.1.1');
  for (const entry of [
    '', '1.1.1.1:80', '[2001:db8::1]:80', '"1.1.1.1"', 'for=1.1.1.1', 'unknown', '_hidden', '1.1.1', '0x7f.1',
    '2130706433', '127.1', '010.0.0.1',
    '1.1.1.1 2.2.2.2', '1.1.1.1/32', '1.1.1.1\\', '::ffff:1.1.1.256', '1:2',
  ]) {
    expect(await ipOf(`X-Forwarded-For: ${SPOOFED}, ${entry}\r\n`), entry).toBe('127.0.0.1');
  }
});

test('a client on IPv4 has its IPv4 address on a socket for both families, and is trusted by it (CVE-2026-3635)', async () => {
  const trusting = createApp({ trustProxy: ['127.0.0.0/8'] }).get('/', (ctx) => ctx.ip);
  const { port } = await trusting.listen({ port: 0 });
  expect((await rawRequest(port, get('/'))).body).toBe('127.0.0.1');
  expect((await rawRequest(port, get('/', `${HEAD}X-Forwarded-For: ::ffff:1.1.1.1\r\n`))).body).toBe('1.1.1.1');
});

test('an address of one family is in no network of the other (CVE-2026-3635)', () => {
  const trusts = (network: string, address: string): boolean => trustNetworks([network])(address);
  for (const address of [
    '::1', '::7f00:1', '::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', '2001:db8::1',
  ]) expect(trusts('0.0.0.0/0', address), address).toBe(false);
  for (const address of ['fe80::1%eth0', '', 'localhost', '127.0.0.1 ', '127.1'])
    expect(trusts('127.0.0.0/8', address), address).toBe(false);
});
