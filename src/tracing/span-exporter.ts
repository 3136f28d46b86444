/*
 * Sends finished spans to a collector, in batches. The queue is bounded: a collector that is down or slow costs spans,
 * which are counted, and nothing else.
 *
 * Spec: OpenTelemetry Protocol (OTLP), "OTLP/HTTP", JSON; OpenTelemetry SDK, "Batching processor".
 */

import { once } from 'node:events';
import type { Agent, IncomingMessage } from 'node:http';
import { builtin } from '../base/builtin.js';
import { clearTimeout, monotonicNow, setTimeout } from '../base/clock.js';
import { MAX_TIMEOUT_MS, within } from '../base/deadline.js';
import { logSafely, type Logger } from '../base/log.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import { pauseBefore } from '../mesh/retry.js';
import type { ExportSettings } from './otel-variables.js';

const MAX_ANSWER_LENGTH = 65_536;
const CLOSE_MS = 1000;
const WARN_EVERY_MS = 60_000;
/** Statuses after which a batch is sent again (OTLP/HTTP, "Retryable Response Codes"); 0: no answer. */
const RETRYABLE: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);
const TAIL = Buffer.from(']}]}]}');

/** Answer of a collector; the status is 0 without a whole one, and `reason` says why. */
interface Answer {
  readonly status: number;
  readonly retryAfter?: string | undefined;
  readonly text: string;
  readonly reason: string;
}

/** Exports the spans of one application. */
export class SpanExporter {
  readonly #settings: ExportSettings;
  /** The JSON before the spans of a request. */
  readonly #head: Buffer;
  readonly #countDropped: (count: number) => void;
  readonly #logger: Logger;
  readonly #http: Pick<typeof import('node:http'), 'Agent' | 'request'>;
  readonly #agent: Agent;
  /** Each begins with a comma. */
  readonly #queue: Buffer[] = [];
  readonly #done: Promise<void>;
  #wake = (): void => undefined;
  #cancel: (reason: string) => void = () => undefined;
  #isClosing = false;
  #notBeforeMs = 0;
  #unreported = 0;
  #warnedMs = -Infinity;

  constructor(settings: ExportSettings, resource: string, countDropped: (count: number) => void, logger: Logger) {
    const scope = JSON.stringify({ name: 'postern', version: FRAMEWORK_VERSION });
    this.#settings = settings;
    this.#head = Buffer.from(`{"resourceSpans":[{"resource":{${resource}},"scopeSpans":[{"scope":${scope},"spans":`);
    this.#countDropped = countDropped;
    this.#logger = logger;
    this.#http = settings.url.protocol === 'https:' ? builtin('node:https') : builtin('node:http');
    this.#agent = new this.#http.Agent({ keepAlive: true, maxSockets: 1 });
    this.#done = this.#run();
  }

  /** @param toJson is not called while the queue is full */
  add(toJson: () => string): void {
    const { maxQueueSize, maxBatchSize } = this.#settings;
    if (this.#queue.length >= maxQueueSize) this.#drop(1, 'the queue is full');
    else if (this.#queue.push(Buffer.from(`,${toJson()}`)) === maxBatchSize) this.#wake();
  }

  /** Sends what is queued; drops the rest after a second. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#wake();
    await within(CLOSE_MS, this.#done);
    this.#drop(this.#queue.splice(0).length, 'the application closed');
    this.#cancel('the application closed');
    await this.#done;
    this.#agent.destroy();
  }

  /**
   * Sends a batch when it is full, and every `delayMs`. All of it runs in the async context of `listen()`, outside of
   * the request whose span fills a batch.
   */
  async #run(): Promise<void> {
    const { maxBatchSize, delayMs } = this.#settings;
    while (!this.#isClosing || this.#queue.length > 0) {
      const dueMs = monotonicNow() + Math.max(1, delayMs);
      await this.#waitUntil(() => Math.max(this.#notBeforeMs, this.#queue.length < maxBatchSize ? dueMs : 0));
      await this.#send(this.#queue.splice(0, maxBatchSize));
    }
  }

  /** Waits, but not while the application closes. @param due returns the time, also after each {@link #wake} */
  async #waitUntil(due: () => number): Promise<void> {
    for (let leftMs = due() - monotonicNow(); leftMs > 0 && !this.#isClosing; leftMs = due() - monotonicNow()) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, Math.min(leftMs, MAX_TIMEOUT_MS)).unref();
      });
      clearTimeout(timer);
    }
  }

  async #send(batch: readonly Buffer[]): Promise<void> {
    const body = Buffer.concat([this.#head, ...batch, TAIL]);
    // In place of the comma.
    body.write('[', this.#head.length);
    const deadlineMs = monotonicNow() + this.#settings.timeoutMs;
    let cause: string | undefined;
    for (let attempt = 1; batch.length > 0; attempt += 1) {
      const { status, retryAfter, text, reason } = await this.#post(body, deadlineMs - monotonicNow());
      // Rejected spans are not sent again (OTLP/HTTP, "Partial Success").
      const rejected = Number(/"rejectedSpans"\s*:\s*"?(\d{1,9})/.exec(text)?.[1] ?? 0);
      if (status >= 200 && status < 300) return this.#drop(rejected, 'the collector rejected them');
      const pauseMs = Math.max(pauseBefore(attempt, retryAfter), pauseBefore(attempt, undefined));
      this.#notBeforeMs = monotonicNow() + pauseMs;
      if (!RETRYABLE.has(status)) return this.#drop(batch.length, reason);
      // The last attempt may only have run out of time.
      cause ??= reason;
      if (this.#notBeforeMs >= deadlineMs || this.#isClosing) return this.#drop(batch.length, cause);
      await this.#waitUntil(() => this.#notBeforeMs);
    }
  }

  async #post(body: Buffer, timeoutMs: number): Promise<Answer> {
    const { url, headers, timeoutMs: limitMs } = this.#settings;
    const own = { 'content-type': 'application/json', 'content-length': body.length };
    const req = this.#http.request(url, { method: 'POST', agent: this.#agent, headers: { ...headers, ...own } });
    let cancelled: string | undefined;
    this.#cancel = (reason) => {
      cancelled ??= reason;
      req.destroy();
    };
    const timer = setTimeout(this.#cancel, Math.max(1, timeoutMs), `no answer within ${limitMs} ms`);
    let text = '';
    try {
      req.on('error', () => undefined).end(body);
      const [res] = (await once(req, 'response')) as [IncomingMessage];
      for await (const chunk of res.setEncoding('utf8')) {
        text += chunk;
        if (text.length > MAX_ANSWER_LENGTH) this.#cancel('the answer of the collector is too long');
      }
      const status = res.statusCode ?? 0;
      return { status, retryAfter: res.headers['retry-after'], text, reason: `the collector answered ${status}` };
    } catch (error) {
      const reason = cancelled ?? `the collector is unreachable: ${(error as NodeJS.ErrnoException).code}`;
      return { status: 0, text: '', reason };
    } finally {
      clearTimeout(timer);
      // Ends a request that the collector answered before it read it.
      req.destroy();
    }
  }

  #drop(count: number, reason: string): void {
    if (count === 0) return;
    this.#countDropped(count);
    this.#unreported += count;
    if (monotonicNow() < this.#warnedMs + WARN_EVERY_MS) return;
    this.#warnedMs = monotonicNow();
    const entry = { spans: this.#unreported, reason };
    logSafely(this.#logger, 'warn', entry, 'spans could not be exported and were dropped');
    this.#unreported = 0;
  }
}
