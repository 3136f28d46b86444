/**
 * `postern demo`: three services that run until the process is told to stop.
 *
 * @module-tag package
 */

import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startCollector } from '../support/collector.js';
import { runCommand, startCommand } from '../support/command.js';

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

test('a port that is taken says so, and what to do', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => void server.close());
  expect(await runCommand(['demo', '--port', String(Math.min(port, 65_533))])).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /^postern: cannot listen: port \d+ \(the option port\) on "127\.0\.0\.1" is in use; end the process/,
    ),
  });
});
