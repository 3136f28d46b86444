/*
 * Runs work that is not a request: a message, a timer, a batch. It has what a request has: an id, a log, a metric, and
 * calls that pass on its trace; and a drain waits for it.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http';
import type { ServingOptions, SpanExport } from '../answer/context.js';
import { clearTimeout, monotonicNow, setTimeout } from '../base/clock.js';
import { TIME_LIMIT } from '../base/deadline.js';
import { ServiceUnavailable, TimedOut } from '../base/errors.js';
import { bindLogger, logSafely, OwnLog, type SafeLogger } from '../base/log.js';
import { assertOptions, show, type Kind, type Kinds } from '../base/options-check.js';
import type { ServiceClient } from '../mesh/service-client.js';
import { PASSED_ON, requestId } from '../propagation/mesh-headers.js';
import { beginRequestSpan, outgoingHeaders, traceIds, type TraceSpan } from '../propagation/trace-context.js';
import type { CallTuple } from '../story/calls.js';

/** Where a job comes from, and how long it may take. */
export interface JobOptions {
  /**
   * Headers of the message by name, as its client has them. `x-request-id`, `traceparent`, `tracestate` and `baggage` are
   * read if they are strings or bytes; everything else is ignored. Default: none.
   */
  headers?: object | null | undefined;
  /** Time in ms after which `job.signal` aborts and the job's calls end; the function continues. Default: no limit. */
  timeout?: number | undefined;
}

const HEADERS: Kind = { accepts: (value) => typeof value === 'object', give: 'the headers of a message, by name' };
const JOB: Kinds<JobOptions> = { headers: HEADERS, timeout: TIME_LIMIT };

/** The message of the tracing channel `postern.job`, one object for all events of a job. */
export interface JobTraceMessage {
  /** The job. */
  readonly job: Job;
  /** Its span, in the trace of its headers or a new one; the calls that it makes are below it. */
  readonly trace: TraceSpan;
  /** The thrown value, from the event `error` on. */
  error?: unknown;
}

/** Gets each job when it has ended. */
export type ObserveJob = (name: string, outcome: 'done' | 'failed', seconds: number) => void;

const channel = tracingChannel<JobTraceMessage, JobTraceMessage>('postern.job');

/** Work that is not a request, as its function sees it. */
export class Job {
  /** The name that `app.job` was given. */
  readonly name: string;
  /** The `x-request-id` of the headers if it matches `[A-Za-z0-9._-]{1,128}`, else a new id. */
  readonly id: string;
  /** The application's logger, with the job's id as `request_id` in every entry. Its calls never throw. */
  readonly log: SafeLogger;
  /** Aborts when the `timeout` of the job is over, or of the drain that waits for it. */
  readonly signal: AbortSignal;
  /** @internal */
  readonly headers: IncomingHttpHeaders;
  /** The span of this job, while somebody records its trace. @internal */
  readonly span: TraceSpan | undefined;
  /** On the clock of `performance.now()`. @internal */
  readonly startedAtMs: number = monotonicNow();
  /** When its calls must end, on that clock; Infinity: never. @internal */
  readonly deadlineMs: number;
  /** The calls so far; null before the first one. @internal */
  calls: CallTuple[] | null = null;
  readonly #options: ServingOptions;

  /** @internal */
  constructor(name: string, { headers, timeout = Infinity }: JobOptions, signal: AbortSignal, given: ServingOptions) {
    this.name = name;
    this.headers = readHeaders(headers ?? {});
    this.id = requestId(this);
    this.signal = signal;
    this.deadlineMs = this.startedAtMs + timeout;
    this.#options = given;
    const { spanExport } = given;
    if (channel.hasSubscribers || spanExport !== null)
      this.span = beginRequestSpan(this.headers, spanExport?.sample);
    this.log = bindLogger(given.logger, { request_id: this.id, ...traceIds(this) });
  }

  /** Exports the span of this job and of its calls; null while nothing does. @internal */
  get spanExport(): SpanExport | null {
    return this.#options.spanExport;
  }

  /**
   * Returns a client for another service. Its calls pass on this job's id and trace, and end with its signal.
   *
   * @throws {TypeError} when no connection of that name is configured
   * @example await job.service('billing').post('/invoices', { json: { order: 7 } });
   */
  service(name: string): ServiceClient {
    return this.#options.services.client(name, this);
  }

  /**
   * Returns the id and the trace of this job, as headers for a message or for a request of one's own.
   * @example await mails.add({ to: 'ada@example.com', headers: job.outgoingHeaders() });
   */
  outgoingHeaders(): Record<string, string> {
    return outgoingHeaders(this, this.span);
  }
}

/** The function of a job: the job in, a value or a promise of one out. */
export type JobFunction<T> = (job: Job) => T | Promise<T>;

/** The jobs of one application. @internal */
export class Jobs {
  readonly #running = new Set<AbortController>();

  constructor(
    readonly options: ServingOptions,
    readonly observe: ObserveJob,
  ) {}

  /** Number of jobs that have not ended. */
  get active(): number {
    return this.#running.size;
  }

  /** Runs a job. The caller has to handle a rejection. @throws {TypeError} for a wrong argument */
  run<T>(name: string, options: JobOptions, run: JobFunction<T>): Promise<T> {
    if (typeof name !== 'string' || name === '')
      throw new TypeError(`the name of a job is ${show(name)}; give a text, such as 'orders.placed'`);
    if (typeof run !== 'function')
      throw new TypeError(`job ${show(name)} has no function; give it as the last argument`);
    assertOptions('job()', options, JOB);
    return this.#run(name, options, run);
  }

  /** Aborts the signals of all jobs: nothing waits for them any more. */
  cut(): void {
    for (const abort of this.#running) abort.abort(new ServiceUnavailable(CLOSING));
  }

  async #run<T>(name: string, options: JobOptions, run: JobFunction<T>): Promise<T> {
    if (this.options.closing.aborted) throw new ServiceUnavailable(CLOSING);
    const { timeout } = options;
    const abort = new AbortController();
    const job = new Job(name, options, abort.signal, this.options);
    const stop = (): void => abort.abort(new TimedOut(`The job took longer than ${timeout} ms.`));
    const timer = timeout === undefined ? undefined : setTimeout(stop, timeout);
    this.#running.add(abort);
    let outcome: 'done' | 'failed' = 'failed';
    try {
      const result = await traced(job, run);
      outcome = 'done';
      return result;
    } catch (err) {
      const logger = new OwnLog(job.log, this.options.story.note);
      logSafely(logger, 'error', { job: name, err, ...(job.calls && { calls: job.calls }) }, 'job failed');
      throw err;
    } finally {
      clearTimeout(timer);
      this.#running.delete(abort);
      this.observe(name, outcome, (monotonicNow() - job.startedAtMs) / 1000);
    }
  }
}

const CLOSING = 'The service is closing and begins no more jobs.';

/** Publishes a job while somebody records its span. */
async function traced<T>(job: Job, run: JobFunction<T>): Promise<T> {
  if (job.span === undefined) return run(job);
  const message: JobTraceMessage = { job, trace: job.span };
  try {
    return await channel.tracePromise(async () => run(job), message);
  } catch (error) {
    // The channel sets it for subscribers of its own only.
    message.error = error;
    throw error;
  } finally {
    job.spanExport?.addJob(message, job.startedAtMs);
  }
}

/** Maximum length of a value: `node:http` refuses a request whose head has more than 16 KiB. */
const MAX_LENGTH = 8192;

/** The headers of a message that a call can pass on, names in lower case. */
function readHeaders(given: object): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {};
  for (const [key, value] of Object.entries(given)) {
    const name = key.toLowerCase();
    const text = value instanceof Uint8Array ? Buffer.from(value).toString() : (value as unknown);
    if (!PASSED_ON.includes(name) || typeof text !== 'string' || text.length > MAX_LENGTH) continue;
    if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) headers[name] = text;
  }
  return headers;
}
