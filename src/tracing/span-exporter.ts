/*
 * Sends finished spans to a collector, in batches. The queue is bounded: a collector that is down or slow costs spans,
 * which are counted, and nothing else.
 * Spec: OpenTelemetry Protocol (OTLP), "OTLP/HTTP", JSON; OpenTelemetry SDK, "Batching processor".
 */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { builtin } from '../base/builtin.js';
import { clearTimeout, monotonicNow, setTimeout } from '../base/clock.js';
import { MAX_TIMEOUT_MS, within } from '../base/deadline.js';
import { pauseBefore } from '../mesh/retry.js';
import type { ExportSettings } from './otel-variables.js';

const MAX_ANSWER_LENGTH = 65_536;
const CLOSE_MS = 1000;
const FIRST_BYTES = 16_384;
/** Statuses after which a batch is sent again (OTLP/HTTP, "Retryable Response Codes"); 0: no answer. */
const RETRYABLE: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);

/** Exports the spans of one application. */
export interface SpanExporter {
  /** Whether the queue has room; otherwise a span is counted as dropped. */
  hasRoom(): boolean;
  /** @param span in JSON of ASCII */
  add(span: string): void;
  /** Sends what is queued; drops the rest after a second. */
  close(): Promise<void>;
}

/** Spans that are sent together: the body of a request, without its tail. */
interface Batch {
  bytes: Buffer;
  length: number;
  count: number;
}

/**
 * Begins to export, in the async context of its caller: outside of the requests whose spans fill the batches.
 *
 * @param head JSON of ASCII before the spans of a batch @param tail JSON after them
 * @param drop is called with the number of spans that were not sent
 */
export function startExporter(
  settings: ExportSettings,
  head: string,
  tail: string,
  drop: (count: number, reason: string) => void,
): SpanExporter {
  const { url, maxQueueSize, maxBatchSize, delayMs } = settings;
  const { Agent, request } = url.protocol === 'https:' ? builtin('node:https') : builtin('node:http');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const queue: Batch[] = [];
  let waiting = 0;
  let wake = (): void => undefined;
  let cancel: (reason: string) => void = () => undefined;
  let isClosing = false;
  let notBeforeMs = 0;

  /** Waits, but not while the application closes. @param due returns the time, also after each `wake` */
  const waitUntil = async (due: () => number): Promise<void> => {
    for (let leftMs = due() - monotonicNow(); leftMs > 0 && !isClosing; leftMs = due() - monotonicNow()) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
        timer = setTimeout(resolve, Math.min(leftMs, MAX_TIMEOUT_MS)).unref();
      });
      clearTimeout(timer);
    }
  };

  /** @returns the answer of the collector; the status is 0 without a whole one, and `reason` says why */
  const post = async (body: Buffer, timeoutMs: number) => {
    const headers = { ...settings.headers, 'content-type': 'application/json', 'content-length': body.length };
    const req = request(url, { method: 'POST', agent, headers });
    let [text, reason] = ['', ''];
    cancel = (why) => {
      reason ||= why;
      req.destroy();
    };
    const timer = setTimeout(cancel, Math.max(1, timeoutMs), `no answer within ${settings.timeoutMs} ms`).unref();
    // A collector that hangs must not keep the process alive.
    req.on('socket', (socket) => socket.unref()).on('error', () => undefined);
    try {
      req.end(body);
      const [res] = (await once(req, 'response')) as [IncomingMessage];
      const { statusCode: status = 0, headers: answered } = res;
      for await (const chunk of res.setEncoding('utf8')) {
        text += chunk;
        if (text.length > MAX_ANSWER_LENGTH) cancel('the answer of the collector is too long');
      }
      return { status, retryAfter: answered['retry-after'], text, reason: `the collector answered ${status}` };
    } catch (error) {
      reason ||= `the collector is unreachable: ${(error as NodeJS.ErrnoException).code}`;
      return { status: 0, retryAfter: undefined, text: '', reason };
    } finally {
      clearTimeout(timer);
      // Ends a request that the collector answered before it read it.
      req.destroy();
    }
  };

  /** Encodes at once: a text that was put together keeps all of its parts alive, and each collection moves them. */
  const append = (batch: Batch, text: string): void => {
    const length = batch.length + text.length;
    if (length > batch.bytes.length) {
      const { bytes } = batch;
      batch.bytes = Buffer.allocUnsafeSlow(Math.max(length, bytes.length * 2, FIRST_BYTES));
      batch.bytes.set(bytes);
    }
    batch.bytes.write(text, batch.length, 'latin1');
    batch.length = length;
  };

  const send = async (batch: Batch): Promise<void> => {
    append(batch, tail);
    const body = batch.bytes.subarray(0, batch.length);
    const deadlineMs = monotonicNow() + settings.timeoutMs;
    let cause: string | undefined;
    for (let attempt = 1; ; attempt += 1) {
      const { status, retryAfter, text, reason } = await post(body, deadlineMs - monotonicNow());
      // Rejected spans are not sent again (OTLP/HTTP, "Partial Success").
      const rejected = Number(/"rejectedSpans"\s*:\s*"?(\d{1,9})/.exec(text)?.[1] ?? 0);
      if (status >= 200 && status < 300) return drop(rejected, 'the collector rejected them');
      const isRetryable = RETRYABLE.has(status);
      if (isRetryable)
        notBeforeMs = monotonicNow() + Math.max(pauseBefore(attempt, retryAfter), pauseBefore(attempt, undefined));
      // The last attempt may only have run out of time.
      cause ??= reason;
      if (!isRetryable || notBeforeMs >= deadlineMs || isClosing) return drop(batch.count, cause);
      await waitUntil(() => notBeforeMs);
    }
  };

  /** Sends a batch when it is full, and every `delayMs`. */
  const run = async (): Promise<void> => {
    while (!isClosing || waiting > 0) {
      const dueMs = monotonicNow() + Math.max(1, delayMs);
      await waitUntil(() => Math.max(notBeforeMs, waiting < maxBatchSize ? dueMs : 0));
      const batch = queue.shift();
      waiting -= batch?.count ?? 0;
      if (batch !== undefined) await send(batch);
    }
  };
  const done = run();
  return {
    hasRoom() {
      if (waiting >= maxQueueSize) drop(1, 'the queue is full');
      return waiting < maxQueueSize;
    },
    add(span) {
      let batch = queue.at(-1);
      if (batch === undefined || batch.count === maxBatchSize) {
        queue.push((batch = { bytes: Buffer.alloc(0), length: 0, count: 0 }));
        append(batch, head);
      }
      append(batch, batch.count === 0 ? span : `,${span}`);
      batch.count += 1;
      waiting += 1;
      if (waiting === maxBatchSize) wake();
    },
    async close() {
      isClosing = true;
      wake();
      await within(CLOSE_MS, done);
      drop(waiting, 'the application closed');
      [queue.length, waiting] = [0, 0];
      cancel('the application closed');
      await done;
      agent.destroy();
    },
  };
}
