/** HAProxy in TCP mode: it spreads connections over instances by turns, and knows nothing of requests. */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { freePorts } from './ports.js';

export interface Balancer {
  readonly url: string;
  /** Resolves when the balancer has found every instance up. */
  readonly allUp: () => Promise<void>;
}

/** Starts one in front of instances on these ports, some of which may be down. Fails with its own message if it ends. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-balancer-'));
  const [port = 0, statsPort = 0] = await freePorts(2);
  const servers = ports.map(
    (target, index) => `  server s${index} 127.0.0.1:${target} check inter 200ms rise 1 fall 1`,
  );
  const config = `defaults
  mode tcp
  timeout connect 1s
  timeout client 120s
  timeout server 120s
  option redispatch 1
  retries 3
frontend f
  bind 127.0.0.1:${port}
  default_backend b
backend b
  balance roundrobin
${servers.join('\n')}
listen stats
  mode http
  bind 127.0.0.1:${statsPort}
  stats enable
  stats uri /
`;
  writeFileSync(join(folder, 'haproxy.cfg'), config);
  const child = spawn('haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let failure: Error | undefined;
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-10_000)));
  child.on('error', (error) => (failure = error));
  child.on('close', (code) => (failure ??= new Error(`HAProxy ended with ${code}: ${said}`)));
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  while (!(await answers(port))) {
    if (failure !== undefined) throw failure;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const isUp = async (): Promise<boolean> => {
    const rows = (await (await fetch(`http://127.0.0.1:${statsPort}/;csv`)).text()).split('\n');
    return rows.filter((row) => /^b,s\d+,.*,UP,/.test(row)).length === ports.length;
  };
  const allUp = async (): Promise<void> => {
    while (!(await isUp())) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  return { url: `http://127.0.0.1:${port}`, allUp };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
