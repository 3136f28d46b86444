/* The metrics endpoint: Prometheus text by default, JSON for `?json` (SPEC 2.2, 2.3, 4.1). */

import { Date } from '../base/clock.js';
import { logSafely, type Logger } from '../base/log.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import type { Context } from '../answer/context.js';
import type { Reply } from '../answer/reply.js';
import type { ObserveJob } from '../job/job.js';
import { Registry } from '../metrics/registry.js';
import type { ProcessUsage } from '../process/process-metrics.js';
import { Readings } from '../process/readings.js';
import { collectProcess, type ProcessSampler } from '../process/sampler.js';
import type { Health } from './health.js';
import { metricsText } from './metrics-text.js';
import { createCallMetrics, createJobMetrics, RequestMetrics, type ObserveCall } from './request-metrics.js';
import type { Tasks } from './tasks.js';

/** The JSON form of the metrics (SPEC 2.2), without the process's own while it has no file descriptor to read them. */
export interface MetricsDocument extends Partial<ProcessUsage> {
  total_task_count: number;
  active_task_count: number;
  request_count: number;
  /** Seconds since the Unix epoch. */
  timestamp: number;
}

/** The metrics of one application. The metrics of the process are registered when somebody first asks for them. */
export class ServiceMetrics {
  readonly requests: RequestMetrics;
  readonly observeCall: ObserveCall;
  readonly observeJob: ObserveJob;
  /** The registry, without a look at the process: its metrics come with {@link registry}. */
  readonly ownRegistry: Registry;
  readonly #logger: Logger;
  #sampler: ProcessSampler | undefined;
  #isClosed = false;

  /** @param methods a set that has the methods of all routes, now and later @param buckets of durations, in seconds */
  constructor(methods: ReadonlySet<string>, buckets: readonly number[], logger: Logger) {
    this.#logger = logger;
    this.ownRegistry = new Registry({
      onError: (metric, error) => logSafely(logger, 'warn', { metric, err: error }, 'metric could not be collected'),
    });
    this.requests = new RequestMetrics(this.ownRegistry, methods, buckets);
    this.observeCall = createCallMetrics(this.ownRegistry, buckets);
    this.observeJob = createJobMetrics(this.ownRegistry);
  }

  /** Registers the metrics that only an application has: its tasks and `service_info`. */
  describe(name: string, version: string, tasks: Tasks, health: Health): void {
    const readings = new Readings(this.ownRegistry);
    const total = 'Active tasks and the resources that keep the event loop alive.';
    const active = 'Requests being handled, jobs, and tracked promises that are not settled.';
    readings.gauge('total_task_count', total, () => tasks.total);
    readings.gauge('active_task_count', active, () => tasks.active);
    this.ownRegistry.gauge({
      name: 'service_info',
      help: 'The service and its versions; always 1.',
      labelNames: ['application_version', 'framework_version', 'ip', 'service', 'status'],
      collect() {
        health.refresh();
        this.reset();
        this.labels(version, FRAMEWORK_VERSION, health.ip ?? '', name, health.status).set(1);
      },
    });
  }

  get registry(): Registry {
    void this.sampler; // The getter registers the metrics of the process.
    return this.ownRegistry;
  }

  get sampler(): ProcessSampler {
    return (this.#sampler ??= collectProcess(this.ownRegistry));
  }

  /** Begins to watch event loop and garbage collector; once is enough. After `close` it does nothing. */
  watch(): void {
    if (this.#isClosed) return;
    try {
      this.sampler.start();
    } catch (err) {
      logSafely(this.#logger, 'warn', { err }, 'event loop and garbage collector are not measured');
    }
  }

  /** Stops watching; the metrics stay readable. */
  close(): void {
    this.#isClosed = true;
    this.#sampler?.close();
  }
}

/** The handler of the metrics endpoint. */
export function createMetricsEndpoint(
  metrics: ServiceMetrics,
  tasks: Tasks,
): (ctx: Context) => MetricsDocument | Promise<Reply> {
  return (ctx) => {
    // An application that is attached to somebody else's server never calls `listen`, which starts the sampler
    // otherwise.
    metrics.watch();
    if (!ctx.query.has('json')) return metricsText(metrics.registry, ctx.headers);
    return {
      total_task_count: tasks.total,
      active_task_count: tasks.active,
      request_count: metrics.requests.count,
      ...metrics.sampler.read(),
      timestamp: Date.now() / 1000,
    };
  };
}
