/**
 * The metrics endpoint: Prometheus text by default, JSON for `?json` (SPEC 2.2, 2.3, 4.1).
 */

import type { Context } from '../http/context.js';
import { reply, type Reply } from '../http/reply.js';
import { acceptsGzip, negotiateFormat } from '../metrics/negotiation.js';
import type { ProcessSampler } from '../metrics/process.js';
import type { Registry } from '../metrics/registry.js';
import { FRAMEWORK_VERSION } from '../version.js';
import type { Health } from './health.js';
import type { RequestMetrics } from './request-metrics.js';
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

/** What the endpoint reads. */
export interface MetricsSources {
  readonly service: string;
  readonly version: string;
  readonly registry: Registry;
  readonly sampler: ProcessSampler;
  readonly requests: RequestMetrics;
  readonly tasks: Tasks;
  readonly health: Health;
}

/** Registers the metrics that only the application knows: tasks and `service_info`. */
export function registerServiceMetrics({ service, version, registry, tasks, health }: MetricsSources): void {
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

/** The endpoint's handler. */
export function createMetricsHandler(sources: MetricsSources): (ctx: Context) => MetricsDocument | Reply | Promise<Reply> {
  return (ctx) => {
    // An application inside somebody else's server never listens itself.
    sources.sampler.start();
    return ctx.query.has('json') ? metricsDocument(sources) : metricsText(sources.registry, ctx);
  };
}

function metricsDocument({ sampler, requests, tasks }: MetricsSources): MetricsDocument {
  const { rssBytes, rssPercent, cpuPercent } = sampler.read();
  return {
    total_task_count: tasks.total,
    active_task_count: tasks.active,
    request_count: requests.count,
    proc_rss_mem_bytes: rssBytes,
    proc_rss_mem_perc: rssPercent,
    proc_cpu_perc: cpuPercent,
    timestamp: Date.now() / 1000,
  };
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
