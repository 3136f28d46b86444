/**
 * A rolling update as Kubernetes does it, with the defaults of `run()`: endpoints are removed late, and no request is
 * lost.
 *
 * @module-tag slow
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const SERVICE = fileURLToPath(new URL('../support/drained-service.mjs', import.meta.url));
const INSTANCES = 2;
const UPDATES = 2;
const REQUESTS_PER_SECOND = 400;
/** What is known of an instance that was told to stop gets around this late. */
const NEWS_MS = 2000;

/** One instance, and the port that it chose. */
interface Instance {
  readonly child: ChildProcess;
  readonly port: number;
}

async function startInstance(): Promise<Instance> {
  const env: NodeJS.ProcessEnv = { ...process.env };
  delete env['DRAIN_DELAY'];
  const child = fork(SERVICE, ['{}'], { execArgv: [], env });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [port] = (await once(child, 'message')) as [number];
  await expect.poll(() => fetch(`http://127.0.0.1:${port}/drained/health/`).then(({ status }) => status, () => 0))
    .toBe(200);
  return { child, port };
}

/** Sends requests at a steady rate over kept connections to each endpoint in turn; nothing is tried twice. */
function startLoad(endpoints: ReadonlySet<number>): {
  stop: () => Promise<void>;
  sent: number;
  readonly answeredBy: Set<number>;
  readonly failures: string[];
} {
  const agent = new Agent({ keepAlive: true });
  const load = { sent: 0, answeredBy: new Set<number>(), failures: [] as string[] };
  const underWay = new Set<Promise<void>>();
  const send = (port: number): Promise<void> => new Promise((resolve) => {
    const fail = (reason: string): void => {
      load.failures.push(`${load.sent} to ${port}: ${reason}`);
      resolve();
    };
    // One in fifty is slow.
    get({ port, host: '127.0.0.1', agent, path: load.sent % 50 === 0 ? '/slow/300' : '/' }, (response) => {
      response.on('error', ({ message }) => fail(message)).on('end', () => {
        if (response.statusCode !== 200) return fail(`status ${response.statusCode}`);
        load.answeredBy.add(port);
        resolve();
      }).resume();
    }).on('error', ({ message }) => fail(message));
  });
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * REQUESTS_PER_SECOND - load.sent;
    for (let index = 0; index < due && underWay.size < 256; index += 1) {
      const ports = [...endpoints];
      const request = send(ports[load.sent % ports.length] ?? 0);
      load.sent += 1;
      underWay.add(request);
      void request.then(() => underWay.delete(request));
    }
  }, 5);
  const stop = async (): Promise<void> => {
    clearInterval(timer);
    await Promise.all(underWay);
    agent.destroy();
  };
  return Object.assign(load, { stop });
}

test(
  `${UPDATES} rolling updates of ${INSTANCES} instances under ${REQUESTS_PER_SECOND} requests a second lose none`,
  { timeout: 120_000 },
  async () => {
    const instances = await Promise.all(Array.from({ length: INSTANCES }, startInstance));
    const endpoints = new Set(instances.map(({ port }) => port));
    const load = startLoad(endpoints);
    const used = new Set(endpoints);
    const exits: Promise<unknown>[] = [];
    for (let step = 0; step < UPDATES * INSTANCES; step += 1) {
      const fresh = await startInstance();
      endpoints.add(fresh.port);
      used.add(fresh.port);
      await expect.poll(() => load.answeredBy.has(fresh.port)).toBe(true);
      const old = instances.shift() as Instance;
      instances.push(fresh);
      exits.push(once(old.child, 'exit'));
      old.child.kill('SIGTERM');
      await wait(NEWS_MS);
      endpoints.delete(old.port);
    }
    expect(await Promise.all(exits)).toEqual(exits.map(() => [0, null]));
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.answeredBy).toEqual(used);
    expect(load.sent).toBeGreaterThan(5 * REQUESTS_PER_SECOND);
  },
);
