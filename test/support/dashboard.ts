/** Writes `docs/grafana.json`: a dashboard of every metric in the tables of `docs/reference/metrics.md`. */

import { readPage } from './markdown.js';

/** A metric, as a table of the reference has it. */
interface Metric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly meaning: string;
}

/** A query with the text that names each of its series. */
interface Query {
  readonly expr: string;
  readonly legendFormat: string;
}

interface Panel extends Record<string, unknown> {
  readonly panels?: readonly Panel[];
}

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };
const CHOSEN = 'job=~"$job",instance=~"$instance"';
const NOT_MONITORING = 'route!~"/[^/]+/(health|metrics|ping|openapi)/"';
const WIDTH = 8;
const HEIGHT = 7;
const PANELS_IN_A_ROW = 3;

/** Units of Grafana by the end of a metric's name. */
const UNITS: readonly (readonly [end: RegExp, unit: string])[] = [
  [/_seconds$/, 's'],
  [/_bytes$/, 'bytes'],
  [/_perc$/, 'percent'],
];

function metricsOf(header: string): Metric[] {
  const table = new RegExp(`^\\| ${header} \\| type .*\\n\\| ---.*\\n((?:\\|.*\\n)+)`, 'm')
    .exec(readPage('docs/reference/metrics.md'));
  if (table === null) throw new Error(`docs/reference/metrics.md has no table "${header}"`);
  return (table[1] ?? '')
    .trim()
    .split('\n')
    .map((row) => {
      const [name = '', type = '', labels = '', meaning = ''] = row.replace(/^\| | \|$/g, '').split(/ ?\| ?/);
      return {
        name: name.replaceAll('`', ''),
        type,
        labels: labels.split(', ').filter((label) => label !== ''),
        meaning,
      };
    });
}

const by = (labels: readonly string[]): string => `sum by (${labels.join(', ')})`;
const legend = (labels: readonly string[]): string => labels.map((label) => `{{${label}}}`).join(' ');
const rate = (series: string, selector: string): string => `rate(${series}{${selector}}[$__rate_interval])`;

function p99(name: string, selector: string, labels: readonly string[]): Query {
  const buckets = `${by([...labels, 'le'])} (${rate(`${name}_bucket`, selector)})`;
  return { expr: `histogram_quantile(0.99, ${buckets})`, legendFormat: legend(labels) };
}

function failing(name: string, selector: string, statuses: string, labels: readonly string[]): Query {
  const all = `${by(labels)} (${rate(`${name}_count`, selector)})`;
  const failed = `${by(labels)} (${rate(`${name}_count`, `${selector},status_code=~"${statuses}"`)})`;
  // `or 0 * …`: a service without a failure has 0, not a gap.
  return { expr: `(${failed} or 0 * ${all}) / ${all}`, legendFormat: legend(labels) };
}

function chart(title: string, description: string, unit: string, queries: readonly Query[]): Panel {
  const targets = queries.map((query, index) => ({ ...query, refId: String.fromCharCode(65 + index) }));
  return {
    type: 'timeseries',
    title,
    description,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets,
  };
}

/** The charts of one metric. A histogram has two: how many, and how long. */
function chartsOf({ name, type, labels, meaning }: Metric): Panel[] {
  const [, unit = 'short'] = UNITS.find(([end]) => end.test(name)) ?? [];
  const named = ['job', ...labels];
  if (type === 'counter') {
    return [
      chart(`${name}, per second`, meaning, 'short', [
        { expr: `${by(named)} (${rate(name, CHOSEN)})`, legendFormat: legend(named) },
      ]),
    ];
  }
  if (type === 'histogram') {
    const timed = named.filter((label) => label !== 'status_code');
    return [
      chart(`${name}, number per second`, meaning, 'short', [
        { expr: `${by(named)} (${rate(`${name}_count`, CHOSEN)})`, legendFormat: legend(named) },
      ]),
      chart(`${name}, 99th percentile`, meaning, unit, [p99(name, CHOSEN, timed)]),
    ];
  }
  const read = name.endsWith('_start_time_seconds')
    ? { expr: `time() - ${name}{${CHOSEN}}`, title: `time since ${name}` }
    : { expr: `${name}{${CHOSEN}}`, title: name };
  return [
    chart(read.title, meaning, unit, [{ expr: read.expr, legendFormat: legend(['job', 'instance', ...labels]) }]),
  ];
}

/** What a mesh is asked first: who is slow, who fails, who calls whom. */
function meshCharts(): Panel[] {
  const [requests, calls] = ['http_request_duration_seconds', 'service_request_duration_seconds'];
  const every = { expr: `${by(['job'])} (${rate(`${requests}_count`, NOT_MONITORING)})`, legendFormat: '{{job}}' };
  const called = {
    expr: `${by(['job', 'service'])} (${rate(`${calls}_count`, 'job!=""')})`,
    legendFormat: '{{job}} to {{service}}',
  };
  return [
    chart('Requests per second, by service', 'Without monitoring endpoints.', 'reqps', [every]),
    chart('Share of requests that fail (5xx), by service', 'Without monitoring endpoints.', 'percentunit', [
      failing(requests, NOT_MONITORING, '5..', ['job']),
    ]),
    chart('99th percentile of the duration, by service', 'Without monitoring endpoints.', 's', [
      p99(requests, NOT_MONITORING, ['job']),
    ]),
    chart('Calls per second, by caller and service', 'Each attempt counts.', 'reqps', [called]),
    chart('Share of calls that fail (5xx or no reply)', 'Each attempt counts.', 'percentunit', [
      failing(calls, 'job!=""', '0|5..', ['job', 'service']),
    ]),
    chart('99th percentile of calls', 'Each attempt counts.', 's', [p99(calls, 'job!=""', ['job', 'service'])]),
    chart('Instances by status', 'OK, FAIL or DRAINING.', 'short', [
      { expr: 'count by (job, status) (service_info)', legendFormat: '{{job}} {{status}}' },
    ]),
    chart('Memory, in percent of the limit', 'Fullest instance of each service.', 'percent', [
      { expr: 'max by (job) (proc_rss_mem_perc)', legendFormat: '{{job}}' },
    ]),
    chart('Delay of the event loop (p99)', 'Slowest instance of each service.', 's', [
      { expr: 'max by (job) (nodejs_eventloop_lag_p99_seconds)', legendFormat: '{{job}}' },
    ]),
  ];
}

function variable(name: string, query: string): object {
  return {
    name,
    label: name,
    type: 'query',
    datasource: DATASOURCE,
    query,
    refresh: 2,
    multi: true,
    includeAll: true,
    current: { text: 'All', value: '$__all' },
  };
}

/** The text of `docs/grafana.json`. */
export function writeDashboard(): string {
  const rows: readonly (readonly [title: string, charts: readonly Panel[]])[] = [
    ['The mesh', meshCharts()],
    ['One service', metricsOf('metric').flatMap(chartsOf)],
    ['The process', metricsOf('metric of the process').flatMap(chartsOf)],
  ];
  let y = 0;
  let id = 0;
  const panels = rows.flatMap(([title, charts]) => {
    const heading = {
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      id: (id += 1),
      panels: [],
    };
    y += 1;
    const placed = charts.map((panel, index) => {
      const gridPos = {
        x: (index % PANELS_IN_A_ROW) * WIDTH,
        y: y + Math.floor(index / PANELS_IN_A_ROW) * HEIGHT,
        w: WIDTH,
        h: HEIGHT,
      };
      return { ...panel, id: (id += 1), datasource: DATASOURCE, gridPos };
    });
    y += Math.ceil(charts.length / PANELS_IN_A_ROW) * HEIGHT;
    return [heading, ...placed];
  });
  const dashboard = {
    title: 'Postern',
    uid: 'postern',
    schemaVersion: 39,
    time: { from: 'now-1h', to: 'now' },
    refresh: '30s',
    templating: {
      list: [
        { name: 'datasource', label: 'datasource', type: 'datasource', query: 'prometheus' },
        variable('job', 'label_values(service_info, job)'),
        variable('instance', 'label_values(service_info{job=~"$job"}, instance)'),
      ],
    },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 1)}\n`;
}
