/*
 * Writes metric families as Prometheus text 0.0.4 or OpenMetrics text 1.0.
 *
 * Trusts its input: names and labels were checked when the metric was registered.
 * Spec: Prometheus "Exposition formats", section "Text-based format"; OpenMetrics 1.0, section "Text Format".
 */

import type { Exemplar } from './exemplar.js';
import { counterBaseName, OWN_LABELS, type Definition } from './names.js';

/** `text` is Prometheus text 0.0.4, `openmetrics` OpenMetrics text 1.0. */
export type Format = 'text' | 'openmetrics';

/** The exact `Content-Type` of each format. @internal */
export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

interface ScalarSample {
  /** In the order of the family's label names. */
  readonly labelValues: readonly string[];
  readonly value: number;
  readonly exemplar?: Exemplar | undefined;
}

/** A sample of a histogram or a summary. */
interface SteppedSample extends Pick<ScalarSample, 'labelValues'> {
  /** One per step: observations in the bucket, not cumulative; or quantiles, NaN without recent observations. */
  readonly values: readonly number[];
  readonly sum: number;
  readonly count: number;
  /** One per step. */
  readonly exemplars?: readonly (Exemplar | undefined)[] | undefined;
}

interface ScalarFamily extends Definition {
  readonly samples: ReadonlyMap<string, ScalarSample>;
}

interface SteppedFamily extends Definition {
  readonly samples: ReadonlyMap<string, SteppedSample>;
  /** Upper bounds, ascending, the last one infinite; or quantiles from 0 to 1, ascending. */
  readonly steps: readonly number[];
}

export type Family = ScalarFamily | SteppedFamily;

/** Labels of every sample that has no label of its own by that name. */
export type DefaultLabels = ReadonlyMap<string, string>;

/** Formats families one after the other. */
export function formatFamilies(families: Iterable<Family>, format: Format, defaults: DefaultLabels): string {
  let text = '';
  for (const family of families) {
    const others = formatPairs([...defaults].filter(([name]) => !family.labelNames.includes(name)));
    text += formatHead(family, format);
    text += 'steps' in family ? formatSteps(family, format, others) : formatScalars(family, format, others);
  }
  return format === 'openmetrics' ? `${text}# EOF\n` : text;
}

/** The lines before a family's samples. */
function formatHead({ kind, name, help }: Family, format: Format): string {
  const isOpenMetrics = format === 'openmetrics';
  const familyName = isOpenMetrics && kind === 'counter' ? counterBaseName(name) : name;
  const text = help.replace(isOpenMetrics ? /[\\\n"]/g : /[\\\n]/g, escapeCharacter);
  return `# HELP ${familyName} ${text}\n# TYPE ${familyName} ${kind}\n`;
}

function formatScalars(family: ScalarFamily, format: Format, others: string): string {
  const isTotal = format === 'openmetrics' && family.kind === 'counter';
  const name = isTotal ? `${counterBaseName(family.name)}_total` : family.name;
  let lines = '';
  for (const sample of family.samples.values()) {
    const labels = formatLabels(family.labelNames, sample.labelValues, others);
    lines += name + (labels && `{${labels}}`) + formatRest(sample.value, isTotal ? sample.exemplar : undefined);
  }
  return lines;
}

function formatSteps(family: SteppedFamily, format: Format, others: string): string {
  const { kind, name, labelNames, steps } = family;
  const isHistogram = kind === 'histogram';
  const isOpenMetrics = format === 'openmetrics';
  const stepLabels = steps.map((step) => `${OWN_LABELS[kind]}="${formatValue(step)}"}`);
  let lines = '';
  for (const sample of family.samples.values()) {
    const { labelValues, values, sum, count, exemplars } = sample;
    const labels = formatLabels(labelNames, labelValues, others);
    const start = `${name}${isHistogram ? '_bucket' : ''}{${labels && `${labels},`}`;
    let total = 0;
    for (let index = 0; index < steps.length; index++) {
      const value = isHistogram ? (total += values[index]!) : values[index]!;
      // OpenMetrics allows neither a negative quantile nor a negative sum.
      if (isOpenMetrics && value < 0) continue;
      lines += start + stepLabels[index]! + formatRest(value, isOpenMetrics ? exemplars?.[index] : undefined);
    }
    // Nor does it allow a histogram to have a sum that can fall, or a count without a sum.
    const hasSum = !isOpenMetrics || (sum >= 0 && !(steps[0]! < 0));
    const end = labels && `{${labels}}`;
    if (hasSum) lines += `${name}_sum${end}${formatRest(sum)}`;
    if (hasSum || !isHistogram) lines += `${name}_count${end}${formatRest(count)}`;
  }
  return lines;
}

/** The labels of a sample: `queue="mail",host="a"`. @param others the default labels, formatted */
function formatLabels(names: readonly string[], values: readonly string[], others: string): string {
  let labels = '';
  for (let index = 0; index < names.length; index++) labels += `${names[index]}="${escapeQuoted(values[index]!)}",`;
  return others === '' ? labels.slice(0, -1) : labels + others;
}

/** A line from the space before its value to its end. */
function formatRest(value: number, exemplar?: Exemplar): string {
  if (exemplar === undefined) return ` ${formatValue(value)}\n`;
  const pairs = formatPairs(Object.entries(exemplar.labels));
  const { value: observed, timestampSeconds } = exemplar;
  return ` ${formatValue(value)} # {${pairs}} ${formatValue(observed)} ${formatValue(timestampSeconds)}\n`;
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
