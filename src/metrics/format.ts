/*
 * The pieces of an exposition as text: values, labels, metadata lines and exemplars.
 *
 * Trusts its input: names were checked when the metric was registered.
 * Spec: Prometheus "Exposition formats", section "Text-based format"; OpenMetrics 1.0, section "Text Format".
 */

/** `text` is Prometheus text 0.0.4, `openmetrics` OpenMetrics text 1.0. */
export type Format = 'text' | 'openmetrics';

/** The kinds of metric there are. @internal */
export type MetricKind = 'counter' | 'gauge' | 'histogram' | 'summary';

/** One observation pointed out, with the labels that find it elsewhere (a trace id). @internal */
export interface Exemplar {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly timestampSeconds: number;
}

/** The exact `Content-Type` of each format. @internal */
export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/**
 * A value as both formats read it: an integer as a float (`1.0`), the rest in the shortest form that reads back.
 *
 * @internal
 */
export function formatValue(value: number): string {
  if (Number.isSafeInteger(value)) return `${value}.0`;
  if (Number.isFinite(value)) {
    const text = String(value);
    return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text;
  }
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

/** A counter's name without `_total`: its family's name in OpenMetrics. @internal */
export function counterBaseName(name: string): string {
  return name.endsWith(TOTAL) && name.length > TOTAL.length ? name.slice(0, -TOTAL.length) : name;
}

/** The name of the samples that have no suffix; in OpenMetrics a counter's ends in `_total`. @internal */
export function sampleName(kind: MetricKind, name: string, format: Format): string {
  return format === 'openmetrics' && kind === 'counter' ? counterBaseName(name) + TOTAL : name;
}

/** The lines before a family's samples. @internal */
export function formatHead(kind: MetricKind, name: string, help: string, format: Format): string {
  const isOpenMetrics = format === 'openmetrics';
  const familyName = isOpenMetrics && kind === 'counter' ? counterBaseName(name) : name;
  const text = isOpenMetrics ? escapeQuoted(help) : escapeLine(help);
  return `# HELP ${familyName} ${text}\n# TYPE ${familyName} ${kind}\n`;
}

/** A line from the space before its value to its end. @internal */
export function formatRest(value: number, exemplar?: Exemplar): string {
  if (exemplar === undefined) return ` ${formatValue(value)}\n`;
  const pairs = formatPairs(Object.entries(exemplar.labels));
  const { value: observed, timestampSeconds } = exemplar;
  return ` ${formatValue(value)} # {${pairs}} ${formatValue(observed)} ${formatValue(timestampSeconds)}\n`;
}

const TOTAL = '_total';

/** Labels as both formats write them: `queue="mail",host="a"`. @internal */
export function formatPairs(pairs: readonly (readonly [name: string, value: string | number])[]): string {
  return pairs.map(([name, value]) => `${name}="${escapeQuoted(String(value))}"`).join(',');
}

function escapeLine(text: string): string {
  return text.replace(/[\\\n]/g, escapeCharacter);
}

/** A label value with its escapes. @internal */
export function escapeQuoted(text: string): string {
  return text.replace(/[\\\n"]/g, escapeCharacter);
}

function escapeCharacter(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`;
}
