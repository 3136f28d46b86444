/** Advisories about Host. */

import { expect, test } from 'vitest';
import { HEAD, rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const HOSTS: Record<200 | 400, readonly string[]> = {
  200: [
    'x', 'x:80', 'x:', 'EXAMPLE.com', 'a_b.c~d', 'a%20b', '127.0.0.1:8080', '[::1]', '[::1]:80', '[::ffff:1.2.3.4]',
    "!$&'()*+;=", ' x ', '\tx\t',
  ],
  400: [
    '', 'a,b', 'x,', 'x.example,y.example:80', 'evil@x', 'u:p@x:80', '@', 'x/', 'x/../y', 'x?y', 'x#y', 'x\\y', 'x y',
    'x\ty', 'x:y', 'x:80:80', 'x:-1', 'x:123456', 'x: 80', ':80', 'http://x',
    '::1', '[::1', '::1]', '[::1]x', '[]', '[g::]', '[::1%25eth0]', '%', 'a%2', '%zz', 'x"y', 'x<y>', '{x}', 'x|y',
    'x^y', '\xe9', 'x\x80',
  ],
};
const hosts = Object.entries(HOSTS)
  .flatMap(([status, values]) => values.map((host) => ({ host, status: Number(status) })));
test.for(hosts)('the Host $host gets $status, whatever the route (CVE-2026-27959)', async ({ host, status }) => {
  let calls = 0;
  const { port } = await serve(
    createApp()
      .get('/', () => {
        calls += 1;
      })
      .use((_ctx, next) => {
        calls += 1;
        return next();
      }),
  );
  const statusOf = async (line: string): Promise<number> =>
    (await rawRequest(port, `${line}\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status;
  expect(await statusOf('GET / HTTP/1.1')).toBe(status === 200 ? 204 : 400);
  expect(await statusOf('GET / HTTP/1.0')).toBe(status === 200 ? 204 : 400);
  expect(await statusOf('GET http://y/ HTTP/1.1')).toBe(status === 200 ? 204 : 400);
  expect(await statusOf('GET /users/ping/ HTTP/1.1')).toBe(status);
  expect(await statusOf('GET /nowhere HTTP/1.1')).toBe(status === 200 ? 404 : 400);
  expect(calls).toBe(status === 200 ? 8 : 0);
});

test('a Host that was well-formed says nothing about that of the next request (CVE-2026-27959)', async () => {
  const { port } = await serve(createApp().get('/', () => 'reached'));
  for (const [host, status] of [
    ['x', 200],
    ['x/', 400],
    ['x', 200],
    ['', 400],
    ['y', 200],
    ['y/', 400],
    ['y', 200],
  ] as const) {
    expect((await rawRequest(port, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status, host)
      .toBe(status);
  }
});

test.for([
  ['the same twice', 'Host: x\r\nHost: x\r\n'],
  ['in two spellings', 'Host: x\r\nhOST: y\r\n'],
  ['far apart', `Host: x\r\n${'a: b\r\n'.repeat(900)}host: y\r\n`],
  ['the second one empty', 'Host: x\r\nHost:\r\n'],
  ['the first one empty', 'Host:\r\nHost: x\r\n'],
] as const)('two Host headers, %s, get 400 in HTTP/1.1 and 1.0 (CVE-2026-27959)', async ([, fields]) => {
  const { port } = await serve(createApp().get('/', () => 'reached'));
  for (const version of ['1.1', '1.0']) {
    const { status, body } = await rawRequest(port, `GET / HTTP/${version}\r\n${fields}Connection: close\r\n\r\n`);
    expect([status, JSON.parse(body)])
      .toMatchObject([400, { description: 'The request has more than one Host header.' }]);
  }
});

test('what node:http keeps of 1,000 header fields hides no second Host (CVE-2026-27959)', async () => {
  const { port } = await serve(createApp().get('/', () => 'reached'));
  for (const count of [997, 998, 1022, 1023, 1060, 1500, 3000]) {
    const response = await rawRequest(port, `GET / HTTP/1.1\r\n${HEAD}${'a:\r\n'.repeat(count)}Host: y\r\n\r\n`);
    expect(response.status, `${count} fields`).toBeGreaterThanOrEqual(400);
  }
});
