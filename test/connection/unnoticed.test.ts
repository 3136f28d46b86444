/** A disconnect is noticed while large replies wait for one that is pending. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { createServer as createTlsServer } from 'node:https';
import { expect, onTestFinished, test } from 'vitest';
import type { Context } from 'postern';
import { CERTIFICATE, KEY } from '../support/localhost-certificate.js';
import { createApp, serve } from '../support/serve.js';

const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const BIG = 'x'.repeat(200_000);
const REPLIES: Record<string, (ctx: Context) => unknown> = {
  'a text': () => BIG,
  'a text, later': async () => (await null, BIG),
  'a stream': async function* () { for (let i = 0; i < 10; i += 1) yield BIG; },
  'ctx.raw': ({ raw }) => void raw.res.end(BIG),
  'ctx.raw, in two pieces': ({ raw }) => (raw.res.write(BIG), void raw.res.end(BIG)),
};

test.for(Object.keys(REPLIES).flatMap((name) => ['FIN', 'RST'].flatMap((how) => [false, true].map((tls) => ({ name, how, tls })))))(
  'behind a pending request, $name waits; $how ends everything (TLS: $tls)',
  async ({ name, how, tls }) => {
    let aborted = 0;
    const app = createApp();
    app.get('/poll', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(void (aborted += 1)))));
    app.get('/big', REPLIES[name] as () => object).get('/small', () => 'small');
    let { port } = await serve(app);
    if (tls) {
      const server = createTlsServer({ cert: CERTIFICATE, key: KEY });
      app.attach(server);
      await once(server.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => { server.closeAllConnections(); server.close(); });
      port = (server.address() as { port: number }).port;
    }
    const plain = connect(port, '127.0.0.1').on('error', () => undefined);
    const socket = tls ? connectTls({ socket: plain, rejectUnauthorized: false }).on('error', () => undefined) : plain;
    await once(socket, tls ? 'secureConnect' : 'connect');
    socket.write(GET('/poll') + GET('/big'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.write(GET('/small'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (how === 'FIN') socket.end();
    else plain.resetAndDestroy();
    await expect.poll(() => aborted, { timeout: 5000, interval: 5 }).toBe(1);
    await expect.poll(() => app.metrics.expose()).toContain('active_task_count 0.0');
  },
);
