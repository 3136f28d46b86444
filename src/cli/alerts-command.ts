/* `postern alerts`: rules for Prometheus that watch an application. */

import { DEFAULT_BUCKETS } from '../metrics/histogram.js';
import { MONITORING_ENDPOINTS } from '../monitor/endpoints.js';
import { defineCommand, type Command } from './command.js';
import { loadMonitoredApp } from './module.js';

const usage = `Usage: postern alerts MODULE

Prints alerting rules for the application that MODULE exports as its default,
for rule_files of Prometheus. They watch the job of the application's name and
don't count its monitoring endpoints: the share of requests that fail, p99
latency by route, event loop lag, memory near its limit, failing health,
instances that don't answer, requests refused because of overload, and calls to
other services that fail. Namespaces are watched separately.
`;

export const alerts: Command = defineCommand(usage, 'MODULE', {}, async (_values, file) => {
  const { name, metrics } = await loadMonitoredApp(file);
  const buckets = metrics?.get('http_request_duration_seconds')?.definition.upperBounds ?? DEFAULT_BUCKETS;
  return { text: writeAlerts(name, buckets) };
});

/**
 * A file of rules for a job (https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules).
 *
 * @param buckets of the durations of requests, in seconds, without +Inf
 */
function writeAlerts(name: string, buckets: readonly number[]): string {
  // The bucket nearest to a second. Where p99 is beyond the last bucket, Prometheus reports that bucket: hence ">=".
  const distance = (seconds: number): number => Math.abs(Math.log(seconds));
  const slow = buckets.reduce((best, bucket) => (distance(bucket) < distance(best) ? bucket : best));
  const job = `job="${name}"`;
  // A dot is escaped for the expression, and its backslash for the string of PromQL around it.
  const routes = `${job},route!~"/${name.replaceAll('.', '\\\\.')}/(${Object.keys(MONITORING_ENDPOINTS).join('|')})/"`;
  const p99 = `histogram_quantile(0.99, sum by (namespace, job, method, route, le) (
  rate(http_request_duration_seconds_bucket{${routes},route!=""}[5m])
))`;
  const failed = ratio('namespace, job', 'http_request_duration_seconds_count', routes, '5..', 0.05);
  const failedCalls = ratio('namespace, job, service', 'service_request_duration_seconds_count', job, '0|5..', 0.1);
  // The expression is true while something is wrong. `critical` wakes somebody, `warning` waits for the morning.
  const rules = [
    ['HighErrorRatio', '5m', 'critical', failed,
      '{{ $value | humanizePercentage }} of the requests fail',
      'More than 5 % of the requests were answered with a 5xx over five minutes.'],
    ['SlowRoute', '10m', 'warning', `${p99} >= ${slow}`,
      '{{ $labels.method }} {{ $labels.route }} takes {{ $value | humanizeDuration }}',
      `One request of a hundred takes ${slow} s or longer. Leave out long replies, such as event streams.`],
    ['EventLoopLag', '5m', 'warning', `nodejs_eventloop_lag_p99_seconds{${job}} > 0.1`,
      'the event loop of {{ $labels.instance }} lags by {{ $value | humanizeDuration }}',
      'Every request waits while something computes. Profile it, move the work away, or run more instances.'],
    ['MemoryNearLimit', '5m', 'critical', `proc_rss_mem_perc{${job}} > 90`,
      '{{ $labels.instance }} uses {{ $value | humanize }} % of the memory that it may use',
      'At the limit of its container the process is killed, with all requests that it has in hand.'],
    ['HealthFailing', '2m', 'critical', `service_info{${job},status!~"OK|DRAINING"} == 1`,
      '{{ $labels.instance }} is {{ $labels.status }}',
      'A health check fails, so that the instance gets no requests. The log of the instance says why.'],
    ['InstanceDown', '5m', 'critical', `up{${job}} == 0`,
      '{{ $labels.instance }} does not answer Prometheus',
      'The other rules of this file see nothing of an instance that is not scraped.'],
    ['Overloaded', '5m', 'warning',
      `sum by (namespace, job, route) (rate(http_requests_refused_total{${job}}[5m])) > 0`,
      '{{ $labels.route }} refuses {{ $value | humanize }} requests a second',
      'Requests that would be answered too late are refused with 503. Run more instances, or find what is slow.'],
    ['DependencyFailing', '5m', 'warning', failedCalls,
      '{{ $value | humanizePercentage }} of its calls of {{ $labels.service }} fail',
      'More than 10 % of the calls were answered with a 5xx, or not at all, over five minutes.'],
  ] as const;
  const texts = rules.map(
    ([alert, lasts, severity, expression, summary, description]) => `      - alert: ${alert}
        expr: |-
${expression.replace(/^/gm, '          ')}
        for: ${lasts}
        labels:
          severity: ${severity}
        annotations:
          summary: '${name}: ${summary}'
          description: '${description}'
`,
  );
  return `# ${name}, for rule_files of Prometheus. Written by Postern; the thresholds are yours to change.
groups:
  - name: ${JSON.stringify(name)}
    rules:
${texts.join('')}`;
}

/** More of what is counted than a limit has one of these statuses. */
function ratio(by: string, counter: string, labels: string, statuses: string, limit: number): string {
  return `sum by (${by}) (rate(${counter}{${labels},status_code=~"${statuses}"}[5m]))
  / sum by (${by}) (rate(${counter}{${labels}}[5m]))
  > ${limit}`;
}
