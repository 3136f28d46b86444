/**
 * Two instances behind a real gateway are restarted alternately, and the next restart begins as soon as an instance is
 * back. Nothing is lost that the gateway may send again.
 *
 * @module-tag gateways
 * @module-tag slow
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { toCaddy, toHAProxy, toNginx, type RouteInfo } from '../../src/gateway.js';
import { startGateway, type GatewayName } from '../support/gateway-process.js';
import { routerOf } from '../support/gateway-services.js';
import { freePorts } from '../support/ports.js';

const SERVICE = fileURLToPath(new URL('../support/restarted-service.mjs', import.meta.url));
type Export = typeof toHAProxy;

/** HAProxy that also asks the health endpoint, which the delay of a drain gives it time for. */
const toAskingHAProxy: Export = (...args) =>
  toHAProxy(...args).replace(
    'balance roundrobin',
    `$&
  timeout check 10s
  option httpchk
  http-check send meth GET uri /restarted/health/ ver HTTP/1.1 hdr Host restarted
  http-check expect status 200
  default-server check inter 50ms fall 1 rise 1`,
  );

interface Case {
  readonly title: string;
  readonly name: GatewayName;
  readonly toConfig: Export;
  /** Whether a restart begins only when the gateway knows that the instance before is back. */
  readonly isAsking?: true;
}
const CASES: readonly Case[] = [
  { title: 'nginx', name: 'nginx', toConfig: toNginx },
  { title: 'haproxy', name: 'haproxy', toConfig: toHAProxy },
  { title: 'haproxy that asks the health endpoint', name: 'haproxy', toConfig: toAskingHAProxy, isAsking: true },
  { title: 'caddy', name: 'caddy', toConfig: toCaddy },
];
const CLIENTS = 20;
const RESTARTS = 6;
/** Minimum number of POSTs that are sent for each restart. */
const PER_RESTART = 500;

interface Instance {
  readonly child: ChildProcess;
  readonly routes: readonly RouteInfo[];
}

async function startInstance(options: object): Promise<Instance> {
  const child = fork(SERVICE, [JSON.stringify(options)], { execArgv: [] });
  const [routes] = (await once(child, 'message')) as [readonly RouteInfo[]];
  return { child, routes };
}

interface Failure {
  readonly method: 'GET' | 'POST';
  /** Of the request. */
  readonly id: string;
  readonly reason: string;
}

/** The requests of clients that send GET and POST alternately, each client one request after the other. */
interface Load {
  /** How many of each method. */
  readonly sent: number;
  readonly failed: readonly Failure[];
  readonly answeredBy: ReadonlySet<number>;
  stop(): Promise<void>;
}

function startLoad(port: number, body: string): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  let isRunning = true;
  const load = { sent: 0, failed: [] as Failure[], answeredBy: new Set<number>() };
  const send = (method: 'GET' | 'POST', id: string): Promise<void> => new Promise((resolve) => {
    const fail = (reason: string): void => {
      load.failed.push({ method, id, reason });
      resolve();
    };
    const outgoing = request({ port, host: '127.0.0.1', path: `/x?id=${id}`, method, agent }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk))).on('error', ({ message }) => fail(message));
      response.on('end', () => {
        if (response.statusCode !== 200) return fail(`${response.statusCode} ${text}`);
        load.answeredBy.add((JSON.parse(text) as { pid: number }).pid);
        resolve();
      });
    });
    outgoing.on('error', ({ message }) => fail(message)).end(method === 'POST' ? body : undefined);
  });
  const client = async (_: unknown, number: number): Promise<void> => {
    while (isRunning) {
      const id = `${number}-${(load.sent += 1)}`;
      await send('GET', id);
      await send('POST', id);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  const stop = async (): Promise<void> => {
    isRunning = false;
    await clients;
    agent.destroy();
  };
  return Object.assign(load, { stop });
}

/** How often each reason is there. */
function countReasons(failures: readonly Failure[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reason } of failures) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}

test.for(CASES)(
  `${RESTARTS} restarts behind $title lose no GET, few POSTs, and none of those that an instance took`,
  { timeout: 180_000 },
  async ({ name, toConfig, isAsking = false }) => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-restarts-'));
    const file = join(folder, 'taken');
    writeFileSync(file, '');
    const [listen = 0, ...ports] = await freePorts(3);
    // One closes its port at once, and one still serves for a moment.
    const start = (slot: number): Promise<Instance> =>
      // The health endpoint is private.
      startInstance({ port: ports[slot], delay: slot * 200, file, ...(isAsking ? {} : { scope: 'public' }) });
    const instances = await Promise.all([start(0), start(1)]);
    onTestFinished(() => {
      for (const { child } of instances) child.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    });
    const upstream = ports.map((port) => `http://127.0.0.1:${port}`);
    const config = toConfig(routerOf(instances[0].routes), {
      service: 'restarted',
      upstream,
      listen: `127.0.0.1:${listen}`,
    });
    const gateway = await startGateway(name, config, [listen]);
    onTestFinished(() => gateway.stop());

    // Up to 2.11.1, Caddy can not repeat a request with a body that a server refused.
    const load = startLoad(listen, name === 'caddy' ? '' : 'body');
    const isUsed = async ({ child }: Instance): Promise<void> =>
      expect.poll(() => load.answeredBy.has(child.pid ?? 0)).toBe(true);
    await Promise.all(instances.map(isUsed));
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      const slot = restart % 2;
      const { child } = instances[slot] as Instance;
      child.kill('SIGTERM');
      expect(await once(child, 'exit')).toEqual([0, null]);
      instances[slot] = await start(slot);
      if (isAsking) await isUsed(instances[slot]);
      // Only a busy machine waits here: a few POSTs of each restart may be lost, whatever their number is.
      await expect.poll(() => load.sent).toBeGreaterThan(restart * PER_RESTART);
    }
    await Promise.all(instances.map(isUsed));
    await load.stop();
    const taken = readFileSync(file, 'utf8').trimEnd().split('\n');
    const lost = load.failed.filter(({ method }) => method === 'POST');
    expect(countReasons(load.failed.filter(({ method }) => method === 'GET'))).toEqual({});
    expect(lost.filter(({ id }) => taken.includes(id))).toEqual([]);
    expect(new Set(taken).size, 'POSTs that were taken once').toBe(taken.length);
    expect(lost.length, JSON.stringify(countReasons(lost))).toBeLessThanOrEqual(load.sent / 100);
  },
);
