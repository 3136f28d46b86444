/**
 * Jobs for the messages of a real broker: a stream of Redis, read by a consumer group.
 *
 * @module-tag redis
 * @module-tag package
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createClient } from 'redis';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Job, Postern } from 'postern';
import { freePort } from '../support/ports.js';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

let port = 0;
let stop = async (): Promise<void> => undefined;

beforeAll(async () => {
  port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'postern-redis-'));
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir];
  const server = spawn('redis-server', options, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(server, 'exit');
  const kill = (): void => void server.kill('SIGKILL');
  process.once('exit', kill);
  stop = async () => {
    process.off('exit', kill);
    kill();
    await exited;
    rmSync(dir, { recursive: true, force: true });
  };
  for await (const line of createInterface(server.stdout)) if (line.includes('Ready to accept connections')) return;
  throw new Error('redis-server ended before it was ready');
}, 60_000);
afterAll(() => stop());

/** A client with a connection of its own: a read that blocks holds up what follows it. */
async function connectRedis() {
  const redis = createClient({ socket: { host: '127.0.0.1', port } });
  redis.on('error', () => undefined);
  return redis.connect();
}

type Message = Record<string, string>;
type Handle = (job: Job, message: Message) => Promise<unknown>;

/** Reads a stream as one of a group until the application closes: each message is a job, which acknowledges it. */
async function consume(app: Postern, stream: string, handle: Handle): Promise<void> {
  const redis = await connectRedis();
  const read = async (): Promise<void> => {
    while (!app.closing.aborted) {
      // What another consumer has read and not acknowledged comes first.
      const claimed = await redis.xAutoClaim(stream, app.name, 'consumer', 0, '0', { COUNT: 3 });
      const found = await redis.xReadGroup(app.name, 'consumer', { key: stream, id: '>' }, { COUNT: 3, BLOCK: 20 });
      const fresh = (found as { messages: { id: string; message: Message }[] }[] | null)?.[0]?.messages ?? [];
      for (const entry of [...claimed.messages, ...fresh]) {
        if (entry === null) continue;
        const { id, message } = entry as { id: string; message: Message };
        const job = app.job(stream, { headers: message }, async (job) => {
          await handle(job, message);
          await redis.xAck(stream, app.name, id);
        });
        await job.catch(() => undefined);
      }
    }
  };
  const reading = read();
  app.onClose(async () => {
    await reading;
    await redis.close();
  });
}

test('the id and the trace of a request go through a message to the calls of its job, and name no other span', async () => {
  const redis = await connectRedis();
  onTestFinished(() => redis.destroy());
  await redis.xGroupCreate('placed', 'mail', '0', { MKSTREAM: true });
  const logger = createRecorder();
  const asked: Record<string, unknown>[] = [];
  const billing = createApp({}, 'billing').post('/invoices', async (ctx) => {
    const { 'x-request-id': id, traceparent, baggage } = ctx.headers;
    asked.push({ id, traceparent, baggage, caller: ctx.caller?.name, body: await ctx.json() });
  });
  const mail = createApp({ logger, services: { billing } }, 'mail');
  await consume(mail, 'placed', async (job, { order }) => {
    job.log.info({ order }, 'invoiced');
    await job.service('billing').post('/invoices', { json: { order } });
  });
  const shop = createApp({}, 'shop').post('/orders/:id', async (ctx) => {
    await redis.xAdd('placed', '*', { order: ctx.params.id, ...ctx.outgoingHeaders() });
  });

  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const headers = { 'x-request-id': 'r1', traceparent, baggage: 'tenant=7', authorization: 'Bearer secret' };
  expect((await shop.request('/orders/7', { method: 'POST', headers })).status).toBe(204);
  await expect.poll(() => asked, { timeout: 20_000 }).toEqual([
    { id: 'r1', traceparent, baggage: 'tenant=7', caller: 'mail', body: { order: '7' } },
  ]);
  expect(logger.entries).toEqual([{ level: 'info', object: { request_id: 'r1', order: '7' }, message: 'invoiced' }]);
  const stored = await redis.xRange('placed', '-', '+');
  expect(Object.keys(stored?.[0]?.message ?? {}).sort()).toEqual(['baggage', 'order', 'traceparent', 'x-request-id']);
});

test('consumers that are replaced while messages arrive handle each message, also those whose job failed at first', async () => {
  const redis = await connectRedis();
  onTestFinished(() => redis.destroy());
  await redis.xGroupCreate('parcels', 'mail', '0', { MKSTREAM: true });
  const COUNT = 60;
  const done: number[] = [];
  const failed = new Set<number>();
  const handle = async (_job: Job, { n }: Message): Promise<void> => {
    const number = Number(n);
    // Something that takes a turn of the event loop or more, and that a drain has to wait for.
    await redis.ping();
    if ((number === 0 || number === 7) && failed.size < failed.add(number).size) throw new Error('not yet');
    done.push(number);
  };
  let app = expectFailures(createApp({}, 'mail'), 'job failed');
  await consume(app, 'parcels', handle);
  for (let n = 0; n < COUNT; n += 1) {
    await redis.xAdd('parcels', '*', { n: String(n) });
    if (n % 20 !== 19) continue;
    await expect.poll(() => done.length, { timeout: 20_000 }).toBeGreaterThan(n - 10);
    await app.close();
    app = createApp({}, 'mail');
    await consume(app, 'parcels', handle);
  }
  await expect.poll(() => new Set(done).size, { timeout: 20_000 }).toBe(COUNT);
  await expect.poll(async () => (await redis.xPending('parcels', 'mail')).pending, { timeout: 20_000 }).toBe(0);
  expect(done.sort((a, b) => a - b)).toEqual(Array.from({ length: COUNT }, (_, n) => n));
});
