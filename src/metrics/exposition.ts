/**
 * Writes metric families as Prometheus text 0.0.4 or OpenMetrics text 1.0.
 *
 * Trusts its input: names and labels were checked when the metric was registered.
 */
import { ByteWriter, NUMBER_BYTES, Place } from './byte-writer.js';
import { formatExemplar, formatHead, formatValue, sampleName } from './format.js';
import type { Exemplar, Format } from './format.js';
import { Layout } from './layout.js';
import type { DefaultLabels, Sample } from './layout.js';

export interface ScalarSample extends Sample {
  readonly value: number;
  readonly exemplar: Exemplar | undefined;
}

export interface HistogramSample extends Sample {
  /** Observations per bucket, not cumulative; one more than the family has bounds, for +Inf. */
  readonly counts: readonly number[];
  readonly sum: number;
  /** By bucket, like `counts`. */
  readonly exemplars: readonly (Exemplar | undefined)[] | undefined;
}

export interface SummarySample extends Sample {
  /** By quantile of the family; NaN where nothing was observed of late. */
  readonly values: readonly number[];
  readonly sum: number;
  readonly count: number;
}

interface FamilyHead {
  /** A counter's with or without `_total`, as it was registered. */
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

export interface ScalarFamily extends FamilyHead {
  readonly kind: 'counter' | 'gauge';
  readonly samples: Iterable<ScalarSample>;
}

export interface HistogramFamily extends FamilyHead {
  readonly kind: 'histogram';
  /** Finite upper bounds, ascending; +Inf is implied. */
  readonly bounds: readonly number[];
  readonly samples: Iterable<HistogramSample>;
}

export interface SummaryFamily extends FamilyHead {
  readonly kind: 'summary';
  /** From 0 to 1, ascending. */
  readonly quantiles: readonly number[];
  readonly samples: Iterable<SummarySample>;
}

export type Family = ScalarFamily | HistogramFamily | SummaryFamily;

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
      if (family.kind === 'histogram') this.#writeHistograms(family, format);
      else if (family.kind === 'summary') this.#writeSummaries(family, format);
      else this.#writeScalars(family, format);
    }
    if (format === 'openmetrics') this.#writer.text('# EOF\n');
  }

  #writeScalars(family: ScalarFamily, format: Format): void {
    const writer = this.#writer;
    const { starts, ends } = this.#keep(this.#layout(family), family.samples, family.name);
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

  #writeHistograms(family: HistogramFamily, format: Format): void {
    const writer = this.#writer;
    const layout = this.#layout(family, 'le', [...family.bounds, Infinity]);
    const { starts, ends } = this.#keep(layout, family.samples, '');
    const bucketName = this.#name(`${family.name}_bucket`);
    const sumName = this.#name(`${family.name}_sum`);
    const countName = this.#name(`${family.name}_count`);
    const { tails } = layout;
    const hasLabels = layout.labelNames.length > 0;
    const nameLength = bucketName.end - bucketName.start;
    const isOpenMetrics = format === 'openmetrics';
    let sampleIndex = 0;
    for (const { counts, sum, exemplars } of family.samples) {
      const start = starts[sampleIndex]!;
      const end = ends[sampleIndex++]!;
      const lineLength = nameLength + end - start + layout.longestTail + NUMBER_BYTES + 1;
      writer.reserve(lineLength * (tails.length + 2));
      let total = 0;
      let head = 0;
      let headEnd = 0;
      for (let index = 0; index < tails.length; index++) {
        total += counts[index]!;
        if (head === headEnd) {
          head = writer.position;
          writer.repeat(bucketName.start, bucketName.end);
          if (hasLabels) writer.repeat(start, end - CLOSING_LENGTH);
          headEnd = writer.position;
        } else {
          writer.repeat(head, headEnd);
        }
        writer.piece(tails[index]!);
        writeValue(writer, total);
        const exemplar = exemplars?.[index];
        if (exemplar !== undefined && isOpenMetrics) {
          writer.text(formatExemplar(exemplar));
          writer.reserve(lineLength * (tails.length + 2));
          headEnd = head;
        } else {
          writer.byte(NEW_LINE);
        }
      }
      // OpenMetrics has a sum only where it can't go down, and a count only where there is a sum.
      if (isOpenMetrics && !(sum >= 0 && !(family.bounds[0]! < 0))) continue;
      this.#writeLine(sumName, start, end, sum);
      this.#writeLine(countName, start, end, total);
    }
  }

  #writeSummaries(family: SummaryFamily, format: Format): void {
    const writer = this.#writer;
    const layout = this.#layout(family, 'quantile', family.quantiles);
    const { starts, ends } = this.#keep(layout, family.samples, '');
    const name = this.#name(family.name);
    const sumName = this.#name(`${family.name}_sum`);
    const countName = this.#name(`${family.name}_count`);
    const hasLabels = layout.labelNames.length > 0;
    const isOpenMetrics = format === 'openmetrics';
    let sampleIndex = 0;
    for (const { values, sum, count } of family.samples) {
      const start = starts[sampleIndex]!;
      const end = ends[sampleIndex++]!;
      const lineLength = sumName.end - sumName.start + 2 + end - start + layout.longestTail + NUMBER_BYTES;
      writer.reserve(lineLength * (values.length + 2));
      for (let index = 0; index < values.length; index++) {
        // Neither may be negative in OpenMetrics.
        if (isOpenMetrics && values[index]! < 0) continue;
        writer.repeat(name.start, name.end);
        if (hasLabels) writer.repeat(start, end - CLOSING_LENGTH);
        writer.piece(layout.tails[index]!);
        writeValue(writer, values[index]!);
        writer.byte(NEW_LINE);
      }
      if (!isOpenMetrics || sum >= 0) this.#writeLine(sumName, start, end, sum);
      this.#writeLine(countName, start, end, count);
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

  /** Ahead of the lines, because keeping a piece interrupts the text. */
  #keep(layout: Layout, samples: Iterable<Sample>, name: string): Layout {
    layout.keep(this.#writer, samples, name);
    return layout;
  }

  #layout(family: Family, tailName?: string, tailValues?: readonly number[]): Layout {
    let layout = this.#layouts.get(family);
    if (layout === undefined) {
      layout = new Layout(family.labelNames, this.#defaultLabels, tailName, tailValues);
      this.#layouts.set(family, layout);
    }
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
/** The `} ` that ends a label text; a bucket's `le` goes in front of it. */
const CLOSING_LENGTH = 2;
const LARGEST_FAST_INTEGER = 2 ** 31 - 1;

function writeValue(writer: ByteWriter, value: number): void {
  if (value >= 0 && value <= LARGEST_FAST_INTEGER && Math.floor(value) === value) writer.integer(value);
  else writer.ascii(formatValue(value));
}
