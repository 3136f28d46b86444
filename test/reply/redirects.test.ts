/** Advisories about redirects. */

import { expect, test } from 'vitest';
import { redirect, reply } from 'postern';
import { get, rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

test('a redirect has no body made of its URL (CVE-2024-43796)', async () => {
  const app = createApp().get('/by-hand', () =>
    reply(undefined, { status: 302, headers: { location: '//evil.test/<script>' } }),
  );
  app.get('/', () => redirect('/<script>'));
  const { port } = await serve(app);
  for (const path of ['/by-hand', '/']) {
    const { status, headers, body } = await rawRequest(port, get(path));
    expect([status, headers['content-length'], headers['content-type'], body]).toEqual([302, '0', undefined, '']);
  }
});

test.for<[string | URL, string]>([
  ['/login', '/login'],
  ['/login?next=%2Fa#top', '/login?next=%2Fa#top'],
  ['?page=2', '?page=2'],
  ['../up', '../up'],
  ['next', 'next'],
  ['a/b:c', 'a/b:c'],
  ['/a//b', '/a//b'],
  ['/%5C%2Fhost', '/%5C%2Fhost'],
  ['/search?q=http://other.test/', '/search?q=http://other.test/'],
  ['/grüße an alle', '/gr%C3%BC%C3%9Fe%20an%20alle'],
  ['/half\ud800', '/half%EF%BF%BD'],
  [new URL('https://other.test/ä?b=c'), 'https://other.test/%C3%A4?b=c'],
  [new URL('app://callback'), 'app://callback'],
])('redirect(%j) goes to %s', async ([location, header]) => {
  const response = await createApp().get('/', () => redirect(location)).request('/');
  expect([response.status, response.headers.get('location'), await response.text()]).toEqual([302, header, '']);
});

test.for([301, 302, 303, 307, 308] as const)('redirect with %i', async (status) => {
  expect((await createApp().get('/', () => redirect('/x', status)).request('/')).status).toBe(status);
});

test.for([
  '//evil.test', '//postern.invalid/x', '//a.invalid', '//b.invalid', '///evil.test', ' //evil.test', '/\\evil.test',
  '\\\\evil.test', '\\/evil.test', '/\t/evil.test', '\t//evil.test', '/\n/evil.test', '/a\r\nset-cookie: b',
  'http://evil.test', 'https:evil.test', 'http:/evil.test', 'HTTP://evil.test', 'javascript:alert(1)',
  ' javascript:alert(1)', 'data:text/html,x', 'mailto:a@b', '//', '//evil.test:99999',
  '/a\u0000', '/a\u007f', '/a\u0085', '', undefined, null, 5, {}, { href: 'http://evil.test' },
])('redirect(%j) throws (CVE-2024-29041)', (location) => {
  expect(() => redirect(location as string)).toThrow(TypeError);
});

test.for([200, 300, 304, 404, '302', NaN])('redirect with the status %j throws', (status) => {
  expect(() => redirect('/x', status as 302)).toThrow(RangeError);
});

test.for([
  '//evil.test', '//evil.test/..', '/%5cevil.test', '/%2f/evil.test', '/users', '/users/ping', '/users/health',
  '/users//ping/', '/USERS/ping/', '/a/',
  '/a//', '//a', '/./a', '/x/../a', 'http://evil.test/', 'http://evil.test/a/',
])(
  'the framework redirects nobody away from %s (CVE-2024-29041)',
  async (target) => {
    const { port } = await serve(createApp().get('/a', () => 'a'));
    const { status, headers, body } = await rawRequest(port, get(target));
    expect(status === 200 || status >= 400).toBe(true);
    expect(headers).not.toHaveProperty('location');
    expect(body).not.toMatch(/evil|<|http/);
  },
);
