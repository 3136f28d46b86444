/**
 * Meshes behind a balancer of connections, under load: an instance that joins, and one that is killed again and again.
 * `MESH_SECONDS=600` makes a long run of it. Needs the built package and HAProxy.
 *
 * @module-tag package
 * @module-tag gateways
 * @module-tag slow
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { startBalancer } from '../support/balancer.js';
import { createApp } from '../support/serve.js';
import { freePort } from '../support/ports.js';

const SECONDS = Number(process.env['MESH_SECONDS'] ?? 6);
const LONG = SECONDS > 60;
const FIXTURE = fileURLToPath(new URL('../support/mesh-service.mjs', import.meta.url));
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function start(
  name: string,
  port: number,
  next?: { readonly name: string; readonly url: string },
): Promise<ChildProcess> {
  const env = { ...process.env, SERVICE_CONNECTIONS: next === undefined ? '' : `${next.name}=${next.url}` };
  const child = fork(FIXTURE, [name, String(port), ...(next === undefined ? [] : [next.name])], {
    env,
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

test('an instance that joins behind a balancer of connections gets its share as connections are retired', async () => {
  const ports = [await freePort(), await freePort(), await freePort()];
  const [first, second, third] = ports as [number, number, number];
  const old = [(await start('billing', first)).pid, (await start('billing', second)).pid];
  const { url } = await startBalancer(ports);
  const maxConnectionAge = LONG ? 60_000 : 1000;
  const shop = createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${url}`] }, maxConnectionAge }, 'shop');
  const answered = new Map<number, number>();
  let isOver = false;
  const work = async (): Promise<void> => {
    while (!isOver) {
      const { body } = await shop.service('billing').get<{ pid: number }>('/work/0', { retry: 1 });
      answered.set(body.pid, (answered.get(body.pid) ?? 0) + 1);
      await wait(30);
    }
  };
  const load = Array.from({ length: 12 }, work);
  await wait(maxConnectionAge / 4);
  const { pid = 0 } = await start('billing', third);
  // Every connection is retired once within its age and a tenth of it, and every instance has some of the new ones.
  await wait(2 * maxConnectionAge);
  answered.clear();
  await wait(Math.max(1000, maxConnectionAge / 4));
  isOver = true;
  await Promise.all(load);
  const total = [...answered.values()].reduce((sum, count) => sum + count, 0);
  const shares = [pid, ...old].map((of = 0) => (answered.get(of) ?? 0) / total);
  console.log(`shares of the one that joined and of the others: ${shares.map((share) => share.toFixed(2)).join(', ')}`);
  expect(shares[0]).toBeGreaterThan(0.15);
}, 300_000);

test(
  'with an instance killed and started again under load, no repeatable request that could be answered fails',
  async () => {
    const [ledgerPort, one, two, shopPort] = [
      await freePort(),
      await freePort(),
      await freePort(),
      await freePort(),
    ];
    await start('ledger', ledgerPort);
    const ledger = { name: 'ledger', url: `http://127.0.0.1:${ledgerPort}` };
    let victim = await start('billing', one, ledger);
    await start('billing', two, ledger);
    const balancer = await startBalancer([one, two]);
    const shop = await start('shop', shopPort, { name: 'billing', url: balancer.url });
    const counts = { 0: { sent: 0, failed: 0 }, 1: { sent: 0, failed: 0 } };
    const failures = new Map<string, number>();
    let isOver = false;
    const work = async (): Promise<void> => {
      for (let i = 0; !isOver; i += 1) {
        const retry = (i % 2) as 0 | 1;
        const response = await fetch(`http://127.0.0.1:${shopPort}/work/${retry}`);
        const text = await response.text();
        counts[retry].sent += 1;
        if (response.status !== 200) {
          counts[retry].failed += 1;
          const what = `retry ${retry}: ${response.status} ${text}`;
          failures.set(what, (failures.get(what) ?? 0) + 1);
        }
        await wait(30);
      }
    };
    const rss = async (): Promise<number> => {
      const metrics = await (await fetch(`http://127.0.0.1:${shopPort}/shop/metrics/`)).text();
      return Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]) / 2 ** 20;
    };
    const load = Array.from({ length: 8 }, work);
    const memory: number[] = [];
    const every = LONG ? 20_000 : 2_000;
    for (let left = SECONDS * 1000; left > 0; left -= every) {
      await wait(every);
      memory.push(await rss());
      await kill(victim);
      await wait(every / 10);
      victim = await start('billing', one, ledger);
    }
    isOver = true;
    await Promise.all(load);
    const half = Math.floor(memory.length / 2);
    console.log(
      JSON.stringify({
        counts,
        failures: [...failures],
        rssMiB: [memory[0], memory[half], memory.at(-1)].map((mib = 0) => Math.round(mib)),
      }),
    );
    expect(counts[1].sent).toBeGreaterThan(0);
    expect(counts[1].failed, JSON.stringify([...failures])).toBe(0);
    await kill(shop);
  },
  SECONDS * 1000 * 1.5 + 60_000,
);
