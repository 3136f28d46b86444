/*
 * Builds a text as UTF-8 bytes out of pieces that are kept from one text to the next.
 *
 * One buffer holds the kept pieces and, behind them, a window in which the text grows: a copy inside
 * one buffer is the cheapest way there is to repeat a piece. Full windows move into the result.
 */

/** Where a kept piece lies; made empty by whoever owns the piece, filled in by `keep`. */
export class Place {
  start = 0;
  end = 0;
  generation = -1;
  isAscii = true;
}

const WINDOW_BYTES = 65_536;
/** Room for any number: `-1.2345678901234567e+308` has 24 characters, `-100000000000000000000.0` as well. */
export const NUMBER_BYTES = 26;

/** A text under construction; it may be used for one text after the other, never for two at once. */
export class ByteWriter {
  #bytes: Buffer = Buffer.alloc(0);
  #kept = 0;
  #used = 0;
  #at = 0;
  #result: Buffer = Buffer.alloc(0);
  #resultLength = 0;
  #lastLength = 0;
  #isAscii = true;
  #generation = 0;

  /** Starts a text, whatever became of the one before. */
  begin(): void {
    if (this.#kept > 2 * this.#used + WINDOW_BYTES) this.#forget();
    this.#at = this.#kept;
    this.#used = 0;
    this.#resultLength = 0;
    this.#isAscii = true;
  }

  /** Whether the bytes of `place` are here; asking keeps them over the end of this text. */
  holds(place: Place): boolean {
    if (place.generation !== this.#generation) return false;
    this.use(place.end - place.start, place.isAscii);
    return true;
  }

  /** Changes when everything that was kept is gone. */
  get generation(): number {
    return this.#generation;
  }

  /** Keeps `bytes` of this generation over the end of this text, as `holds` does for one place. */
  use(bytes: number, isAscii: boolean): void {
    this.#used += bytes;
    if (!isAscii) this.#isAscii = false;
  }

  /** Keeps `text` for this text and those to come, and fills in `place`. */
  keep(place: Place, text: string): void {
    this.#flush();
    if (this.#kept + text.length * 3 > this.#bytes.length) this.#grow(text.length * 3);
    const length = this.#bytes.write(text, this.#kept, 'utf8');
    place.isAscii = length === text.length;
    place.start = this.#kept;
    place.end = this.#kept + length;
    place.generation = this.#generation;
    this.use(length, place.isAscii);
    this.#kept = place.end;
    this.#at = place.end;
  }

  /** Makes room for `length` bytes to come; every write trusts that this was called. */
  reserve(length: number): void {
    if (this.#at + length <= this.#bytes.length) return;
    this.#flush();
    if (this.#kept + length > this.#bytes.length) this.#grow(length);
  }

  /** The position of the next byte; good for `repeat` until the next `reserve` or `keep`. */
  get position(): number {
    return this.#at;
  }

  /** Writes the kept bytes from `start` to `end`, or bytes of the text that were written since the last `reserve`. */
  repeat(start: number, end: number): void {
    this.#bytes.copyWithin(this.#at, start, end);
    this.#at += end - start;
  }

  /** Writes a few ASCII bytes; for short pieces a loop is faster than a copy. */
  piece(piece: Uint8Array): void {
    const bytes = this.#bytes;
    let at = this.#at;
    for (let index = 0; index < piece.length; index++) bytes[at++] = piece[index]!;
    this.#at = at;
  }

  /** Writes a few ASCII characters. */
  ascii(text: string): void {
    const bytes = this.#bytes;
    let at = this.#at;
    for (let index = 0; index < text.length; index++) bytes[at++] = text.charCodeAt(index);
    this.#at = at;
  }

  /** Writes one ASCII character. */
  byte(code: number): void {
    this.#bytes[this.#at++] = code;
  }

  /** Writes an integer from 0 to 2^31 - 1 as a float: `12` is `12.0`. */
  integer(value: number): void {
    const bytes = this.#bytes;
    const end = this.#at + digitCount(value);
    let rest = value;
    for (let at = end; at > this.#at;) {
      const tenth = (rest / 10) | 0;
      bytes[--at] = 48 + rest - tenth * 10;
      rest = tenth;
    }
    bytes[end] = 46;
    bytes[end + 1] = 48;
    this.#at = end + 2;
  }

  /** Writes any text, and makes the room for it. */
  text(text: string): void {
    this.reserve(text.length * 3);
    const written = this.#bytes.write(text, this.#at, 'utf8');
    if (written !== text.length) this.#isAscii = false;
    this.#at += written;
  }

  /** Ends the text and hands it over; the caller owns the bytes. */
  finish(): Buffer {
    this.#flush();
    const finished = this.#result.subarray(0, this.#resultLength);
    this.#result = Buffer.alloc(0);
    this.#lastLength = this.#resultLength;
    return finished;
  }

  /** Ends the text; reading it as Latin-1 is the fastest where that is the same. */
  finishString(): string {
    return this.finish().toString(this.#isAscii ? 'latin1' : 'utf8');
  }

  /** Most of what was kept belongs to series that are gone: what is still in use is kept anew as it is met. */
  #forget(): void {
    this.#generation++;
    this.#kept = 0;
    this.#bytes = Buffer.alloc(0);
  }

  #flush(): void {
    const length = this.#at - this.#kept;
    if (length === 0) return;
    const needed = this.#resultLength + length;
    if (needed > this.#result.length) {
      const larger = Buffer.allocUnsafeSlow(
        Math.max(needed, 2 * this.#result.length, this.#lastLength + (this.#lastLength >> 3)),
      );
      this.#result.copy(larger, 0, 0, this.#resultLength);
      this.#result = larger;
    }
    this.#bytes.copy(this.#result, this.#resultLength, this.#kept, this.#at);
    this.#resultLength = needed;
    this.#at = this.#kept;
  }

  /** Only called with an empty window. */
  #grow(length: number): void {
    const larger = Buffer.allocUnsafeSlow(this.#kept + (this.#kept >> 1) + Math.max(length, WINDOW_BYTES));
    this.#bytes.copy(larger, 0, 0, this.#kept);
    this.#bytes = larger;
  }
}

function digitCount(value: number): number {
  let count = 1;
  for (let limit = 10; value >= limit && count < 10; limit *= 10) count++;
  return count;
}
