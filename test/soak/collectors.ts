/**
 * A collector that fails for minutes, while a service that exports traces, logs and metrics is under load: no request
 * fails or waits, memory stays where it was, and every span and log record that was not taken is counted.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { decode, type Signal } from '../support/otlp-messages.js';
import { parseExposition } from '../support/exposition-parser.js';

const CONNECTIONS = 64;
const WARM_UP_SECONDS = 20;
/** Longer than OTEL_BSP_SCHEDULE_DELAY, and until V8 has given its young generation back. */
const QUIET_MS = 8_000;
const MB = 1024 * 1024;
const MAX_GROWTH_BYTES = 8 * MB;
/** Of the heap with its buffers: full queues of spans and of log records, and a batch of each. */
const MAX_KEPT_BYTES = 4 * MB;
/** V8 holds one or two halves of its young generation by chance: with 16 MB, that is more than memory may grow by. */
export const SMALL_YOUNG_GENERATION = ['--min-semi-space-size=4', '--max-semi-space-size=4'];
/** With an arena for each thread, malloc keeps 20 MB more or less by chance, whatever the collector does. */
export const ONE_ARENA = { MALLOC_ARENA_MAX: '1' };
/** A reply that waits for an export waits for its time limit of 10 s; a busy machine delays one by less than this. */
const MAX_REPLY_MS = 2_000;
/** Items that wait (OTEL_BSP_MAX_QUEUE_SIZE) or are being sent (OTEL_BSP_MAX_EXPORT_BATCH_SIZE). */
const MAX_UNDER_WAY = 2048 + 512;
const PROGRESS_MS = 10_000;
const REQUEST = Buffer.from('GET /hello HTTP/1.1\r\nHost: soak\r\n\r\n');

/** Ways for a collector to fail; the first one is the control. */
export const COLLECTORS = ['takes', 'refuses', 'hangs', 'fails', 'reads-slowly'] as const;

/** A collector that takes everything, until it is told to fail. */
export interface FailingCollector {
  readonly url: string;
  /** Spans and log records that it has taken. */
  readonly taken: Readonly<Record<'traces' | 'logs', number>>;
  fail(how: (typeof COLLECTORS)[number]): void;
}

/** A reading of the service: its memory after a collection, and its metrics. */
interface Reading {
  readonly heapUsed: number;
  readonly rss: number;
  readonly exposition: string;
}

export async function startFailingCollector(): Promise<FailingCollector> {
  const taken = { traces: 0, logs: 0, metrics: 0 };
  let failure: (typeof COLLECTORS)[number] = 'takes';
  const server = createServer((req, res) => {
    if (failure === 'reads-slowly') {
      // A few kB a second: a batch takes minutes.
      const timer = setInterval(() => req.read(512), 100);
      req.on('close', () => clearInterval(timer));
      return;
    }
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      if (failure === 'fails') res.writeHead(500).end();
      if (failure === 'takes') take(req, Buffer.concat(chunks), res);
    });
  });
  const take = ({ url = '', headers }: IncomingMessage, body: Buffer, res: ServerResponse): void => {
    const signal = url.slice('/v1/'.length) as Signal;
    for (const { items } of decode(signal, headers['content-type'], body)) taken[signal] += items.length;
    res.end();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    fail(how) {
      failure = how;
      if (how !== 'refuses') return;
      server.close();
      server.closeAllConnections();
    },
  };
}

/** @param read collects garbage in the service first @returns what is wrong */
export async function soakWithCollector(
  port: number,
  collector: FailingCollector,
  how: (typeof COLLECTORS)[number],
  { rate, minutes, read }: { rate: number; minutes: number; read: () => Promise<Reading> },
): Promise<string[]> {
  const faults: string[] = [];
  const warmUp = await load(port, rate, WARM_UP_SECONDS);
  await delay(QUIET_MS);
  const before = await read();
  const { traces, logs } = collector.taken;
  if (traces !== warmUp.replies) faults.push(`${traces} of ${warmUp.replies} spans were taken`);
  // Both applications of the process have a line that they listen.
  if (logs !== warmUp.replies + 2) faults.push(`${logs} records of ${warmUp.replies + 2} lines were taken`);
  collector.fail(how);
  const { replies, slowestMs } = await load(port, rate, minutes * 60);
  await delay(QUIET_MS);
  const after = await read();
  const dropped = droppedBy(after, 'traces');
  const grown = after.rss - before.rss;
  console.log(
    `a collector that ${how}: ${replies} requests, the slowest ${Math.round(slowestMs)} ms, before ${Math.round(warmUp.slowestMs)} ms; ${dropped} spans dropped; rss ${mebibytes(before.rss)} → ${mebibytes(after.rss)} MiB, heap ${mebibytes(before.heapUsed)} → ${mebibytes(after.heapUsed)} MiB`,
  );
  if (replies < rate * minutes * 60 * 0.9) faults.push(`only ${replies} requests were answered`);
  if (slowestMs > MAX_REPLY_MS) faults.push(`a reply took ${Math.round(slowestMs)} ms`);
  if (grown > MAX_GROWTH_BYTES) faults.push(`rss grew by ${mebibytes(grown)} MiB`);
  const kept = after.heapUsed - before.heapUsed;
  if (kept > MAX_KEPT_BYTES) faults.push(`the heap grew by ${mebibytes(kept)} MiB`);
  for (const [signal, taken] of Object.entries(collector.taken).slice(0, 2)) {
    const missing = warmUp.replies + replies - taken - droppedBy(after, signal);
    if (missing < -2 || missing > MAX_UNDER_WAY) faults.push(`${missing} ${signal} are neither dropped nor waiting`);
  }
  return faults;
}

function mebibytes(bytes: number): string {
  return (bytes / MB).toFixed(1);
}

function droppedBy({ exposition }: Reading, signal: string): number {
  const family = parseExposition(exposition, 'text').find(({ name }) => name === 'otel_dropped_total');
  return family?.samples.find(({ labels }) => labels['signal'] === signal)?.value ?? NaN;
}

/** Sends requests at a fixed rate, as far as there are free connections. */
async function load(port: number, rate: number, seconds: number): Promise<{ replies: number; slowestMs: number }> {
  const free: Socket[] = [];
  const sentAt = new Map<Socket, number>();
  let [replies, slowestMs, fault] = [0, 0, ''];
  const open = async (): Promise<void> => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let text = '';
    socket.setEncoding('latin1').on('error', () => (fault ||= 'a connection failed'));
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!text.endsWith('\r\n\r\nhello')) return;
      if (!text.startsWith('HTTP/1.1 200 OK\r\n')) fault ||= `got ${JSON.stringify(text)}`;
      text = '';
      replies += 1;
      slowestMs = Math.max(slowestMs, performance.now() - (sentAt.get(socket) ?? 0));
      sentAt.delete(socket);
      free.push(socket);
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    free.push(socket);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, open));
  const start = performance.now();
  for (let [sent, shownAt] = [0, start]; sent < rate * seconds && fault === ''; ) {
    if (performance.now() > shownAt + PROGRESS_MS) {
      shownAt = performance.now();
      const seconds = Math.round((shownAt - start) / 1000);
      console.log(`${seconds} s: ${replies} replies, the slowest ${Math.round(slowestMs)} ms`);
    }
    const due = Math.min(rate * seconds, ((performance.now() - start) / 1000) * rate);
    for (; sent < due && free.length > 0; sent += 1) {
      const socket = free.shift() as Socket;
      sentAt.set(socket, performance.now());
      socket.write(REQUEST);
    }
    await delay(2);
  }
  for (const deadline = performance.now() + 10_000; sentAt.size > 0 && performance.now() < deadline && fault === ''; )
    await delay(10);
  if (sentAt.size > 0) fault ||= `${sentAt.size} requests had no reply`;
  for (const socket of [...free, ...sentAt.keys()]) socket.destroy();
  if (fault !== '') throw new Error(fault);
  return { replies, slowestMs };
}
