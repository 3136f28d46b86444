/**
 * Connections to a service in a process of its own.
 *
 * @module-tag package
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { parseResponses, rawExchange } from '../support/raw.js';
import { CANARY, CHUNKED, chunk, END, get } from '../support/wire.js';

const SERVICE = fileURLToPath(new URL('../support/drained-service.mjs', import.meta.url));
const CONNECT = 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n';

test('a process that was started with --insecure-http-parser reads requests as strictly', async () => {
  const child = fork(SERVICE, ['{}'], { execArgv: ['--insecure-http-parser'], stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [port] = (await once(child, 'message')) as [number];
  for (const headers of [
    `Content-Length: ${CANARY.length}\r\n${CHUNKED}`,
    'A : b\r\n',
    'A: b\nC: d\r\n',
    `Content-Length: ${CANARY.length}\r\nContent-Length: ${CANARY.length}\r\n`,
  ]) {
    const responses = parseResponses(await rawExchange(port, get('/', headers) + chunk(CANARY) + END));
    expect(responses.map(({ status }) => status), headers).toEqual([400]);
  }
});

test.for(['', get('/slow/50')])(
  'CONNECT from a client that resets the connection leaves the process running, behind %j too',
  async (before) => {
    const child = fork(SERVICE, ['{}'], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [port] = (await once(child, 'message')) as [number];
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => socket.write(before + CONNECT));
    await (before === '' ? once(socket, 'data') : once(child, 'message'));
    socket.resetAndDestroy();
    const [response] = parseResponses(await rawExchange(port, get('/', 'Connection: close\r\n')));
    expect([response?.status, child.exitCode]).toEqual([200, null]);
  },
);
