/** HAProxy in TCP mode: it spreads connections over instances by turns, and knows nothing of requests. */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { closedPort } from './peer.js';

/** Starts one in front of instances on these ports, some of which may be down. */
export async function startBalancer(ports: readonly number[]): Promise<{ readonly url: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-balancer-'));
  const port = await closedPort();
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
`;
  writeFileSync(join(folder, 'haproxy.cfg'), config);
  const child = spawn('haproxy', ['-q', '-db', '-f', join(folder, 'haproxy.cfg')], { stdio: 'ignore' });
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  while (!(await answers(port))) await new Promise((resolve) => setTimeout(resolve, 50));
  return { url: `http://127.0.0.1:${port}` };
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
