/** What an application has and does not have: what is not there can't be attacked. */

import { Server } from 'node:http';
import { expect, test } from 'vitest';
import * as postern from 'postern';
import type { PosternOptions } from 'postern';
import * as gateway from 'postern/gateway';
import * as metrics from 'postern/metrics';
import packageJson from '../../package.json' with { type: 'json' };
import { rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

test('each entry exports a closed list: no JWT, CSRF, cookies, CORS, cache, static files, multipart, proxy, templates or sessions (CVE-2026-22817)', () => {
  expect(Object.keys(postern).sort()).toEqual([
    'ApiError', 'BadRequest', 'Conflict', 'Forbidden', 'FrameworkErrorCodes', 'HttpError', 'InvalidRequest', 'NotFound',
    'Postern', 'Registry', 'Reply', 'Router', 'ServiceError', 'ServiceUnavailable',
    'TooManyRequests', 'Unauthorized', 'collectDefaultMetrics', 'connect', 'defineEndpoint', 'defineErrorCodes',
    'endpoint', 'events', 'path', 'publicFacing', 'redirect', 'reply',
  ]);
  expect(Object.keys(metrics).sort()).toEqual([
    'Counter', 'Gauge', 'Histogram', 'Registry', 'Summary', 'collectDefaultMetrics', 'exponentialBuckets',
    'linearBuckets',
  ]);
  expect(Object.keys(gateway).sort()).toEqual([
    'GatewayError', 'toCaddy', 'toGatewayApi', 'toHAProxy', 'toKong', 'toNginx',
  ]);
  expect(Object.keys(packageJson.exports)).toEqual(['.', './metrics', './gateway', './openapi', './package.json']);
});

const membersOf = (object: object): string[] => {
  const prototype: object = Object.getPrototypeOf(object);
  return [
    ...Object.getOwnPropertyNames(object),
    ...(prototype === Object.prototype ? [] : membersOf(prototype)),
  ].filter((name) => name !== 'constructor');
};
test('an application, a request, a reply and a client have a closed list of members (CVE-2026-22817)', async () => {
  let context: string[] = [];
  const app = createApp({ settings: { SERVICE_CONNECTIONS: ['billing'] } })
    .get('/', (ctx) => { context = membersOf(ctx); });
  await app.request('/');
  expect(context.sort()).toEqual([
    'abort', 'admission', 'bytes', 'caller', 'calls', 'deadlineMs', 'errorCode', 'exchange', 'expressError',
    'form', 'hasFailed', 'headers', 'id', 'ip', 'isAborted', 'isAnswered', 'json', 'label', 'late', 'log', 'method',
    'outgoingHeaders', 'params', 'path', 'patienceMs', 'query', 'raw', 'route', 'scope', 'service', 'signal', 'span',
    'spanExport', 'state', 'stream', 'target', 'text', 'timeUpMs', 'toldCalls', 'trace', 'url',
  ]);
  const job = await app.job('mail', membersOf);
  expect(job.sort()).toEqual([
    'calls', 'deadlineMs', 'headers', 'id', 'log', 'name', 'outgoingHeaders', 'service', 'signal', 'span',
    'spanExport', 'startedAtMs',
  ]);
  expect([...new Set(membersOf(app))].sort()).toEqual([
    'attach', 'close', 'closing', 'delete', 'errorCodes', 'get', 'group', 'handler', 'head', 'health', 'implement',
    'job', 'listen', 'log', 'metrics', 'mount', 'name', 'onClose', 'options', 'patch', 'post', 'put', 'request',
    'route', 'router', 'run', 'server', 'service', 'settings', 'track', 'use', 'version', 'view',
  ]);
  expect(membersOf(postern.reply()).sort()).toEqual(['body', 'error', 'headers', 'keepContext', 'ownHeaders', 'status', 'statusText', 'takeOver']);
  expect(membersOf(app.service('billing')).sort()).toEqual(['call', 'delete', 'fetch', 'get', 'patch', 'post', 'put']);
});

test('no file is served, no cookie is set and nothing is cached unless the application says so (CVE-2026-22817)', async () => {
  const { port } = await serve(createApp().get('/', () => 'x'));
  for (const path of [
    '/', '/package.json', '/README.md', '/src/index.ts', '/..%2fpackage.json', '/.env', '/.git/config', '/favicon.ico',
    '/users/',
    '/users/metrics/../../package.json',
  ]) {
    const { status, headers } = await rawRequest(
      port,
      `GET ${path} HTTP/1.1\r\nHost: x\r\nOrigin: http://evil.test\r\nCookie: a=1\r\nConnection: close\r\n\r\n`,
    );
    expect(status, path).toBe(path === '/' ? 200 : path.includes('/../') ? 400 : 404);
    expect(
      Object.keys(headers).filter((name) =>
        /cookie|cache|etag|last-modified|expires|access-control|server|powered/.test(name),
      ),
      path,
    ).toEqual([]);
  }
});

test.for(['key', 'cert', 'SNICallback', 'ALPNCallback', 'insecureHTTPParser', 'requireHostHeader'])(
  'the option %s of node:http and node:tls is refused (CVE-2026-21637)',
  (name) => {
    const options: PosternOptions = Object.assign({ logger: false as const }, { [name]: 'x' });
    expect(() => createApp(options)).toThrow(new RegExp(`^unknown option "${name}"`));
  },
);

test('the server speaks plain HTTP, strictly (CVE-2026-21637)', async () => {
  const app = createApp().get('/', () => 'plain');
  expect(app.server.constructor).toBe(Server);
  const { port } = await serve(app);
  const hello = Buffer.from('16030100050100000100', 'hex');
  expect((await rawRequest(port, hello)).status).toBe(400);
  expect((await rawRequest(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).body).toBe('plain');
  // The lenient parser would take a control character in a header.
  expect((await rawRequest(port, 'GET / HTTP/1.1\r\nHost: x\r\na: b\x01c\r\nConnection: close\r\n\r\n')).status)
    .toBe(400);
});
