/**
 * A service with Express 5 and the middleware that such services use, and its port to Postern, answer the same
 * requests alike.
 *
 * @module-tag package
 */

import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { expectFailures, serve, watch } from '../support/serve.js';
import { ALWAYS, compare, expectNoGlue, hasJson, uniformErrors, type Asked, type Difference } from './compare.js';
import { fillAlbum } from './photos.js';
import { createPhotos as createOriginal } from './photos-express.js';
import { createPhotos as createPort } from './photos-postern.js';

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function folderOfFiles(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-photos-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'deep'));
  writeFileSync(join(folder, 'a b.txt'), 'a file\n'.repeat(100));
  utimesSync(join(folder, 'a b.txt'), 1_000_000_000, 1_000_000_000);
  writeFileSync(join(folder, 'deep/index.html'), '<p>deep');
  return folder;
}

const forwarded = { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https' };
const json = { 'content-type': 'application/json' };
function upload(file: string, name = 'photo'): FormData {
  const form = new FormData();
  form.set('title', 'The cliff');
  form.set(name, new Blob([file]), 'cliff.png');
  return form;
}

const requests: readonly Asked[] = [
  { name: 'a list, compressed', path: '/v1/photos', headers: { 'accept-encoding': 'gzip' }, status: 200 },
  { name: 'a list, as it is', path: '/v1/photos', headers: { 'accept-encoding': 'identity' }, status: 200 },
  { name: 'one photo', path: '/v1/photos/1', headers: forwarded, status: 200 },
  { name: 'an error', path: '/v1/photos/99', status: 404 },
  { name: 'HEAD', method: 'HEAD', path: '/v1/photos/1', status: 200 },
  { name: 'another site', path: '/v1/photos/1', headers: { origin: 'https://evil.example' }, status: 200 },
  { name: 'the own site', path: '/v1/photos/1', headers: { origin: 'https://photos.example' }, status: 200 },
  {
    name: 'the own site asks first', method: 'OPTIONS', path: '/v1/photos',
    headers: { origin: 'https://photos.example', 'access-control-request-method': 'POST' }, status: 204,
  },
  {
    name: 'an error for the own site', path: '/v1/photos/99',
    headers: { origin: 'https://photos.example' }, status: 404,
  },
  { name: 'an upload', method: 'POST', path: '/v1/photos', body: upload('png'), status: 201 },
  { name: 'what was uploaded', path: '/v1/photos/6', status: 200 },
  { name: 'a file that is too long', method: 'POST', path: '/v1/photos', body: upload('x'.repeat(1001)), status: 400 },
  { name: 'a file of another name', method: 'POST', path: '/v1/photos', body: upload('png', 'picture'), status: 400 },
  { name: 'no file', method: 'POST', path: '/v1/photos', headers: json, body: '{}', status: 400 },
  { name: 'JSON', method: 'PUT', path: '/v1/photos/1/title', headers: json, body: '{"title":"The bay"}', status: 204 },
  {
    name: 'JSON that is broken', method: 'PUT', path: '/v1/photos/1/title',
    headers: json, body: '{"title":', status: 400, isWorded: false,
  },
  {
    name: 'JSON that is too long', method: 'PUT', path: '/v1/photos/1/title',
    headers: json, body: `{"title":"${'x'.repeat(1000)}"}`, status: 413, isWorded: false,
  },
  { name: 'a file', path: '/files/a%20b.txt', status: 200 },
  { name: 'a file, compressed', path: '/files/a%20b.txt', headers: { 'accept-encoding': 'gzip' }, status: 200 },
  {
    name: 'a file that has not changed', path: '/files/a%20b.txt',
    headers: { 'if-none-match': 'W/"2bc-e8d4a51000"' }, status: 304,
  },
  { name: 'a part of a file', path: '/files/a%20b.txt', headers: { range: 'bytes=2-5' }, status: 206 },
  {
    name: 'a part after the end', path: '/files/a%20b.txt',
    headers: { range: 'bytes=9999-' }, status: 416, isWorded: false,
  },
  { name: 'HEAD of a file', method: 'HEAD', path: '/files/a%20b.txt', status: 200 },
  { name: 'a folder', path: '/files/deep', status: 301 },
  { name: 'the index of a folder', path: '/files/deep/', status: 200 },
  { name: 'no such file', path: '/files/c.txt', status: 404, isWorded: false },
  { name: 'a file outside', path: '/files/..%2f..%2fetc%2fpasswd', status: 404, isWorded: false },
  { name: 'a POST to a file', method: 'POST', path: '/files/a%20b.txt', status: 404, isWorded: false },
  { name: 'a proxy', path: '/prints/orders?size=a4', headers: forwarded, status: 200 },
  {
    name: 'a body through a proxy', method: 'POST', path: '/prints/orders',
    headers: json, body: '{"photo":1}', status: 201,
  },
  { name: 'the proxy itself', path: '/prints', status: 200 },
  { name: 'an old page', path: '/old/hello/ada?x=1', headers: forwarded, status: 200 },
  { name: 'an old redirect', path: '/old/moved', status: 301 },
  { name: 'an old page that is not there', path: '/old/nothing', status: 404, isWorded: false },
  ...[1, 2].map((count) => ({ name: `search ${count}`, path: '/v1/search?q=hill', headers: forwarded, status: 200 })),
  { name: 'search 3', path: '/v1/search?q=hill', headers: forwarded, status: 429 },
  {
    name: 'a search of another client', path: '/v1/search?q=hill',
    headers: { 'x-forwarded-for': '203.0.113.8' }, status: 200,
  },
  { name: 'a bug', path: '/v1/broken', status: 500, isWorded: false },
  { name: 'a method that the path lacks', method: 'DELETE', path: '/v1/photos/1', status: 405, isWorded: false },
  { name: 'no such path', path: '/nothing', status: 404, isWorded: false },
];

const differences: readonly Difference[] = [
  ...ALWAYS,
  {
    rule: 'a reply has an ETag if it is a file, or comes from an Express application below a mount, or from middleware',
    change: (original, _port, { path }) => {
      const { etag, ...headers } = original.headers;
      const isOfMiddleware = original.status === 429;
      return hasJson(original) || !(isOfMiddleware || /^\/(?:files|old)\//.test(path)) ? { headers } : undefined;
    },
  },
  {
    rule: 'an error that a middleware passes on is JSON, whatever type the middleware has set',
    change: ({ status, headers, body }) => {
      if (status !== 416) return undefined;
      return { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.parse(String(body)) };
    },
  },
  {
    rule: 'an error that a middleware writes itself has the headers of the middleware only',
    change: ({ status, headers: { 'x-request-id': _id, ...headers } }) => (status === 429 ? { headers } : undefined),
  },
  {
    rule: 'a path without the method answers 405, with Allow',
    change: ({ status, headers }, { headers: { allow = '' } }) =>
      status === 404 && allow !== '' ? { status: 405, headers: { ...headers, allow } } : undefined,
  },
  uniformErrors(({ error }: { error: string }) => error),
];

test('each request is answered alike, and logged alike', async () => {
  const prints = await listen((req, res) => {
    req.setEncoding('utf8').toArray().then((chunks: string[]) => {
      res.writeHead(req.method === 'POST' ? 201 : 200, { 'content-type': 'application/json', 'x-by': 'prints' });
      const { 'x-forwarded-for': client, 'x-forwarded-proto': protocol } = req.headers;
      res.end(JSON.stringify({ url: req.url, body: chunks.join(''), client, protocol }));
    }, () => undefined);
  });
  const files = folderOfFiles();
  const logs = { original: [] as string[], port: [] as string[] };
  const into = (lines: string[]): Writable =>
    new Writable({ write: (chunk, _encoding, done) => (lines.push(String(chunk)), done()) });
  const original = createOriginal({ album: fillAlbum(), files, prints, log: into(logs.original) });
  const port = expectFailures(
    watch((logger) => createPort({ album: fillAlbum(), files, prints, log: into(logs.port) }, { logger })), 500);
  const urls = { original: await listen(original), port: (await serve(port)).url };
  const used = new Set<string>();
  for (const asked of requests) await compare(urls, asked, differences, used);
  expect([...used].sort(), 'differences that occur').toEqual(differences.map(({ rule }) => rule).sort());
  const expected = logs.original.map((line) => line.replace('DELETE /v1/photos/1 404', 'DELETE /v1/photos/1 405'));
  await expect.poll(() => logs.port).toEqual(expected);
});

test('the port is shorter, and does nothing by hand that the middleware or Postern does', () => {
  expectNoGlue('photos-express.ts', 'photos-postern.ts');
});
