/**
 * The mesh of the demo, two instances of each service behind a real nginx, is restarted service by service: under load,
 * and with 50 event streams. `POSTERN_ROUNDS=10` restarts each instance ten times.
 *
 * @module-tag gateways
 * @module-tag slow
 * @module-tag package
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { listenTo } from '../support/event-client.js';
import { startGateway } from '../support/gateway-process.js';
import { freePorts } from '../support/ports.js';

const SERVICE = fileURLToPath(new URL('../support/event-service.mjs', import.meta.url));
const NAMES = ['shop', 'billing', 'stock'];
const ROUNDS = Number(process.env['POSTERN_ROUNDS'] ?? 1);
const STREAMS = 50;
const CLIENTS = 6;

async function startInstance(options: object): Promise<ChildProcess> {
  const child = fork(SERVICE, [JSON.stringify(options)], { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

/** Clients that order one thing after the other, until they are stopped. */
function startLoad(url: string): { readonly done: Map<string, number>; stop(): Promise<unknown> } {
  const done = new Map<string, number>();
  let isRunning = true;
  const order = async (): Promise<void> => {
    while (isRunning) {
      const answer = fetch(url).then((response) => response.text());
      const outcome = await answer.catch((error: Error) => String(error.cause ?? error));
      done.set(outcome, (done.get(outcome) ?? 0) + 1);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, order));
  const stop = (): Promise<unknown> => {
    isRunning = false;
    return clients;
  };
  return { done, stop };
}

test(
  `${ROUNDS} restarts of each service lose no request, end no process by force, and each stream connects again`,
  { timeout: 60_000 + ROUNDS * 60_000 },
  async () => {
    const ports = await freePorts(3 * NAMES.length);
    const entries = ports.splice(0, NAMES.length);
    const portsOf = (i: number): number[] => ports.slice(2 * i, 2 * i + 2);
    const sites = NAMES.map((name, i) => `
      upstream ${name} { ${portsOf(i).map((port) => `server 127.0.0.1:${port} max_fails=0;`).join(' ')} keepalive 32; }
      server {
        listen 127.0.0.1:${entries[i]};
        location / { proxy_pass http://${name}; proxy_http_version 1.1; proxy_set_header Connection ""; }
      }`);
    const gateway = await startGateway('nginx', sites.join(''), entries);
    onTestFinished(() => gateway.stop());
    const start = (i: number, instance: number): Promise<ChildProcess> => {
      const next = { calls: NAMES[i + 1], url: `http://127.0.0.1:${entries[i + 1]}` };
      return startInstance({ name: NAMES[i], port: portsOf(i)[instance], delay: 50, ...next });
    };
    const instances = await Promise.all(NAMES.map((_, i) => Promise.all([start(i, 0), start(i, 1)])));
    const streams = Array.from({ length: STREAMS }, (_, i) => listenTo(entries[i % NAMES.length] ?? 0, '/silent'));
    await expect.poll(() => streams.every(({ isOpen }) => isOpen)).toBe(true);

    const load = startLoad(`http://127.0.0.1:${entries[0]}/work`);
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [i, pair] of instances.entries())
        for (const [instance, old] of pair.entries()) {
          old.kill('SIGTERM');
          expect(await once(old, 'exit')).toEqual([0, null]);
          pair[instance] = await start(i, instance);
        }
    await load.stop();
    expect([...load.done.keys()]).toEqual([JSON.stringify(NAMES)]);
    await expect.poll(() => streams.every(({ isOpen, opened }) => isOpen && opened > ROUNDS)).toBe(true);
    expect(streams.flatMap(({ failures }) => failures)).toEqual([]);
    if (ROUNDS > 1) console.log(load.done, streams.map(({ opened }) => opened).join(' '));
  },
);
