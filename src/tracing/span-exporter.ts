/*
 * Sends finished spans to a collector, in batches. The queue is bounded: a collector that is down or slow costs spans,
 * which are counted, and nothing else.
 *
 * Spec: OpenTelemetry Protocol (OTLP), "OTLP/HTTP", JSON; OpenTelemetry SDK, "Batching processor".
 */

import { Agent, request as httpRequest } from 'node:http';
import { builtin } from '../base/builtin.js';
import { clearInterval, clearTimeout, Date, monotonicNow, random, setInterval, setTimeout } from '../base/clock.js';
import { within } from '../base/deadline.js';
import { logSafely, type Logger } from '../base/log.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import type { ExportSettings } from './otel-variables.js';

const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 5000;
const MAX_ANSWER_LENGTH = 65_536;
const CLOSE_MS = 1000;
const WARN_EVERY_MS = 60_000;
/** Statuses after which a batch is sent again (OTLP/HTTP, "Retryable Response Codes"); 0: no answer. */
const RETRYABLE: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);

/** Answer of a collector. Without one the status is 0; `reason` says why. */
interface Outcome {
  status: number;
  retryAfter?: string;
  text: string;
  reason: string;
}

/** Exports the spans of one application. */
export class SpanExporter {
  readonly #settings: ExportSettings;
  /** The JSON before the spans of a request. */
  readonly #head: string;
  readonly #countDropped: (count: number) => void;
  readonly #logger: Logger;
  readonly #agent: Agent;
  readonly #timer: NodeJS.Timeout;
  readonly #flush: () => void;
  readonly #queue: string[] = [];
  #sending: Promise<void> | undefined;
  #wake: () => void = () => undefined;
  #notBeforeMs = 0;
  /** Infinity until {@link close}. */
  #closeByMs = Infinity;
  #unreported = 0;
  #warnedMs = -Infinity;

  constructor(settings: ExportSettings, resource: string, countDropped: (count: number) => void, logger: Logger) {
    const scope = JSON.stringify({ name: 'postern', version: FRAMEWORK_VERSION });
    const options = { keepAlive: true, maxSockets: 1 };
    this.#settings = settings;
    this.#head = `{"resourceSpans":[{"resource":{${resource}},"scopeSpans":[{"scope":${scope},"spans":[`;
    this.#countDropped = countDropped;
    this.#logger = logger;
    this.#agent = settings.url.protocol === 'https:' ? new (builtin('node:https').Agent)(options) : new Agent(options);
    // Outside the async context of the request whose span fills the batch.
    this.#flush = builtin('node:async_hooks').AsyncResource.bind(() => void this.#send());
    this.#timer = setInterval(this.#flush, Math.max(1, settings.delayMs)).unref();
  }

  /** @param span in JSON */
  add(span: string): void {
    const { maxQueueSize, maxBatchSize } = this.#settings;
    if (this.#queue.length >= maxQueueSize) this.#drop(1, 'the queue is full');
    else if (this.#queue.push(span) >= maxBatchSize && this.#sending === undefined) this.#flush();
  }

  /** Sends what is queued; drops the rest after a second. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closeByMs = monotonicNow() + CLOSE_MS;
    this.#wake();
    const sent = this.#send();
    await within(CLOSE_MS, sent);
    this.#agent.destroy();
    await sent;
    if (this.#queue.length > 0) this.#drop(this.#queue.splice(0).length, 'the application closed');
  }

  #send(): Promise<void> {
    const sendAll = async (): Promise<void> => {
      while (this.#queue.length > 0 && monotonicNow() < this.#closeByMs) {
        await this.#pauseUntil(this.#notBeforeMs);
        await this.#sendBatch(this.#queue.splice(0, this.#settings.maxBatchSize));
      }
    };
    return (this.#sending ??= sendAll().finally(() => (this.#sending = undefined)));
  }

  async #sendBatch(batch: string[]): Promise<void> {
    const body = Buffer.from(`${this.#head}${batch.join(',')}]}]}]}`);
    const deadlineMs = monotonicNow() + this.#settings.timeoutMs;
    for (let attempt = 1; ; attempt += 1) {
      const { status, retryAfter, text, reason } = await this.#post(body, deadlineMs - monotonicNow());
      if (status >= 200 && status < 300) {
        // Rejected spans are not sent again (OTLP/HTTP, "Partial Success").
        const rejected = Number(/"rejectedSpans"\s*:\s*"?(\d{1,9})/.exec(text)?.[1] ?? 0);
        if (rejected > 0) this.#drop(rejected, 'the collector rejected them');
        return;
      }
      const nextMs = monotonicNow() + pauseBefore(attempt, retryAfter);
      this.#notBeforeMs = retryAfter === undefined ? 0 : nextMs;
      const isLast = attempt === MAX_ATTEMPTS || nextMs >= deadlineMs || this.#closeByMs !== Infinity;
      if (isLast || !RETRYABLE.has(status)) return this.#drop(batch.length, reason);
      await this.#pauseUntil(nextMs);
    }
  }

  /** Waits, but not while closing. */
  async #pauseUntil(ms: number): Promise<void> {
    const leftMs = ms - monotonicNow();
    if (leftMs <= 0 || this.#closeByMs !== Infinity) return;
    await new Promise<void>((resolve) => {
      setTimeout(resolve, leftMs).unref();
      this.#wake = resolve;
    });
  }

  #post(body: Buffer, timeoutMs: number): Promise<Outcome> {
    const { url, headers, timeoutMs: limitMs } = this.#settings;
    const send = url.protocol === 'https:' ? builtin('node:https').request : httpRequest;
    const own = { 'content-type': 'application/json', 'content-length': body.length };
    const outcome = { status: 0, text: '', reason: `no answer within ${limitMs} ms` };
    return new Promise((resolve) => {
      const req = send(url, { method: 'POST', agent: this.#agent, headers: { ...headers, ...own } });
      const timer = setTimeout(() => req.destroy(new Error(outcome.reason)), Math.max(1, timeoutMs)).unref();
      // A collector that hangs must not keep the process alive.
      req.on('socket', (socket) => socket.unref());
      req.on('error', (error) => {
        if ('code' in error) outcome.reason = `the collector is unreachable: ${String(error.code)}`;
      });
      req.on('response', (res) => {
        res.setEncoding('utf8').on('data', (chunk: string) => {
          outcome.text += chunk;
          if (outcome.text.length > MAX_ANSWER_LENGTH) req.destroy();
        });
        res.on('end', () => {
          const { statusCode: status, headers: answered } = res;
          Object.assign(outcome, { status, retryAfter: answered['retry-after'] });
          outcome.reason = `the collector answered ${status}`;
        });
      });
      req.on('close', () => {
        clearTimeout(timer);
        resolve(outcome);
      });
      req.end(body);
    });
  }

  #drop(count: number, reason: string): void {
    this.#countDropped(count);
    this.#unreported += count;
    if (monotonicNow() < this.#warnedMs + WARN_EVERY_MS) return;
    this.#warnedMs = monotonicNow();
    const entry = { spans: this.#unreported, reason };
    logSafely(this.#logger, 'warn', entry, 'spans could not be exported and were dropped');
    this.#unreported = 0;
  }
}

/** As long as `Retry-After` says, else from 1 s up to 5 s, ± 20 %. */
function pauseBefore(attempt: number, retryAfter: string | undefined): number {
  const seconds = Number(retryAfter ?? NaN);
  const delayMs = Number.isNaN(seconds) ? Date.parse(retryAfter ?? '') - Date.now() : seconds * 1000;
  if (delayMs >= 0) return delayMs;
  return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 1.5 ** (attempt - 1)) * (0.8 + random() * 0.4);
}
