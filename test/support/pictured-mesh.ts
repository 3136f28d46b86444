/** The mesh in the picture of the dashboard: a process for each instance, a small load, and a Prometheus. */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setTimeout } from 'node:timers/promises';
import { startPrometheus } from './prometheus.js';

const SERVICE = fileURLToPath(new URL('./pictured-service.mjs', import.meta.url));
/** Each service with the services that it calls. The last one gets the load, and has two instances. */
const MESH = Object.entries({
  stock: [],
  mail: [],
  billing: ['stock'],
  search: ['stock'],
  shop: ['billing', 'search', 'mail'],
});
/** The service that the variable `job` of the dashboard chooses. */
export const JOB = 'shop';
/** Window of a rate. */
export const RATE_SECONDS = 10;
/** How long the start of the processes shows in the delay of their event loops. */
const SETTLING_SECONDS = 30;

/** What Prometheus knows after a load. */
export interface PicturedMesh {
  /** URL of the Prometheus. */
  readonly prometheus: string;
  /** The end of the load, in seconds since 1970. */
  readonly until: number;
  stop(): Promise<void>;
}

/** Starts a mesh and puts load on it for so long. Toward the end, a service fails for some seconds. */
export async function runPicturedMesh(seconds: number): Promise<PicturedMesh> {
  const children: ChildProcess[] = [];
  const ports: Record<string, number[]> = {};
  for (const [name, called] of [...MESH, ...MESH.slice(-1)]) {
    const connections = called.map((each) => `${each}=http://127.0.0.1:${ports[each]?.[0]}`);
    const env = { ...process.env, SERVICE_CONNECTIONS: connections.join() };
    const child = fork(SERVICE, [name, ...called], { env });
    children.push(child);
    const [port] = (await once(child, 'message')) as [number];
    ports[name] = [...(ports[name] ?? []), port];
  }
  const prometheus = await startPrometheus(ports, (job) => `/${job}/metrics/`);
  const end = Date.now() + (SETTLING_SECONDS + seconds) * 1000;
  const mail = children[MESH.findIndex(([name]) => name === 'mail')];
  for (let sent = 0; Date.now() < end; sent += 1) {
    const secondsLeft = (end - Date.now()) / 1000;
    mail?.send(secondsLeft < 34 && secondsLeft > 20 ? 'fail' : 'recover');
    // A client in twenty has less patience than a request takes.
    const headers: Record<string, string> = sent % 20 === 0 ? { 'x-envoy-expected-rq-timeout-ms': '1' } : {};
    const sending = [
      fetch(`http://127.0.0.1:${ports[JOB]?.[sent % 2]}/work`, { headers }),
      // The status in the metrics is that of the last health check.
      fetch(`http://127.0.0.1:${ports['mail']}/mail/health/`),
    ];
    for (const reply of sending) void reply.then((each) => each.text());
    await setTimeout(60 + 25 * Math.sin(secondsLeft / 7));
  }
  const stop = async (): Promise<void> => {
    for (const child of children) child.kill();
    await prometheus.stop();
  };
  return { prometheus: prometheus.url, until: Math.floor(end / 1000), stop };
}
