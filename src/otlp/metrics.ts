/*
 * Exports what a registry exposes as metrics of OpenTelemetry's protocol.
 * Spec: OpenTelemetry, "Prometheus and OpenMetrics Compatibility", "Semantic conventions for HTTP metrics" (stable).
 */

import { clearInterval, Date, setInterval } from '../base/clock.js';
import { logSafely, type Logger } from '../base/log.js';
import { serviceUrlsOf, type Settings } from '../mesh/settings.js';
import type { DataPoint, Series } from '../metrics/metric.js';
import { familyName } from '../metrics/names.js';
import type { Registry } from '../metrics/registry.js';
import { ITEM, type Exporter } from './exporter.js';
import {
  ATTRIBUTES, BOOLEAN, COUNT, DOUBLE, ID, list, message, NUMBER, packed, TEXT, TIME, toId, type Attributes,
  type Structure,
} from '../payload/protobuf.js';
import { toServer } from './spans.js';
import type { SignalSettings } from './variables.js';

const TIMES = { startTimeUnixNano: [2, TIME], timeUnixNano: [3, TIME] } as const;
const TOTALS = { count: [4, COUNT], sum: [5, DOUBLE] } as const;
const EXEMPLAR = {
  timeUnixNano: [2, TIME], asDouble: [3, DOUBLE], spanId: [4, ID], traceId: [5, ID],
  filteredAttributes: [7, ATTRIBUTES],
} as const;
const EXEMPLARS = list(message(EXEMPLAR));
const POINTS = list(message({
  ...TIMES, asDouble: [4, DOUBLE], exemplars: [5, EXEMPLARS], attributes: [7, ATTRIBUTES],
}));
const HISTOGRAM_POINTS = list(message({
  ...TIMES, ...TOTALS, bucketCounts: [6, packed(COUNT)], explicitBounds: [7, packed(DOUBLE)],
  exemplars: [8, EXEMPLARS], attributes: [9, ATTRIBUTES],
}));
const QUANTILES = list(message({ quantile: [1, DOUBLE], value: [2, DOUBLE] }));
const SUMMARY_POINTS = list(message({
  ...TIMES, ...TOTALS, quantileValues: [6, QUANTILES], attributes: [7, ATTRIBUTES],
}));
const SUM = { aggregationTemporality: [2, NUMBER], isMonotonic: [3, BOOLEAN] } as const;
const METRIC = message({
  name: [1, TEXT], description: [2, TEXT], unit: [3, TEXT],
  gauge: [5, message({ dataPoints: [1, POINTS] })],
  sum: [7, message({ dataPoints: [1, POINTS], ...SUM })],
  histogram: [9, message({ dataPoints: [1, HISTOGRAM_POINTS], ...SUM })],
  summary: [11, message({ dataPoints: [1, SUMMARY_POINTS] })],
});
const CUMULATIVE = 2;
/** Members of a metric's data besides its points. */
const DATA = {
  gauge: {},
  sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true },
  histogram: { aggregationTemporality: CUMULATIVE },
  summary: {},
};

/** Units of OpenTelemetry, by the word at the end of a name for Prometheus. */
const UNITS: Readonly<Record<string, string>> = {
  days: 'd', hours: 'h', minutes: 'min', seconds: 's', milliseconds: 'ms', microseconds: 'us', nanoseconds: 'ns',
  bytes: 'By', kibibytes: 'KiBy', mebibytes: 'MiBy', gibibytes: 'GiBy', kilobytes: 'kBy', megabytes: 'MBy',
  gigabytes: 'GBy', meters: 'm', volts: 'V', amperes: 'A', joules: 'J', watts: 'W', grams: 'g', celsius: 'Cel',
  hertz: 'Hz', percent: '%', ratio: '1',
};
const WITH_UNIT = new RegExp(`^(.+)_(${Object.keys(UNITS).join('|')})$`);

type Labels = Readonly<Record<string, string>>;
/** URLs of services by name. */
type Servers = ReadonlyMap<string, string>;

/** Names and attributes of the metrics that semantic conventions define, by Postern's name. */
const CONVENTIONS: Readonly<Record<string, [name: string, (labels: Labels, servers: Servers) => Attributes]>> = {
  http_request_duration_seconds: ['http.server.request.duration', ({ method, route, status_code: status }) => ({
    'http.request.method': method,
    'http.route': route || undefined,
    'http.response.status_code': Number(status) || undefined,
    'url.scheme': 'http',
    'error.type': toErrorType(status, 500),
  })],
  service_request_duration_seconds: ['http.client.request.duration', (labels, servers) => ({
    'http.request.method': labels['method'],
    'http.response.status_code': Number(labels['status_code']) || undefined,
    'service.peer.name': labels['service'],
    ...toServer(servers.get(labels['service'] ?? '')),
    'error.type': toErrorType(labels['status_code'], 400),
  })],
};

/** Begins to export what a registry exposes. @returns a function that exports it once more, and ends that */
export function exportMetrics(
  { settings, logger }: { readonly settings: Settings; readonly logger: Logger },
  registry: Registry, exporter: Exporter, intervalMs: number,
): () => void {
  // Counters of the process count from its start, and counters of the application began with 0.
  const startTimeUnixNano = Date.now() - process.uptime() * 1000;
  const servers = serviceUrlsOf(settings);
  const read = (): void => {
    try {
      const times = { startTimeUnixNano, timeUnixNano: Date.now() };
      const items = encodeMetrics(exporter.settings, registry, servers, times);
      const points = items.reduce((sum, { count }) => sum + count, 0);
      if (exporter.hasRoomOrDrops(points)) for (const { item, count } of items) exporter.add(item, count);
    } catch (err) {
      // A listener of the registry threw.
      logSafely(logger, 'warn', { err }, 'metrics could not be read');
    }
  };
  const timer = setInterval(read, intervalMs).unref();
  return () => {
    clearInterval(timer);
    read();
  };
}

/** @returns Metrics of the protocol, each with as many data points as a batch may have, and the number of these */
export function encodeMetrics(
  { form, maxBatchSize }: Pick<SignalSettings, 'form' | 'maxBatchSize'>, registry: Registry, servers: Servers,
  times: { readonly startTimeUnixNano: number; readonly timeUnixNano: number },
): { readonly item: string; readonly count: number }[] {
  const metrics = registry.gather();
  const taken = new Set(metrics.map(({ name }) => name));
  return metrics.flatMap(({ definition, samples }) => {
    const { kind, name: registered, help, labelNames } = definition;
    const base = familyName(definition);
    const [, plain = base, word = ''] = WITH_UNIT.exec(base) ?? [];
    const [short = plain, toAttributes = (labels: Labels): Attributes => labels] = CONVENTIONS[registered] ?? [];
    // The later one of two metrics that would get one name keeps its suffix.
    const name = taken.has(short) ? registered : short;
    taken.add(name);
    const all = [...samples.values()].map(({ labelValues, point }: Series) => {
      const labels = Object.fromEntries(labelNames.map((label, index) => [label, labelValues[index] ?? '']));
      const given = { ...Object.fromEntries(registry.defaultLabels), ...toAttributes(labels, servers) };
      return { ...times, ...point, exemplars: toExemplars(point.exemplars), attributes: given };
    });
    const parts = Array.from({ length: Math.ceil(all.length / maxBatchSize) }, (_, part) =>
      all.slice(part * maxBatchSize, (part + 1) * maxBatchSize),
    );
    return parts.map((dataPoints) => {
      const data = { [kind.data]: { dataPoints, ...DATA[kind.data] } };
      const item = METRIC[form]({ name, description: help, unit: UNITS[word], ...data }, ITEM);
      return { item, count: dataPoints.length };
    });
  });
}

/** @param least the lowest status that is an error; 0 is a call without an answer */
function toErrorType(status: string | undefined, least: number): string | undefined {
  return status === '0' ? '_OTHER' : Number(status) >= least ? status : undefined;
}

function toExemplars(given: DataPoint['exemplars'] = []): Structure<typeof EXEMPLAR>[] {
  return given.flatMap((exemplar) => {
    if (exemplar === undefined) return [];
    const { trace_id: traceId, span_id: spanId, ...labels } = exemplar.labels;
    const ids = { traceId: toId(traceId, 32), spanId: toId(spanId, 16) };
    const times = { timeUnixNano: exemplar.timestampSeconds * 1000, asDouble: exemplar.value };
    return [{ ...times, ...ids, filteredAttributes: labels }];
  });
}
