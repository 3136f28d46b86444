/* Alerting rules over the metrics that every application has. */

/** One rule; its expression is true while something is wrong. */
interface Alert {
  readonly alert: string;
  readonly expression: string;
  /** How long it must be true; five minutes unless given. */
  readonly lasts?: string;
  /** `critical` wakes somebody, `warning` waits for the morning. */
  readonly severity: 'critical' | 'warning';
  readonly summary: string;
  readonly description: string;
}

/** A file of rules (https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules) for the job of a name. */
export function writeAlerts(name: string): string {
  const rules = alertsOf(name).map(
    ({ alert, expression, lasts = '5m', severity, summary, description }) => `      - alert: ${alert}
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
${rules.join('')}`;
}

function alertsOf(name: string): Alert[] {
  const job = `job="${name}"`;
  // Inside a string of PromQL, whose escapes are Go's.
  const routes = `${job},route!~"/${name.replaceAll('.', '\\\\.')}/(health|metrics|ping|openapi)/"`;
  return [
    {
      alert: 'HighErrorRatio',
      expression: ratio('job', 'http_request_duration_seconds_count', routes, '5..', 0.05),
      severity: 'critical',
      summary: '{{ $value | humanizePercentage }} of the requests fail',
      description: 'More than 5 % of the requests were answered with a 5xx over five minutes.',
    },
    {
      alert: 'SlowRoute',
      expression: `histogram_quantile(0.99, sum by (job, method, route, le) (
  rate(http_request_duration_seconds_bucket{${routes},route!=""}[5m])
)) > 1`,
      lasts: '10m',
      severity: 'warning',
      summary: '{{ $labels.method }} {{ $labels.route }} takes {{ $value | humanizeDuration }}',
      description:
        'One request of a hundred takes longer than a second. Long replies, such as event streams, belong left out.',
    },
    {
      alert: 'EventLoopLag',
      expression: `nodejs_eventloop_lag_p99_seconds{${job}} > 0.1`,
      severity: 'warning',
      summary: 'the event loop of {{ $labels.instance }} lags by {{ $value | humanizeDuration }}',
      description:
        'Every request waits while something computes. Profile it, move the work away, or run more instances.',
    },
    {
      alert: 'MemoryNearLimit',
      expression: `proc_rss_mem_perc{${job}} > 90`,
      severity: 'critical',
      summary: '{{ $labels.instance }} uses {{ $value | humanize }} % of the memory that it may use',
      description: 'At the limit of its container the process is killed, with all requests that it has in hand.',
    },
    {
      alert: 'HealthFailing',
      expression: `service_info{${job},status!~"OK|DRAINING"} == 1`,
      lasts: '2m',
      severity: 'critical',
      summary: '{{ $labels.instance }} is {{ $labels.status }}',
      description: 'A health check fails, so that the instance gets no requests. The log of the instance says why.',
    },
    {
      alert: 'InstanceDown',
      expression: `up{${job}} == 0`,
      severity: 'critical',
      summary: '{{ $labels.instance }} does not answer Prometheus',
      description: 'What an instance does not tell, no other rule of this file can see.',
    },
    {
      alert: 'DependencyFailing',
      expression: ratio('job, service', 'service_request_duration_seconds_count', job, '0|5..', 0.1),
      severity: 'warning',
      summary: '{{ $value | humanizePercentage }} of its calls of {{ $labels.service }} fail',
      description: 'More than 10 % of the calls were answered with a 5xx, or not at all, over five minutes.',
    },
  ];
}

/** More of what is counted than a limit has one of these statuses. */
function ratio(by: string, counter: string, labels: string, statuses: string, limit: number): string {
  return `sum by (${by}) (rate(${counter}{${labels},status_code=~"${statuses}"}[5m]))
  / sum by (${by}) (rate(${counter}{${labels}}[5m]))
  > ${limit}`;
}
