/*
 * Writes metric families as Prometheus text 0.0.4 or OpenMetrics text 1.0.
 *
 * Trusts its input: names and labels were checked when the metric was registered.
 */

import { ByteWriter, NUMBER_BYTES, Place } from './byte-writer.js';
import { formatExemplar, formatHead, formatValue, sampleName } from './format.js';
import type { Exemplar, Format } from './format.js';
import { Layout } from './layout.js';
import type { DefaultLabels, Sample } from './layout.js';
import { OWN_LABELS } from './names.js';

export interface ScalarSample extends Sample {
  readonly value: number;
  readonly exemplar: Exemplar | undefined;
}

/** Of a histogram or a summary. */
export interface SteppedSample extends Sample {
  /** By step of the family: observations per bucket, not cumulative; quantiles, NaN where nothing was observed of late. */
  readonly values: readonly number[];
  readonly sum: number;
  readonly count: number;
  /** By step. */
  readonly exemplars: readonly (Exemplar | undefined)[] | undefined;
}

interface FamilyHead<S extends Sample> {
  /** A counter's with or without `_total`, as it was registered. */
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

/** Writes families again and again, and keeps what doesn't change between two texts; one per registry. */
export class Exposition {
  readonly #writer: ByteWriter = new ByteWriter();
  readonly #names: Map<string, Place> = new Map();
  #layouts: WeakMap<Family, Layout> = new WeakMap();
  #defaultLabels: DefaultLabels = new Map();

  /** From now on every sample has these labels, but for those that it has itself. */
  setDefaultLabels(labels: DefaultLabels): void {
    this.#defaultLabels = labels;
    this.#layouts = new WeakMap();
  }

  /** The whole text as bytes, which belong to the caller; a few dozen nanoseconds for each line. */
  bytes(families: Iterable<Family>, format: Format): Uint8Array {
    this.#write(families, format);
    return this.#writer.finish();
  }

  /** The whole text as a string. */
  text(families: Iterable<Family>, format: Format): string {
    this.#write(families, format);
    return this.#writer.finishString();
  }

  #write(families: Iterable<Family>, format: Format): void {
    this.#writer.begin();
    for (const family of families) {
      this.#writer.text(formatHead(family.kind, family.name, family.help, format));
      if ('steps' in family) this.#writeSteps(family, format);
      else this.#writeScalars(family, format);
    }
    if (format === 'openmetrics') this.#writer.text('# EOF\n');
  }

  #writeScalars(family: ScalarFamily, format: Format): void {
    const writer = this.#writer;
    const { starts, ends } = this.#layout(family, family.name);
    const name = sampleName(family.kind, family.name, format);
    const otherName = name === family.name ? undefined : this.#name(name);
    const withExemplars = format === 'openmetrics' && family.kind === 'counter';
    let index = 0;
    for (const { value, exemplar } of family.samples) {
      const start = starts[index]!;
      const end = ends[index++]!;
      writer.reserve(name.length + end - start + NUMBER_BYTES + 1);
      if (otherName === undefined) {
        writer.repeat(start, end);
      } else {
        writer.repeat(otherName.start, otherName.end);
        writer.repeat(start + family.name.length, end);
      }
      writeValue(writer, value);
      if (withExemplars && exemplar !== undefined) writer.text(formatExemplar(exemplar));
      else writer.byte(NEW_LINE);
    }
  }

  #writeSteps(family: SteppedFamily, format: Format): void {
    const writer = this.#writer;
    const { starts, ends, tails, longestTail, labelNames } = this.#layout(family, '');
    const isHistogram = family.kind === 'histogram';
    const isOpenMetrics = format === 'openmetrics';
    const stepName = this.#name(isHistogram ? `${family.name}_bucket` : family.name);
    const sumName = this.#name(`${family.name}_sum`);
    const countName = this.#name(`${family.name}_count`);
    // A step's label goes in front of the `} ` that ends a label text.
    const closingLength = labelNames.length > 0 ? 2 : 1;
    let sampleIndex = 0;
    for (const sample of family.samples) {
      const { values, sum, exemplars } = sample;
      const start = starts[sampleIndex]!;
      const end = ends[sampleIndex++]!;
      const lineLength = countName.end - countName.start + 1 + end - start + longestTail + NUMBER_BYTES + 1;
      writer.reserve(lineLength * (tails.length + 2));
      let total = 0;
      let head = 0;
      let headEnd = 0;
      for (let index = 0; index < tails.length; index++) {
        const value = isHistogram ? (total += values[index]!) : values[index]!;
        // Neither a quantile nor a sum may be negative in OpenMetrics.
        if (isOpenMetrics && value < 0) continue;
        if (head === headEnd) {
          head = writer.position;
          writer.repeat(stepName.start, stepName.end);
          writer.repeat(start, end - closingLength);
          headEnd = writer.position;
        } else {
          writer.repeat(head, headEnd);
        }
        writer.piece(tails[index]!);
        writeValue(writer, value);
        const exemplar = exemplars?.[index];
        if (exemplar !== undefined && isOpenMetrics) {
          writer.text(formatExemplar(exemplar));
          writer.reserve(lineLength * (tails.length + 2));
          headEnd = head;
        } else {
          writer.byte(NEW_LINE);
        }
      }
      // Nor may a histogram have a sum that can go down there, or a count without a sum.
      const hasSum = !isOpenMetrics || (sum >= 0 && !(family.steps[0]! < 0));
      if (hasSum) this.#writeLine(sumName, start, end, sum);
      if (hasSum || !isHistogram) this.#writeLine(countName, start, end, isHistogram ? total : sample.count);
    }
  }

  /** Trusts that there is room. */
  #writeLine(name: Place, start: number, end: number, value: number): void {
    const writer = this.#writer;
    writer.repeat(name.start, name.end);
    writer.repeat(start, end);
    writeValue(writer, value);
    writer.byte(NEW_LINE);
  }

  /** Keeps what lines repeat ahead of them, because keeping a piece interrupts the text. */
  #layout(family: Family, name: string): Layout {
    let layout = this.#layouts.get(family);
    if (layout === undefined) {
      const steps = 'steps' in family ? family.steps : [];
      layout = new Layout(family.labelNames, this.#defaultLabels, OWN_LABELS[family.kind], steps);
      this.#layouts.set(family, layout);
    }
    layout.keep(this.#writer, family.samples, name);
    return layout;
  }

  #name(name: string): Place {
    let place = this.#names.get(name);
    if (place === undefined) this.#names.set(name, (place = new Place()));
    if (!this.#writer.holds(place)) this.#writer.keep(place, name);
    return place;
  }
}

const NEW_LINE = 10;
const LARGEST_FAST_INTEGER = 2 ** 31 - 1;

function writeValue(writer: ByteWriter, value: number): void {
  if (value >= 0 && value <= LARGEST_FAST_INTEGER && Math.floor(value) === value) writer.integer(value);
  else writer.ascii(formatValue(value));
}
