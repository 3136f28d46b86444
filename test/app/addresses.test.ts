/** Other places to listen than a port: each address of localhost, a Unix socket, an inherited socket. */

import { spawn } from 'node:child_process';
import dns from 'node:dns';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, request, type IncomingHttpHeaders } from 'node:http';
import { createServer as createSocketServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { PosternOptions } from 'postern';
import { activeTasksOf, createApp } from '../support/serve.js';

function temporaryPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'postern-socket-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, 'users.sock');
}

/** Asks over a Unix socket. */
async function ask(socketPath: string, path: string, headers: IncomingHttpHeaders = {}): Promise<string> {
  const sent = request({ socketPath, path, headers: { host: 'shop.example', ...headers } }).end();
  const [response] = await once(sent, 'response');
  return text(response);
}

test.for(['listen', 'run'] as const)('%s({ path }) listens on a Unix socket, whose file close removes', async (how) => {
  vi.stubEnv('PORT', '1').stubEnv('HOST', '192.0.2.1');
  onTestFinished(() => void vi.unstubAllEnvs());
  const path = temporaryPath();
  const app = createApp().get('/', (ctx) => ({ ip: ctx.ip, url: ctx.url.href }));
  if (how === 'listen') expect(await app.listen({ path })).toEqual({ url: null, path });
  else expect(await app.run({ path })).toEqual({ url: null, path });
  expect(JSON.parse(await ask(path, '/'))).toEqual({ ip: '', url: 'http://shop.example/' });
  await app.close();
  expect(existsSync(path)).toBe(false);
});

test.for<[PosternOptions['trustProxy'], string, object]>([
  [['unix'], '192.0.2.7', { ip: '192.0.2.7', url: 'https://api.example/' }],
  [['unix', '10.0.0.0/8'], '192.0.2.7, 10.0.0.1', { ip: '192.0.2.7', url: 'https://api.example/' }],
  [['unix'], 'unix', { ip: '', url: 'https://api.example/' }],
  [['10.0.0.0/8'], '192.0.2.7', { ip: '', url: 'http://shop.example/' }],
  [[], '192.0.2.7', { ip: '', url: 'http://shop.example/' }],
])('with trustProxy %j, a peer of a Unix socket that forwards for %s', async ([trustProxy, forwarded, expected]) => {
  const path = temporaryPath();
  const app = createApp({ trustProxy }).get('/', (ctx) => ({ ip: ctx.ip, url: ctx.url.href }));
  await app.listen({ path });
  const headers = { 'x-forwarded-for': forwarded, 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.example' };
  expect(JSON.parse(await ask(path, '/', headers))).toEqual(expected);
});

test('a peer of a TCP connection is not one of a Unix socket, also when the connection is gone', async () => {
  let ipOf = (): string => 'not asked';
  const app = createApp({ trustProxy: ['unix'] }).get('/', async (ctx) => {
    ipOf = () => ctx.ip;
    await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
  });
  const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
  const sent = request({ port, host: '127.0.0.1', headers: { 'x-forwarded-for': '192.0.2.7' } }).end();
  sent.on('error', () => undefined);
  await expect.poll(() => activeTasksOf(app)).toBe(1);
  sent.destroy();
  await expect.poll(() => activeTasksOf(app)).toBe(0);
  expect(ipOf()).not.toBe('192.0.2.7');
});

test.for([
  ['is in use', async (path: string) => once(createSocketServer().listen(path).unref(), 'listening'), 'EADDRINUSE',
    'is in use; end the process that has it, or remove the file if there is none'],
  ['is in a missing directory', async (path: string) => rmSync(join(path, '..'), { recursive: true }), 'EACCES',
    'needs rights that this process lacks; choose a directory that it may write to'],
] as const)('a path that %s is refused with the remedy', async ([, prepare, code, remedy]) => {
  const directory = mkdtempSync(join(tmpdir(), 'postern-socket-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'users.sock');
  await prepare(path);
  await expect(createApp().listen({ path }))
    .rejects.toMatchObject({ code, message: `cannot listen: path ${JSON.stringify(path)} ${remedy}` });
});

test.for([
  [{ path: '/x', port: 1 }, 'listen() got several of port and host, path, and fd; give one'],
  [{ path: '/x', fd: 3 }, 'listen() got several of port and host, path, and fd; give one'],
  [{ fd: 3, host: 'localhost' }, 'listen() got several of port and host, path, and fd; give one'],
  [{ fd: -1 }, /fd/],
  [{ path: '' }, 'path of listen() is ""; give the path of a socket'],
] as const)('listen(%j) is a TypeError', async ([where, message]) => {
  await expect(createApp().listen(where as never)).rejects.toThrow(TypeError);
  await expect(createApp().listen(where as never)).rejects.toThrow(message);
});

test('a file descriptor that is not a socket is refused with the remedy', async () => {
  await expect(createApp().listen({ fd: 9_999 })).rejects.toThrow(
    'cannot listen: file descriptor 9999 is not a socket; the first one of systemd is 3',
  );
});

test.for([
  ['a port', (server: Server) => server.listen(0, '127.0.0.1')],
  ['a Unix socket', (server: Server) => server.listen(temporaryPath())],
] as const)('listen({ fd }) listens on %s that the parent has opened, as systemd does', async ([kind, open]) => {
  const server = open(createSocketServer());
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const address = server.address() as AddressInfo | string;
  const script = `
    import { Postern } from 'postern';
    const listening = await new Postern('a', { logger: false }).get('/', () => 'inherited').run({ fd: 3, delay: 0 });
    console.log(JSON.stringify(listening));`;
  const { fd } = (server as Server & { readonly _handle: { readonly fd: number } })._handle;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...process.env, PORT: '1' },
    stdio: ['ignore', 'pipe', 'inherit', fd],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(child.stdout as NodeJS.ReadableStream, 'data');
  const listening: unknown = JSON.parse(String(line));
  if (typeof address === 'string') {
    expect([kind, listening]).toEqual(['a Unix socket', { url: null, path: null }]);
  } else {
    const url = `http://127.0.0.1:${address.port}`;
    expect(listening).toEqual({ url, host: '127.0.0.1', port: address.port });
    // The parent would take connections, too.
    server.close();
    expect(await (await fetch(url)).text()).toBe('inherited');
  }
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('systemd starts a service with listen({ fd: 3 }) at the first request', { tags: ['systemd'] }, async () => {
  const path = temporaryPath();
  const script = `
    import { Postern } from 'postern';
    await new Postern('a', { logger: false }).get('/', () => process.env.LISTEN_FDS).run({ fd: 3, delay: 0 });`;
  const args = ['-l', path, process.execPath, '--input-type=module', '-e', script];
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const child = spawn('systemd-socket-activate', args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  // The file is there a moment before anybody listens.
  await once(child.stderr, 'data');
  expect(await ask(path, '/')).toBe('1');
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

/** Lets `localhost` have these addresses. */
function resolveLocalhost(...addresses: string[]): void {
  const lookup = vi.spyOn(dns.promises, 'lookup') as unknown as { mockResolvedValue(found: object[]): void };
  lookup.mockResolvedValue(addresses.map((address) => ({ address, family: 4 })));
  onTestFinished(() => void vi.restoreAllMocks());
}

test("host: 'localhost' listens on each of its addresses, on one port, until the application is closed", async () => {
  resolveLocalhost('127.0.0.1', '127.0.0.2', '127.0.0.1');
  const app = createApp().get('/', (ctx) => ctx.ip);
  const { url, host, port } = await app.listen({ host: 'localhost', port: 0 });
  expect([url, host]).toEqual([`http://127.0.0.1:${port}`, '127.0.0.1']);
  for (const address of ['127.0.0.1', '127.0.0.2'])
    expect(await (await fetch(`http://${address}:${port}/`)).text()).toBe('127.0.0.1');
  await app.close();
  for (const address of ['127.0.0.1', '127.0.0.2'])
    await expect(fetch(`http://${address}:${port}/`)).rejects.toThrow();
});

test('a request over a further address of localhost is finished by the drain', async () => {
  resolveLocalhost('127.0.0.1', '127.0.0.2');
  let release = (): void => undefined;
  const app = createApp().get('/', () => new Promise((resolve) => (release = () => resolve('done'))));
  const { port } = await app.listen({ host: 'localhost', port: 0 });
  const asked = fetch(`http://127.0.0.2:${port}/`).then((response) => response.text());
  await expect.poll(() => activeTasksOf(app)).toBe(1);
  const closed = app.close();
  release();
  expect(await asked).toBe('done');
  await closed;
});

test('an address of localhost that this machine lacks is left out; one in use leaves nothing open', async () => {
  resolveLocalhost('192.0.2.1', '127.0.0.1');
  const app = createApp().get('/', () => 'ok');
  const { url } = await app.listen({ host: 'localhost', port: 0 });
  expect(await (await fetch(url)).text()).toBe('ok');

  const taken = createServer().listen(0, '127.0.0.2');
  onTestFinished(() => void taken.close());
  await once(taken, 'listening');
  resolveLocalhost('127.0.0.1', '127.0.0.2');
  const { port } = taken.address() as AddressInfo;
  const other = createApp();
  await expect(other.listen({ host: 'localhost', port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(other.server.listening).toBe(false);
  resolveLocalhost('127.0.0.1');
  await expect(other.listen({ host: 'localhost', port })).resolves.toMatchObject({ port });
});

test('app.request() of an https URL is a request over TLS to its handler', async () => {
  const app = createApp().get('/', (ctx) => ctx.url.href);
  expect(await (await app.request('https://shop.example/?a=1')).text()).toBe('https://shop.example/?a=1');
  expect(await (await app.request('/?a=1')).text()).toBe('http://localhost/?a=1');
});
