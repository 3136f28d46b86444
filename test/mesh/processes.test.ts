/**
 * Services as separate processes, told of each other by their environment; needs the built package.
 *
 * @module-tag package
 */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { startPeer } from '../support/peer.js';

interface Child {
  readonly child: ChildProcess;
  readonly message: unknown;
  /** What it wrote to stderr so far, a line each. */
  readonly lines: () => Record<string, unknown>[];
}

async function start(fixture: string, args: string[], env: Record<string, string> = {}): Promise<Child> {
  const child = fork(fileURLToPath(new URL(`../support/${fixture}`, import.meta.url)), args, {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...process.env, DRAIN_DELAY: '0', ...env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr?.on('data', (chunk) => (stderr += String(chunk)));
  const failed = once(child, 'exit')
    .then(([code]) => Promise.reject(new Error(`${fixture} ended with ${String(code)}: ${stderr}`)));
  failed.catch(() => undefined);
  const message: unknown = await Promise.race([once(child, 'message').then(([first]: unknown[]) => first), failed]);
  return {
    child,
    message,
    lines: () =>
      stderr
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

test('an error crosses three processes as it was raised, one request id is in the logs of all, and each drains on SIGTERM', async () => {
  const c = await start('chain-service.mjs', ['c']);
  const b = await start('chain-service.mjs', ['b', 'c'], { SERVICE_CONNECTIONS: `c=${String(c.message)}` });
  const a = await start('chain-service.mjs', ['a', 'b'], { REQUIRED_SERVICE_CONNECTIONS: `b=${String(b.message)}` });

  const response = await fetch(`${String(a.message)}/work`);
  expect(response.status).toBe(408);
  expect(await response.json()).toEqual({
    message: 'An unknown error occurred',
    description: 'Too slow!',
    error_code: { name: 'too_slow', value: 10002 },
  });
  const id = response.headers.get('x-request-id');
  for (const { lines } of [a, b, c])
    await expect.poll(() => lines().find(({ msg }) => msg === 'working')?.['request_id']).toBe(id);

  const gone = once(c.child, 'exit');
  c.child.kill('SIGKILL');
  await gone;
  const ping = await (await fetch(`${String(a.message)}/a/ping/?depth=3`)).json();
  expect(ping).toMatchObject({
    response: {
      b: {
        status_code: 200,
        response: { response: { c: { status_code: 503, response: { description: 'c is unreachable' } } } },
      },
    },
  });

  for (const { child } of [a, b]) {
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  }
});

test('a process with a kept-alive connection ends by itself', async () => {
  const peer = await startPeer((_req, res) => res.end());
  const { child, message } = await start('caller.mjs', [peer.url]);
  expect(message).toBe(200);
  if (child.exitCode === null) await once(child, 'exit');
  expect(child.exitCode).toBe(0);
});
