/*
 * What the exposition keeps of one family from one text to the next: where its samples' labels lie in the writer.
 */

import { Place } from './byte-writer.js';
import type { ByteWriter } from './byte-writer.js';
import { formatLabels, formatValue } from './format.js';

/** One series of a family; `labelValues` in the order of the family's names. */
export interface Sample {
  readonly labelValues: readonly string[];
}

/** Labels that every sample gets which hasn't one of its own by that name. */
export type DefaultLabels = ReadonlyMap<string, string>;

/** Made once for each family and its default labels. */
export class Layout {
  /** The family's, then the default ones. */
  readonly labelNames: readonly string[];
  /** For each step what stands behind a sample's labels: `,le="0.5"} `. */
  readonly tails: readonly Uint8Array[];
  readonly longestTail: number;
  /** Values of the default labels. */
  readonly #defaults: readonly string[];
  readonly #samples: Sample[] = [];
  /** Where the piece of each sample begins, in their order. */
  readonly starts: number[] = [];
  /** Where it ends. */
  readonly ends: number[] = [];
  /** Of the writer, when these were kept. */
  #generation = -1;
  #bytes = 0;
  #isAscii = true;

  /** @param tailName the label that tells a sample's lines apart, `le` or `quantile` */
  constructor(own: readonly string[], defaults: DefaultLabels, tailName: string | undefined, steps: readonly number[]) {
    const others = [...defaults].filter(([name]) => !own.includes(name));
    this.labelNames = [...own, ...others.map(([name]) => name)];
    this.#defaults = others.map(([, value]) => value);
    const opening = this.labelNames.length > 0 ? ',' : '{';
    this.tails = steps.map((value) => Buffer.from(`${opening}${tailName}="${formatValue(value)}"} `, 'latin1'));
    this.longestTail = Math.max(0, ...this.tails.map((tail) => tail.length));
  }

  /**
   * Keeps what each sample's lines repeat: `name` and the labels. Most often the samples are those of the text before,
   * so that comparing is all there is to do.
   */
  keep(writer: ByteWriter, samples: Iterable<Sample>, name: string): void {
    if (this.#generation !== writer.generation) this.#forget(writer.generation);
    const known = this.#samples;
    let moved: Map<Sample, readonly [start: number, end: number]> | undefined;
    let newBytes = 0;
    let index = 0;
    for (const sample of samples) {
      if (known[index] !== sample) {
        if (index < known.length) moved ??= this.#piecesFrom(index);
        let piece = moved?.get(sample);
        if (piece === undefined) {
          piece = this.#write(writer, sample, name);
          newBytes += piece[1] - piece[0];
        }
        known[index] = sample;
        [this.starts[index], this.ends[index]] = piece;
      }
      index++;
    }
    if (newBytes > 0 || moved !== undefined || index !== known.length) this.#end(index);
    writer.use(this.#bytes - newBytes, this.#isAscii);
  }

  #write(writer: ByteWriter, { labelValues }: Sample, name: string): readonly [start: number, end: number] {
    const place = new Place();
    const values = this.#defaults.length === 0 ? labelValues : [...labelValues, ...this.#defaults];
    writer.keep(place, name + formatLabels(this.labelNames, values));
    if (!place.isAscii) this.#isAscii = false;
    return [place.start, place.end];
  }

  #piecesFrom(first: number): Map<Sample, readonly [start: number, end: number]> {
    return new Map(
      this.#samples.slice(first).map((old, at) => [old, [this.starts[first + at]!, this.ends[first + at]!]]),
    );
  }

  /** Behind the last sample: those that were not met are gone. */
  #end(length: number): void {
    for (const list of [this.#samples, this.starts, this.ends]) list.length = length;
    this.#bytes = 0;
    for (let index = 0; index < length; index++) this.#bytes += this.ends[index]! - this.starts[index]!;
  }

  #forget(generation: number): void {
    this.#generation = generation;
    this.#isAscii = true;
    this.#end(0);
  }
}
