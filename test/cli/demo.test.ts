/**
 * `postern demo`: three services that run until the process is told to stop.
 *
 * @module-tag package
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startCollector } from '../support/collector.js';
import { COMMAND, runCommand, runProcess, startCommand } from '../support/command.js';
import { freePorts } from '../support/ports.js';
import { get, rawExchange } from '../support/raw.js';

/** For what has to happen, but takes as long as the machine needs. */
const LONG = { timeout: 20_000, interval: 50 };

test.for(['SIGINT', 'SIGTERM'] as const)('prints what to try, serves it, and exits with 0 on %s', async (signal) => {
  const collector = await startCollector();
  // What is meant for one service is not for these.
  const child = startCommand(['demo'], {
    env: {
      MONITOR_PORT: '1',
      MONITOR_HOST: 'nowhere',
      REQUIRED_SERVICE_CONNECTIONS: 'a=nonsense',
      SERVICE_URL_TEMPLATE: 'nonsense',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=mine',
    },
  });
  const [text] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  const urls = [...text.matchAll(/^http:\S+$/gm)].map(([url]) => url);
  const [toTry = '', traces] = text.split(/^To see its traces/m);
  expect(toTry.match(/http/g), 'each alone on its line').toHaveLength(urls.length);
  expect(traces).toContain('\nOTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 npx postern demo\n');
  expect(urls).toHaveLength(8);
  expect(await Promise.all(urls.map(async (url) => (await fetch(url)).status))).toEqual([
    200, 200, 409, 400, 200, 200, 200, 200,
  ]);
  expect(await (await fetch(new URL('mesh.json', urls[0]))).json())
    .toMatchObject({ service: 'shop', edges: { length: 4 } });

  const ring = await runCommand(['ping', new URL('/shop/', urls[1]).href, '--depth', '3']);
  expect(ring.code).toBe(0);
  expect(ring.stdout).toMatch(/^shop  200 .*\n└─ billing  200 .*\n   └─ stock  200 .*\n      └─ shop  200 .*\n$/);

  const closed = once(child, 'close');
  child.kill(signal);
  expect(await closed).toEqual([0, null]);
  // The live page is not of the mesh.
  expect(new Set(collector.spans.map(({ service }) => service))).toEqual(new Set(['shop', 'billing', 'stock']));
});

/** Whether each of the three services listens. */
async function areUp(port: number): Promise<boolean[]> {
  const tries = [0, 1, 2].map((index) => rawExchange(port + index, get('/')));
  return (await Promise.all(tries.map((text) => text.catch(() => '')))).map((text) => text !== '');
}

/** Three free ports in a row: {@link freePorts} counts up, but another program may have one between. */
async function firstOfThree(): Promise<number> {
  for (;;) {
    const ports = await freePorts(3);
    if (ports[2] === (ports[0] ?? 0) + 2) return ports[0] ?? 0;
  }
}

test('on a terminal, a key stops a service and starts it again, as often as it is pressed; Ctrl-C ends all', async () => {
  const port = await firstOfThree();
  const line = `'${process.execPath}' '${COMMAND}' demo --port ${port}`;
  const terminal = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, KUBERNETES_SERVICE_HOST: undefined },
  });
  onTestFinished(() => void terminal.kill('SIGKILL'));
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (chunk: string) => (shown += chunk));
  const order = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}/orders/1`)).status;
  await expect.poll(() => shown, LONG).toContain('Ctrl-C');
  expect(await order()).toBe(200);
  for (let n = 0; n < 2; n += 1) {
    terminal.stdin.write('2');
    await expect.poll(() => areUp(port), LONG).toEqual([true, false, true]);
    expect(await order()).toBe(503);
    await expect.poll(() => shown.split('billing is stopped').length, LONG).toBe(n + 2);
    terminal.stdin.write('2');
    await expect.poll(() => areUp(port), LONG).toEqual([true, true, true]);
    await expect.poll(() => shown.split('billing runs').length, LONG).toBe(n + 2);
    await expect.poll(order, LONG).toBe(200);
  }
  const closed = once(terminal, 'close');
  terminal.stdin.write('\x03');
  expect(await closed).toEqual([0, null]);
  expect(await areUp(port)).toEqual([false, false, false]);
});

test('in the background of a terminal, it serves what it prints, and ends by a signal', async () => {
  const port = await firstOfThree();
  const demo = `'${process.execPath}' '${COMMAND}' demo --port ${port}`;
  // With job control, as in a shell that a person uses.
  const line = `set -m; ${demo} & echo "pid $!"; wait $!`;
  const terminal = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void terminal.kill('SIGKILL'));
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (chunk: string) => (shown += chunk));
  await expect.poll(() => shown, LONG).toContain('Ctrl-C');
  expect((await fetch(`http://127.0.0.1:${port}/orders/1`)).status).toBe(200);
  const closed = once(terminal, 'close');
  process.kill(Number(/pid (\d+)/.exec(shown)?.[1]), 'SIGTERM');
  expect(await closed).toEqual([0, null]);
});

test('its services end, also if the demo is killed', async () => {
  const port = await firstOfThree();
  const child = startCommand(['demo', '--port', String(port)]);
  await once(child.stdout, 'data');
  expect(await areUp(port)).toEqual([true, true, true]);
  child.kill('SIGKILL');
  await expect.poll(() => areUp(port), LONG).toEqual([false, false, false]);
});

test('--service starts one of them in this process', async () => {
  const port = await firstOfThree();
  const child = startCommand(['demo', '--port', String(port), '--service', 'stock']);
  const [text] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  expect(text).toBe(`http://127.0.0.1:${port + 2}\n`);
  expect(await areUp(port)).toEqual([false, false, true]);
  child.kill('SIGINT');
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(await runProcess(['demo', '--service', 'mail'])).toMatchObject({
    code: 2,
    stderr: 'postern: --service is "mail"; give one of shop, billing, stock; see postern demo --help\n',
  });
});

test('a port that is taken says so, and what to do', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => void server.close());
  expect(await runProcess(['demo', '--port', String(Math.min(port, 65_533))])).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /^postern: cannot listen: port \d+ \(the option port\) on "127\.0\.0\.1" is in use; end the process/,
    ),
  });
});
