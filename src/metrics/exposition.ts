/*
 * Writes metric families as Prometheus text 0.0.4 or OpenMetrics text 1.0.
 *
 * Trusts its input: names and labels were checked when the metric was registered.
 */

import { formatHead, formatPairs, formatRest, formatValue, sampleName } from './format.js';
import type { Exemplar, Format } from './format.js';
import { OWN_LABELS } from './names.js';

/** One series of a family. */
interface Sample {
  /** In the order of the family's label names, escaped as label values are. */
  readonly escapedValues: readonly string[];
}

export interface ScalarSample extends Sample {
  readonly value: number;
  readonly exemplar: Exemplar | undefined;
}

/** A sample of a histogram or a summary. */
export interface SteppedSample extends Sample {
  /** One per step: observations in the bucket, not cumulative; or quantiles, NaN without recent observations. */
  readonly values: readonly number[];
  readonly sum: number;
  readonly count: number;
  /** One per step. */
  readonly exemplars: readonly (Exemplar | undefined)[] | undefined;
}

interface FamilyHead<S extends Sample> {
  /** Name as registered: a counter's with or without `_total`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly samples: ReadonlySet<S>;
}

export interface ScalarFamily extends FamilyHead<ScalarSample> {
  readonly kind: 'counter' | 'gauge';
}

export interface SteppedFamily extends FamilyHead<SteppedSample> {
  readonly kind: 'histogram' | 'summary';
  /** Upper bounds, ascending, the last one infinite; or quantiles from 0 to 1, ascending. */
  readonly steps: readonly number[];
}

export type Family = ScalarFamily | SteppedFamily;

/** Labels of every sample that has no label of its own by that name. */
export type DefaultLabels = ReadonlyMap<string, string>;

const PART_LENGTH = 16_384;

/** Writes families one after the other; the parts that `take` is given are the text. */
export function formatFamilies(
  families: Iterable<Family>,
  format: Format,
  defaults: DefaultLabels,
  take: (part: string) => void,
): void {
  const text = new Text(take);
  for (const family of families) {
    text.add(formatHead(family.kind, family.name, family.help, format));
    if ('steps' in family) addSteps(text, family, format, defaults);
    else addScalars(text, family, format, defaults);
  }
  if (format === 'openmetrics') text.add('# EOF\n');
  text.flush();
}

/** A growing text that is handed on in parts: of a long one, V8 would keep every piece until its end. */
class Text {
  readonly #take: (part: string) => void;
  #part = '';

  constructor(take: (part: string) => void) {
    this.#take = take;
  }

  add(text: string): void {
    this.#part += text;
    if (this.#part.length > PART_LENGTH) this.flush();
  }

  flush(): void {
    this.#take(this.#part);
    this.#part = '';
  }
}

/**
 * Returns a function that writes the labels of a sample, its own and then the default ones, between two texts that
 * every sample has: `jobs_total{queue="mail"} `. Without labels it returns `before`.
 */
function createLabelFormatter(
  before: string,
  names: readonly string[],
  defaults: DefaultLabels,
  after: string,
): (sample: Sample) => string {
  const others = formatPairs([...defaults].filter(([name]) => !names.includes(name)));
  const [first, ...rest] = names;
  if (first === undefined) return () => (others === '' ? before : `${before}{${others}${after}`);
  const openings = [`${before}{${first}="`, ...rest.map((name) => `",${name}="`)];
  const closing = `"${others && `,${others}`}${after}`;
  return ({ escapedValues }) => {
    let labels = '';
    for (let index = 0; index < openings.length; index++) labels += openings[index]! + escapedValues[index]!;
    return labels + closing;
  };
}

function addScalars(text: Text, family: ScalarFamily, format: Format, defaults: DefaultLabels): void {
  const name = sampleName(family.kind, family.name, format);
  const startOf = createLabelFormatter(name, family.labelNames, defaults, '}');
  const hasExemplars = format === 'openmetrics' && family.kind === 'counter';
  for (const sample of family.samples) {
    text.add(startOf(sample));
    text.add(formatRest(sample.value, hasExemplars ? sample.exemplar : undefined));
  }
}

function addSteps(text: Text, family: SteppedFamily, format: Format, defaults: DefaultLabels): void {
  const { kind, name, labelNames, steps } = family;
  const isHistogram = kind === 'histogram';
  const isOpenMetrics = format === 'openmetrics';
  const labelsOf = createLabelFormatter('', labelNames, defaults, '');
  const stepName = isHistogram ? `${name}_bucket` : name;
  const stepLabels = steps.map((step) => `${OWN_LABELS[kind]}="${formatValue(step)}"}`);
  for (const sample of family.samples) {
    const { values, sum, count, exemplars } = sample;
    const labels = labelsOf(sample);
    const stepStart = `${stepName}${labels || '{'}${labels && ','}`;
    let total = 0;
    for (let index = 0; index < steps.length; index++) {
      const value = isHistogram ? (total += values[index]!) : values[index]!;
      // OpenMetrics allows neither a negative quantile nor a negative sum.
      if (isOpenMetrics && value < 0) continue;
      text.add(stepStart);
      text.add(stepLabels[index]!);
      text.add(formatRest(value, isOpenMetrics ? exemplars?.[index] : undefined));
    }
    // Nor does it allow a histogram to have a sum that can fall, or a count without a sum.
    const hasSum = !isOpenMetrics || (sum >= 0 && !(steps[0]! < 0));
    const end = labels && `${labels}}`;
    if (hasSum) text.add(`${name}_sum${end}${formatRest(sum)}`);
    if (hasSum || !isHistogram) text.add(`${name}_count${end}${formatRest(isHistogram ? total : count)}`);
  }
}
