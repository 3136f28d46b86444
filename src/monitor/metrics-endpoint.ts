/**
 * The metrics endpoint: Prometheus text by default, JSON for `?json` (SPEC 2.2, 2.3, 4.1).
 */

import type { Context } from '../http/context.js';
import { reply, type Reply } from '../http/reply.js';
import { logSafely, type Logger } from '../log.js';
import { acceptsGzip, negotiateFormat } from './negotiation.js';
import { collectProcess, type ProcessSampler } from '../process/process.js';
import { Registry } from '../metrics/registry.js';
import { FRAMEWORK_VERSION } from '../version.js';
import type { Health } from './health.js';
import { registerRequestMetrics, RequestMetrics, type Durations } from './request-metrics.js';
import type { Tasks } from './tasks.js';

/** The JSON form of the metrics (SPEC 2.2). */
export interface MetricsDocument {
  total_task_count: number;
  active_task_count: number;
  request_count: number;
  proc_rss_mem_bytes: number;
  proc_rss_mem_perc: number;
  proc_cpu_perc: number;
  /** Seconds since the Unix epoch. */
  timestamp: number;
}

/** What the metrics of one application are about. */
export interface MetricsSources {
  readonly service: string;
  readonly version: string;
  readonly tasks: Tasks;
  readonly health: Health;
  /** Methods that any route has. */
  readonly methods: ReadonlySet<string>;
  readonly logger: Logger;
}

interface Registered {
  readonly registry: Registry;
  readonly durations: Durations;
  readonly sampler: ProcessSampler;
}

/** The metrics of one application, which are registered when the first of them is needed: a service is up before it is watched. */
export class ServiceMetrics {
  readonly requests: RequestMetrics;
  readonly #sources: MetricsSources;
  #registered: Registered | undefined;

  constructor(sources: MetricsSources) {
    this.#sources = sources;
    this.requests = new RequestMetrics(sources.methods, () => this.#obtain().durations);
  }

  get registry(): Registry {
    return this.#obtain().registry;
  }

  /** Of the process. */
  get sampler(): ProcessSampler {
    return this.#obtain().sampler;
  }

  /** The endpoint's handler. */
  answer(ctx: Context): MetricsDocument | Reply | Promise<Reply> {
    // An application inside somebody else's server never listens itself.
    this.sampler.start();
    return ctx.query.has('json') ? this.#document() : metricsText(this.registry, ctx);
  }

  #document(): MetricsDocument {
    const { tasks } = this.#sources;
    const { rssBytes, rssPercent, cpuPercent } = this.sampler.read();
    return {
      total_task_count: tasks.total,
      active_task_count: tasks.active,
      request_count: this.requests.count,
      proc_rss_mem_bytes: rssBytes,
      proc_rss_mem_perc: rssPercent,
      proc_cpu_perc: cpuPercent,
      timestamp: Date.now() / 1000,
    };
  }

  #obtain(): Registered {
    return (this.#registered ??= this.#register());
  }

  #register(): Registered {
    const { logger } = this.#sources;
    const registry = new Registry({ onError: (metric, error) => logSafely(logger, 'warn', { metric, err: error }, 'metric could not be collected') });
    const durations = registerRequestMetrics(registry, this.requests);
    const sampler = collectProcess(registry);
    registerServiceMetrics(registry, this.#sources);
    return { registry, durations, sampler };
  }
}

/** Registers the metrics that only the application knows: tasks and `service_info`. */
function registerServiceMetrics(registry: Registry, { service, version, tasks, health }: MetricsSources): void {
  registry.gauge({
    name: 'total_task_count',
    help: 'Active tasks and the resources that keep the event loop alive.',
    collect() {
      this.set(tasks.total);
    },
  });
  registry.gauge({
    name: 'active_task_count',
    help: 'Requests being handled and tracked promises that are not settled.',
    collect() {
      this.set(tasks.active);
    },
  });
  registry.gauge({
    name: 'service_info',
    help: 'The service and its versions; always 1.',
    labelNames: ['application_version', 'framework_version', 'ip', 'service', 'status'],
    collect() {
      this.reset();
      this.set({ application_version: version, framework_version: FRAMEWORK_VERSION, ip: health.ip, service, status: health.status }, 1);
    },
  });
}

function metricsText(registry: Registry, { headers, raw }: Context): Reply | Promise<Reply> {
  const format = negotiateFormat(headers.accept);
  const bytes = registry.exposeBytes(format);
  const fields = { 'content-type': registry.contentTypeOf(format), vary: 'accept, accept-encoding' };
  const encoding = raw.req.headers['accept-encoding'];
  if (!acceptsGzip(Array.isArray(encoding) ? encoding.join(',') : encoding)) return reply(bytes, { headers: fields });
  return new Promise((resolve, reject) => {
    process.getBuiltinModule('node:zlib').gzip(bytes, (error, zipped) => {
      if (error === null) resolve(reply(zipped, { headers: { ...fields, 'content-encoding': 'gzip' } }));
      else reject(error);
    });
  });
}
