/*
 * Writes metric families as Prometheus text 0.0.4 or OpenMetrics text 1.0.
 *
 * Trusts its input: names and labels were checked when the metric was registered.
 * Spec: Prometheus "Exposition formats", section "Text-based format"; OpenMetrics 1.0, section "Text Format".
 */

import type { Exemplar } from './exemplar.js';
import type { Format, Metric } from './metric.js';
import { familyName, type Definition, type MetricKind } from './names.js';

/** The exact `Content-Type` of each format. @internal */
export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** Labels of every sample that has no label of its own by that name. */
export type DefaultLabels = ReadonlyMap<string, string>;

/** Formats metrics one after the other. */
export function formatMetrics(
  metrics: Iterable<Metric<string, unknown>>, format: Format, defaults: DefaultLabels,
): string {
  let text = '';
  for (const { definition, samples } of metrics) {
    const { name, labelNames } = definition;
    const others = formatPairs([...defaults].filter(([label]) => !labelNames.includes(label)));
    text += formatHead(definition, format);
    for (const series of samples.values())
      text += series.format(name, formatLabels(labelNames, series.labelValues, others), format);
  }
  return format === 'openmetrics' ? `${text}# EOF\n` : text;
}

/** A sample line from the space before its value to its end. */
export function formatRest(value: number, exemplar?: Exemplar): string {
  if (exemplar === undefined) return ` ${formatValue(value)}\n`;
  const pairs = formatPairs(Object.entries(exemplar.labels));
  const { value: observed, timestampSeconds } = exemplar;
  return ` ${formatValue(value)} # {${pairs}} ${formatValue(observed)} ${formatValue(timestampSeconds)}\n`;
}

/** The lines before a family's samples. */
function formatHead(definition: Definition, format: Format): string {
  const { kind, name, help } = definition;
  const isOpenMetrics = format === 'openmetrics';
  const family = isOpenMetrics ? familyName(definition) : name;
  const text = help.replace(isOpenMetrics ? /[\\\n"]/g : /[\\\n]/g, escapeCharacter);
  return `# HELP ${family} ${text}\n# TYPE ${family} ${kind.type}\n`;
}

/** The label in which the lines of a series differ, for each bucket or quantile: `le="0.1"}`. */
export function formatOwnLabels({ ownLabel }: MetricKind, values: readonly number[]): readonly string[] {
  return values.map((value) => `${ownLabel}="${formatValue(value)}"}`);
}

/** Starts a line of a series that adds its own label to others: `job_seconds_bucket{queue="mail",`. */
export function openLabels(name: string, labels: string): string {
  return labels === '' ? `${name}{` : `${name}${labels.slice(0, -1)},`;
}

/** The labels of a series: `{queue="mail",host="a"}`, or nothing. @param others the default labels, formatted */
function formatLabels(names: readonly string[], values: readonly string[], others: string): string {
  let labels = '';
  for (let index = 0; index < names.length; index++) labels += `${names[index]}="${escapeQuoted(values[index]!)}",`;
  labels = others === '' ? labels.slice(0, -1) : labels + others;
  return labels && `{${labels}}`;
}

/** A value as both formats read it: an integer as a float (`1.0`), the rest in the shortest form that reads back. */
function formatValue(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  const text = String(value);
  return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text;
}

/** Labels as both formats write them: `queue="mail",host="a"`. */
function formatPairs(pairs: readonly (readonly [name: string, value: string | number])[]): string {
  return pairs.map(([name, value]) => `${name}="${escapeQuoted(String(value))}"`).join(',');
}

function escapeQuoted(text: string): string {
  return /[\\\n"]/.test(text) ? text.replace(/[\\\n"]/g, escapeCharacter) : text;
}

function escapeCharacter(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`;
}
