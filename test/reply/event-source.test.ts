/**
 * Event streams of two processes behind a real nginx, which are restarted in turn: an `EventSource` of a real Chromium,
 * and clients that hear nothing.
 *
 * @module-tag gateways
 * @module-tag chromium
 * @module-tag slow
 * @module-tag package
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { useBrowser } from '../support/browser.js';
import { listenTo } from '../support/event-client.js';
import { startGateway } from '../support/gateway-process.js';
import { freePorts } from '../support/ports.js';

const SERVICE = fileURLToPath(new URL('../support/event-service.mjs', import.meta.url));
const LONG = { timeout: 60_000, interval: 100 };
const openPage = useBrowser();

async function startService(port: number): Promise<ChildProcess> {
  const child = fork(SERVICE, [JSON.stringify({ port })], { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

test('restarts end no process by force, lose no event, and each stream connects again', { timeout: 180_000 }, async () => {
  const [entry = 0, ...ports] = await freePorts(3);
  const children = await Promise.all(ports.map(startService));
  const servers = ports.map((port) => `server 127.0.0.1:${port} max_fails=0;`).join(' ');
  const gateway = await startGateway('nginx', `
    upstream ticker { ${servers} }
    server { listen 127.0.0.1:${entry}; location / { proxy_pass http://ticker; proxy_http_version 1.1; } }`, [entry]);
  onTestFinished(() => gateway.stop());

  const { page, complaints } = await openPage(`http://127.0.0.1:${entry}/`);
  await page.evaluate(() => {
    const seen: { id: number; pid: number }[] = [];
    const source = Reflect.construct(Reflect.get(globalThis, 'EventSource') as never, ['/events']) as EventTarget;
    source.addEventListener('tick', (event) => void seen.push(JSON.parse(String(Reflect.get(event, 'data'))) as never));
    Object.assign(globalThis, { seen });
  });
  const seen = (): Promise<{ id: number; pid: number }[]> =>
    page.evaluate(() => Reflect.get(globalThis, 'seen') as never);
  await expect.poll(async () => (await seen()).length, LONG).toBeGreaterThan(0);
  const clients = Array.from({ length: 50 }, () => listenTo(entry, '/silent'));
  await expect.poll(() => clients.every(({ opened }) => opened > 0), LONG).toBe(true);

  const pids = new Set(children.map(({ pid }) => pid));
  for (let restart = 0; restart < 4; restart += 1) {
    const old = children[restart % 2] as ChildProcess;
    old.kill(restart === 3 ? 'SIGINT' : 'SIGTERM');
    expect(await once(old, 'exit')).toEqual([0, null]);
    const fresh = (children[restart % 2] = await startService(ports[restart % 2] as number));
    pids.add(fresh.pid);
    const { length } = await seen();
    await expect.poll(async () => (await seen()).length, LONG).toBeGreaterThan(length);
  }
  // Each process has been replaced, so no stream of the beginning is left.
  await expect.poll(() => clients.every(({ opened }) => opened > 1), LONG).toBe(true);
  expect(clients.flatMap(({ failures }) => failures)).toEqual([]);
  const events = await seen();
  expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
  expect(new Set(events.map(({ pid }) => pid)).size).toBeGreaterThan(1);
  for (const { pid } of events) expect(pids).toContain(pid);
  expect(complaints).toEqual([]);
});
