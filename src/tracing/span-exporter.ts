/*
 * Sends finished spans to a collector, in batches. The queue is bounded: a collector that is down or slow costs spans,
 * which are counted, and nothing else.
 * Spec: OpenTelemetry Protocol (OTLP), "OTLP/HTTP", JSON; OpenTelemetry SDK, "Batching processor".
 */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { builtin } from '../base/builtin.js';
import { backoffMs, clearTimeout, Date, monotonicNow, setTimeout } from '../base/clock.js';
import { MAX_TIMEOUT_MS, within } from '../base/deadline.js';
import type { ExportSettings } from './otel-variables.js';

const MIN_PART_LENGTH = 8192;
const MAX_ANSWER_LENGTH = 65_536;
const CLOSE_MS = 1000;
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 5000;
/** Without it, a collector's `Retry-After` of years would stop the export until the process ends. */
const MAX_RETRY_AFTER_MS = 300_000;
/** Statuses after which a batch is sent again (OTLP/HTTP, "Retryable Response Codes"); 0: no answer. */
const RETRYABLE: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);

/** Spans that are sent together. */
interface Batch {
  readonly parts: Buffer[];
  /** Spans that are not encoded yet. */
  text: string;
  count: number;
  /** When it is sent, full or not, on the clock of `performance.now()`. */
  readonly dueMs: number;
}

/**
 * Begins to export, in the async context of its caller: outside of the requests whose spans fill the batches.
 *
 * @param head JSON of ASCII before the first span of a batch
 * @param drop is called with the number of spans that were not sent
 * @returns `hasRoomOrDrops`, which counts a span as dropped while the queue is full; `add`, which takes a span in JSON
 * of ASCII; and `close`, which sends what is queued and drops the rest after a second
 */
export function startSpanExporter(
  { url, headers, timeoutMs, maxQueueSize, maxBatchSize, delayMs }: ExportSettings,
  head: string,
  drop: (count: number, reason: string) => void,
): { hasRoomOrDrops: () => boolean; add: (span: string) => void; close: () => Promise<void> } {
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
    const own = { 'content-type': 'application/json', 'content-length': body.length };
    // A request whose collector switched protocols (101) has no more events, so only a signal ends the wait for them.
    const abort = new AbortController();
    const { signal } = abort;
    let text = '';
    cancel = (reason) => abort.abort(reason);
    const timer = setTimeout(cancel, Math.max(1, leftMs), `no answer within ${timeoutMs} ms`).unref();
    try {
      // Inside the try: node:http throws for headers that contradict each other.
      const req = request(url, { method: 'POST', agent, signal, headers: { ...headers, ...own } });
      // A collector that hangs must not keep the process alive.
      req.on('socket', (socket) => socket.unref()).on('error', () => undefined);
      req.end(body);
      const [res] = (await once(req, 'response', { signal })) as [IncomingMessage];
      for await (const chunk of res.setEncoding('utf8')) {
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

  const send = async ({ parts, text: rest, count }: Batch): Promise<void> => {
    const body = Buffer.concat([...parts, Buffer.from(`${rest}]}]}]}`, 'latin1')]);
    const deadlineMs = monotonicNow() + timeoutMs;
    let cause: string | undefined;
    for (let attempt = 1; ; attempt += 1) {
      const { status, retryAfter, text, reason } = await post(body, deadlineMs - monotonicNow());
      // Rejected spans are not sent again (OTLP/HTTP, "Partial Success").
      const rejected = Number(/"rejectedSpans"\s*:\s*"?(\d{1,9})/.exec(text)?.[1] ?? 0);
      if (status >= 200 && status < 300) return drop(rejected, 'the collector rejected them');
      const isRetryable = RETRYABLE.has(status);
      if (isRetryable) notBeforeMs = monotonicNow() + pauseBefore(attempt, retryAfter);
      // The last attempt may only have run out of time.
      cause ??= reason;
      if (!isRetryable || notBeforeMs >= deadlineMs || isClosing) return drop(count, cause);
      await waitUntil(() => notBeforeMs);
    }
  };

  /** Sends a batch when it is full, or `delayMs` after its first span. Without spans nothing wakes the process. */
  const run = async (): Promise<void> => {
    while (!isClosing || waiting > 0) {
      await waitUntil(() => Math.max(notBeforeMs, waiting < maxBatchSize ? (queue[0]?.dueMs ?? Infinity) : 0));
      const batch = queue.shift();
      waiting -= batch?.count ?? 0;
      if (batch !== undefined) await send(batch);
    }
  };
  const done = run();
  return {
    hasRoomOrDrops() {
      const hasRoom = waiting < maxQueueSize;
      if (!hasRoom) drop(1, 'the queue is full');
      return hasRoom;
    },
    add(span) {
      let batch = queue.at(-1);
      if (batch === undefined || batch.count === maxBatchSize) {
        // Also with a delay of 0, spans of requests that end together share a batch.
        batch = { parts: [], text: head, count: 0, dueMs: monotonicNow() + Math.max(1, delayMs) };
        queue.push(batch);
      }
      batch.text += batch.count === 0 ? span : `,${span}`;
      batch.count += 1;
      if (batch.text.length > MIN_PART_LENGTH) {
        // A text that was put together keeps all of its parts alive; bytes do not.
        batch.parts.push(Buffer.from(batch.text, 'latin1'));
        batch.text = '';
      }
      waiting += 1;
      if (batch.count === 1 || batch.count === maxBatchSize) wake();
    },
    async close() {
      isClosing = true;
      wake();
      await within(CLOSE_MS, done);
      drop(waiting, 'the application closed');
      queue.length = 0;
      waiting = 0;
      cancel('the application closed');
      await done;
      agent.destroy();
    },
  };
}

/** The pause before the next attempt, in ms: {@link backoffMs} from 1 s up to 5 s, or a longer `Retry-After` up to 5 min. */
function pauseBefore(attempt: number, retryAfter = ''): number {
  const seconds = Number(retryAfter);
  const askedMs = Number.isNaN(seconds) ? Date.parse(retryAfter) - Date.now() : seconds * 1000;
  return Math.max(Math.min(askedMs || 0, MAX_RETRY_AFTER_MS), backoffMs(attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS));
}
