/**
 * A service of two processes is restarted again and again behind a real gateway and under load: no request fails.
 *
 * @module-tag gateways
 * @module-tag slow
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway-process.js';
import { freePorts } from '../support/ports.js';

const SERVICE = fileURLToPath(new URL('../support/drained-service.mjs', import.meta.url));
const DRAINS = 20;
const REQUESTS_PER_SECOND = 2000;
const CONNECTIONS = 64;

const gateways = {
  // Finds out by failing: a refused or reset connection is tried on the other process.
  nginx: (listen: number, servers: readonly number[]) => `
    upstream drained { ${servers.map((port) => `server 127.0.0.1:${port} max_fails=0;`).join(' ')} keepalive 32; }
    server {
      listen 127.0.0.1:${listen}; keepalive_requests 1000000;
      location / { proxy_pass http://drained; proxy_http_version 1.1; proxy_set_header Connection ""; }
    }`,
  // Finds out by asking the health endpoint, which the delay of the drain gives it time for.
  haproxy: (listen: number, servers: readonly number[]) => `
global
  maxconn 2000
defaults
  mode http
  timeout connect 1s
  timeout check 2s
  timeout client 30s
  timeout server 10s
  retries 3
  option redispatch 1
  retry-on conn-failure empty-response
frontend in
  bind 127.0.0.1:${listen}
  default_backend drained
backend drained
  balance roundrobin
  option httpchk
  http-check send meth GET uri /drained/health/ ver HTTP/1.1 hdr Host drained
  http-check expect status 200
  default-server check inter 50ms fall 1 rise 1
${servers.map((port, index) => `  server s${index} 127.0.0.1:${port}`).join('\n')}
`,
};

async function startService(port: number): Promise<ChildProcess> {
  const child = fork(SERVICE, [JSON.stringify({ port, delay: 300, timeout: 10_000 })], { execArgv: [] });
  await once(child, 'message');
  return child;
}

/** Sends requests at a steady rate until told to stop; tells who answered, and what failed. */
function startLoad(port: number): {
  stop: () => Promise<void>;
  readonly sent: number;
  readonly answeredBy: ReadonlySet<number>;
  readonly failures: readonly string[];
} {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const load = { sent: 0, answeredBy: new Set<number>(), failures: [] as string[] };
  const underWay = new Set<Promise<void>>();
  const send = (): Promise<void> => new Promise((resolve) => {
    load.sent += 1;
    const fail = (error: Error): void => {
      load.failures.push(`${load.sent}: ${error.message}`);
      resolve();
    };
    get({ port, host: '127.0.0.1', agent }, (response) => {
      let body = '';
      response.on('data', (chunk) => (body += String(chunk))).on('error', fail).on('end', () => {
        if (response.statusCode === 200) load.answeredBy.add((JSON.parse(body) as { pid: number }).pid);
        else load.failures.push(`${load.sent}: ${response.statusCode} ${body}`);
        resolve();
      });
    }).on('error', fail);
  });
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * REQUESTS_PER_SECOND - load.sent;
    for (let i = 0; i < due && underWay.size < 1000; i += 1) {
      const request = send();
      underWay.add(request);
      void request.then(() => underWay.delete(request));
    }
  }, 5);
  return Object.assign(load, {
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
      agent.destroy();
    },
  });
}

test.for(['nginx', 'haproxy'] as const)(
  `${DRAINS} drains of a two-process service behind %s lose no request`,
  { timeout: 120_000 },
  async (name) => {
    const [listen = 0, ...ports] = await freePorts(3);
    const children = await Promise.all(ports.map(startService));
    onTestFinished(() => children.forEach((child) => child.kill('SIGKILL')));
    const gateway = await startGateway(name, gateways[name](listen, ports), [listen]);
    onTestFinished(() => gateway.stop());
    await expect.poll(async () => (await fetch(`http://127.0.0.1:${listen}/`)).status).toBe(200);

  const load = startLoad(listen);
  const pids = new Set(children.map(({ pid }) => pid));
  await expect.poll(() => load.answeredBy).toEqual(pids);
  for (let drain = 0; drain < DRAINS; drain += 1) {
    const slot = drain % 2;
    const old = children[slot] as ChildProcess;
    old.kill('SIGTERM');
    expect(await once(old, 'exit')).toEqual([0, null]);
    const fresh = await startService(ports[slot] as number);
    children[slot] = fresh;
    pids.add(fresh.pid);
    await expect.poll(() => load.answeredBy.has(fresh.pid ?? 0)).toBe(true);
  }
  await load.stop();
  expect(load.failures).toEqual([]);
  expect(load.answeredBy).toEqual(pids);
});
