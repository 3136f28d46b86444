/**
 * Writes metric families as Prometheus text 0.0.4 or OpenMetrics text 1.0.
 *
 * Trusts its input: names and labels were checked when the metric was registered.
 */
import { ByteWriter, NUMBER_BYTES, Place } from './byte-writer.js';
import { formatExemplar, formatHead, formatLabels, formatValue, sampleName } from './format.js';
import type { Exemplar, Format } from './format.js';

/** One series of a family; `labelValues` in the order of the family's names. */
export interface Sample {
  readonly labelValues: readonly string[];
  /** Where the writer keeps what the sample's lines have in common; one for each sample, never shared. */
  readonly place: Place;
}

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

export type Family = ScalarFamily | HistogramFamily;

/** Writes families again and again, and keeps what doesn't change between two texts; one per registry. */
export class Exposition {
  readonly #writer: ByteWriter = new ByteWriter();
  readonly #names: Map<string, Place> = new Map();
  readonly #tails: WeakMap<readonly number[], BucketTails> = new WeakMap();

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
      else this.#writeScalars(family, format);
    }
    if (format === 'openmetrics') this.#writer.text('# EOF\n');
  }

  #writeScalars(family: ScalarFamily, format: Format): void {
    const writer = this.#writer;
    this.#keepPieces(family, family.name);
    const name = sampleName(family.kind, family.name, format);
    const otherName = name === family.name ? undefined : this.#name(name);
    const withExemplars = format === 'openmetrics' && family.kind === 'counter';
    for (const { place, value, exemplar } of family.samples) {
      writer.reserve(name.length + place.end - place.start + NUMBER_BYTES + 1);
      if (otherName === undefined) {
        writer.repeat(place.start, place.end);
      } else {
        writer.repeat(otherName.start, otherName.end);
        writer.repeat(place.start + family.name.length, place.end);
      }
      writeValue(writer, value);
      if (withExemplars && exemplar !== undefined) writer.text(formatExemplar(exemplar));
      else writer.byte(NEW_LINE);
    }
  }

  #writeHistograms(family: HistogramFamily, format: Format): void {
    const writer = this.#writer;
    this.#keepPieces(family, '');
    const bucketName = this.#name(`${family.name}_bucket`);
    const sumName = this.#name(`${family.name}_sum`);
    const countName = this.#name(`${family.name}_count`);
    const { tails, longest } = this.#bucketTails(family);
    const nameLength = bucketName.end - bucketName.start;
    for (const { place, counts, sum, exemplars } of family.samples) {
      const lineLength = nameLength + place.end - place.start + longest + NUMBER_BYTES + 1;
      writer.reserve(lineLength * (tails.length + 2));
      let total = 0;
      let head = 0;
      let headEnd = 0;
      for (let index = 0; index < tails.length; index++) {
        total += counts[index]!;
        if (head === headEnd) {
          head = writer.position;
          writer.repeat(bucketName.start, bucketName.end);
          if (family.labelNames.length > 0) writer.repeat(place.start, place.end - CLOSING_LENGTH);
          headEnd = writer.position;
        } else {
          writer.repeat(head, headEnd);
        }
        writer.piece(tails[index]!);
        writeValue(writer, total);
        const exemplar = exemplars?.[index];
        if (exemplar !== undefined && format === 'openmetrics') {
          writer.text(formatExemplar(exemplar));
          writer.reserve(lineLength * (tails.length + 2));
          headEnd = head;
        } else {
          writer.byte(NEW_LINE);
        }
      }
      writer.repeat(sumName.start, sumName.end);
      writer.repeat(place.start, place.end);
      writeValue(writer, sum);
      writer.byte(NEW_LINE);
      writer.repeat(countName.start, countName.end);
      writer.repeat(place.start, place.end);
      writeValue(writer, total);
      writer.byte(NEW_LINE);
    }
  }

  /** What a sample's lines repeat: `name` and the labels. Ahead of the lines, because keeping a piece interrupts the text. */
  #keepPieces({ labelNames, samples }: Family, name: string): void {
    const writer = this.#writer;
    for (const { place, labelValues } of samples) {
      if (!writer.holds(place)) writer.keep(place, name + formatLabels(labelNames, labelValues));
    }
  }

  #name(name: string): Place {
    let place = this.#names.get(name);
    if (place === undefined) this.#names.set(name, (place = new Place()));
    if (!this.#writer.holds(place)) this.#writer.keep(place, name);
    return place;
  }

  #bucketTails({ bounds, labelNames }: HistogramFamily): BucketTails {
    let tails = this.#tails.get(bounds);
    if (tails === undefined) this.#tails.set(bounds, (tails = formatTails(bounds, labelNames.length > 0)));
    return tails;
  }
}

interface BucketTails {
  readonly tails: readonly Uint8Array[];
  readonly longest: number;
}

const NEW_LINE = 10;
/** The `} ` that ends a label text; a bucket's `le` goes in front of it. */
const CLOSING_LENGTH = 2;
const LARGEST_FAST_INTEGER = 2 ** 31 - 1;

function writeValue(writer: ByteWriter, value: number): void {
  if (value >= 0 && value <= LARGEST_FAST_INTEGER && Math.floor(value) === value) writer.integer(value);
  else writer.ascii(formatValue(value));
}

function formatTails(bounds: readonly number[], hasLabels: boolean): BucketTails {
  const opening = hasLabels ? ',' : '{';
  const tails = [...bounds, Infinity].map((bound) => Buffer.from(`${opening}le="${formatValue(bound)}"} `, 'latin1'));
  return { tails, longest: Math.max(...tails.map((tail) => tail.length)) };
}
