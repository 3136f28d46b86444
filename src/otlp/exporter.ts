/*
 * Sends the items of one signal to a collector, in batches. The queue is bounded: a collector that is down or slow
 * costs items, which are counted, and nothing else.
 * Spec: OpenTelemetry Protocol (OTLP), "OTLP/HTTP"; OpenTelemetry SDK, "Batching processor".
 */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { builtin } from '../base/builtin.js';
import { backoffMs, clearTimeout, Date, monotonicNow, setTimeout } from '../base/clock.js';
import { MAX_TIMEOUT_MS, within } from '../base/deadline.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import { ATTRIBUTES, message, tagOf, TEXT, varint, type Attributes, type Form } from '../payload/protobuf.js';
import type { Signal, SignalSettings } from './variables.js';

const SLAB_LENGTH = 16_384;
const MAX_ANSWER_LENGTH = 65_536;
const CLOSE_MS = 1000;
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 5000;
/** Without it, a collector's `Retry-After` of years would stop the export until the process ends. */
const MAX_RETRY_AFTER_MS = 300_000;
/** Statuses after which a batch is sent again (OTLP/HTTP, "Retryable Response Codes"); 0: no answer. */
const RETRYABLE: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);

/** Items that are sent together. */
interface Batch {
  /** As bytes: a text that was put together keeps all of its parts alive. Full but for the last one. */
  readonly slabs: Buffer[];
  /** Bytes in the last slab. */
  used: number;
  /** Spans, log records or data points in them. */
  count: number;
  /** When it is sent, full or not, on the clock of `performance.now()`. */
  readonly dueMs: number;
}

/** The names of the lists that are around the items of a signal. */
const LISTS: Readonly<Record<Signal, readonly string[]>> = {
  traces: ['resourceSpans', 'scopeSpans', 'spans'],
  logs: ['resourceLogs', 'scopeLogs', 'logRecords'],
  metrics: ['resourceMetrics', 'scopeMetrics', 'metrics'],
};
const RESOURCE = message({ attributes: [1, ATTRIBUTES] });
const SCOPE = message({ name: [1, TEXT], version: [2, TEXT] });
/** Begins each item, and each list of items, in protobuf. */
export const ITEM: string = tagOf(2);

/** A queue and its connection. */
export interface Exporter {
  readonly settings: SignalSettings;
  /** Whether items can be added; if not, `count` of them are dropped. */
  hasRoomOrDrops(count?: number): boolean;
  /** @param item encoded, with {@link ITEM} @param count spans, log records or data points in the item. Default: 1 */
  add(item: string, count?: number): void;
  /** Sends what is queued, and drops the rest after a second. */
  close(): Promise<void>;
}

/**
 * Begins to export, in the async context of its caller: outside of the requests whose items fill the batches.
 *
 * @param resource attributes of the service
 * @param drop is called with the number of spans, log records or data points that were not sent
 */
export function startExporter(
  settings: SignalSettings, resource: Attributes, drop: (count: number, reason: string) => void,
): Exporter {
  const { signal, url, form, headers, timeoutMs, isCompressed, maxQueueSize, maxBatchSize, delayMs } = settings;
  const { Agent, request } = url.protocol === 'https:' ? builtin('node:https') : builtin('node:http');
  const envelope = createEnvelope(form, signal, resource);
  const type = form === 'json' ? 'application/json' : 'application/x-protobuf';
  const own = { 'content-type': type, ...(isCompressed && { 'content-encoding': 'gzip' }) };
  const compress = isCompressed ? builtin('node:util').promisify(builtin('node:zlib').gzip) : undefined;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const queue: Batch[] = [];
  let waiting = 0;
  let wake = (): void => undefined;
  let cancel: (reason: string) => void = () => undefined;
  let isClosing = false;
  let isClosed = false;
  let notBeforeMs = 0;

  /** Waits, but not while the application closes. @param due returns the time, also after each `wake` */
  const waitUntil = async (due: () => number): Promise<void> => {
    for (let leftMs = due() - monotonicNow(); leftMs > 0 && !isClosing; leftMs = due() - monotonicNow()) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(leftMs, MAX_TIMEOUT_MS)).unref();
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  };

  /** @returns the answer of the collector; the status is 0 without a whole one, and `reason` says why */
  const post = async (body: Buffer, leftMs: number) => {
    // A request whose collector switched protocols (101) has no more events, so only a signal ends the wait for them.
    const abort = new AbortController();
    const { signal } = abort;
    let text = '';
    cancel = (reason) => abort.abort(reason);
    const timer = setTimeout(cancel, Math.max(1, leftMs), `no answer within ${timeoutMs} ms`).unref();
    try {
      // Inside the try: node:http throws for headers that contradict each other.
      const all = { ...headers, ...own, 'content-length': body.length };
      const req = request(url, { method: 'POST', agent, signal, headers: all });
      // A collector that hangs must not keep the process alive.
      req.on('socket', (socket) => socket.unref()).on('error', () => undefined);
      req.end(body);
      const [res] = (await once(req, 'response', { signal })) as [IncomingMessage];
      for await (const chunk of res.setEncoding('latin1')) {
        text += chunk;
        if (text.length > MAX_ANSWER_LENGTH) cancel('the answer of the collector is too long');
      }
      const { statusCode: status = 0, headers: answered } = res;
      return { status, retryAfter: answered['retry-after'], text, reason: `the collector answered ${status}` };
    } catch (error) {
      const what = `the collector is unreachable: ${(error as NodeJS.ErrnoException).code}`;
      return { status: 0, retryAfter: undefined, text: '', reason: signal.aborted ? String(signal.reason) : what };
    } finally {
      clearTimeout(timer);
      // Ends a request that the collector answered before it read it.
      abort.abort();
    }
  };

  const send = async (batch: Batch): Promise<void> => {
    const { slabs, count } = batch;
    trim(batch);
    const [head, tail] = envelope(slabs.reduce((length, slab) => length + slab.length, 0));
    const plain = Buffer.concat([Buffer.from(head, 'latin1'), ...slabs, Buffer.from(tail, 'latin1')]);
    const body = compress === undefined ? plain : await compress(plain);
    if (isClosed) return drop(count, 'the application closed');
    const deadlineMs = monotonicNow() + timeoutMs;
    let cause: string | undefined;
    for (let attempt = 1; ; attempt += 1) {
      const { status, retryAfter, text, reason } = await post(body, deadlineMs - monotonicNow());
      // Rejected items are not sent again (OTLP/HTTP, "Partial Success").
      if (status >= 200 && status < 300) return drop(readRejected(form, text), 'the collector rejected them');
      const isRetryable = RETRYABLE.has(status);
      if (isRetryable) notBeforeMs = monotonicNow() + pauseBefore(attempt, retryAfter);
      // The last attempt may only have run out of time.
      cause ??= reason;
      if (!isRetryable || notBeforeMs >= deadlineMs || isClosing) return drop(count, cause);
      await waitUntil(() => notBeforeMs);
    }
  };

  /** Sends a batch when it is full, or `delayMs` after its first item. Without items nothing wakes the process. */
  const run = async (): Promise<void> => {
    while (!isClosing || waiting > 0) {
      const isFull = (): boolean => queue.length > 1 || waiting >= maxBatchSize;
      await waitUntil(() => Math.max(notBeforeMs, isFull() ? 0 : (queue[0]?.dueMs ?? Infinity)));
      const batch = queue.shift();
      waiting -= batch?.count ?? 0;
      if (batch !== undefined) await send(batch);
    }
  };
  const done = run();
  return {
    settings,
    hasRoomOrDrops(count = 1) {
      const hasRoom = waiting < maxQueueSize;
      if (!hasRoom) drop(count, 'the queue is full');
      return hasRoom;
    },
    add(item, count = 1) {
      let batch = queue.at(-1);
      if (batch === undefined || batch.count + count > maxBatchSize) {
        // Also with a delay of 0, spans of requests that end together share a batch.
        batch = { slabs: [], used: 0, count: 0, dueMs: monotonicNow() + Math.max(1, delayMs) };
        queue.push(batch);
      }
      append(batch, form === 'json' && batch.count > 0 ? `,${item}` : item);
      batch.count += count;
      waiting += count;
      if (batch.count === count || batch.count >= maxBatchSize) wake();
    },
    async close() {
      isClosing = true;
      wake();
      await within(CLOSE_MS, done);
      drop(waiting, 'the application closed');
      queue.length = 0;
      waiting = 0;
      isClosed = true;
      cancel('the application closed');
      await done;
      agent.destroy();
    },
  };
}

/** A buffer for each item would take a third as long as to encode it. */
function append(batch: Batch, item: string): void {
  let slab = batch.slabs.at(-1);
  if (slab === undefined || batch.used + item.length > slab.length) {
    trim(batch);
    slab = Buffer.allocUnsafeSlow(Math.max(SLAB_LENGTH, item.length));
    batch.slabs.push(slab);
    batch.used = 0;
  }
  batch.used += slab.write(item, batch.used, 'latin1');
}

/** Cuts off the rest of the last slab. */
function trim({ slabs, used }: Batch): void {
  const last = slabs.pop();
  if (last !== undefined) slabs.push(last.subarray(0, used));
}

/** The pause before the next attempt, in ms: {@link backoffMs} from 1 s up to 5 s, or a longer `Retry-After` up to 5 min. */
function pauseBefore(attempt: number, retryAfter = ''): number {
  const seconds = Number(retryAfter);
  const askedMs = Number.isNaN(seconds) ? Date.parse(retryAfter) - Date.now() : seconds * 1000;
  return Math.max(Math.min(askedMs || 0, MAX_RETRY_AFTER_MS), backoffMs(attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS));
}

/** @returns a function with the length of all items of a batch, which returns the text before them and after them */
function createEnvelope(form: Form, signal: Signal, of: Attributes): (length: number) => readonly [string, string] {
  const resource = RESOURCE[form]({ attributes: of }, tagOf(1));
  const scope = SCOPE[form]({ name: 'postern', version: FRAMEWORK_VERSION }, tagOf(1));
  const [outer, inner, items] = LISTS[signal];
  const head = `{"${outer}":[{"resource":${resource},"${inner}":[{"scope":${scope},"${items}":[`;
  if (form === 'json') return () => [head, ']}]}]}'];
  return (length) => {
    const members = resource + ITEM + varint(scope.length + length) + scope;
    return [tagOf(1) + varint(members.length + length) + members, ''];
  };
}

/** Reads how many items the collector rejected (`partial_success`). */
function readRejected(form: Form, answer: string): number {
  if (form === 'json') return Number(/"rejected\w+"\s*:\s*"?(\d{1,9})/.exec(answer)?.[1] ?? 0);
  // Field 1, a message, which begins with its field 1, a number.
  const groups = /^\n[\x80-\xff]*[\0-\x7f]\x08([\x80-\xff]{0,4}[\0-\x7f])/.exec(answer)?.[1] ?? '';
  return Array.from(groups).reduceRight((sum, group) => sum * 128 + (group.charCodeAt(0) & 127), 0);
}
