import { expect, test } from 'vitest';
import { ByteWriter, Place } from '../../src/metrics/byte-writer.js';

test('a piece is kept from one text to the next', () => {
  const writer = new ByteWriter();
  const place = new Place();
  writer.begin();
  expect(writer.holds(place)).toBe(false);
  writer.keep(place, 'kept');
  expect(writer.finishString()).toBe('');
  writer.begin();
  expect(writer.holds(place)).toBe(true);
  expect(repeated(writer, place)).toBe('kept');
});

test('pieces that are no longer used are let go, the others are kept anew', () => {
  const writer = new ByteWriter();
  const gone = Array.from({ length: 100 }, () => new Place());
  const staying = new Place();
  writer.begin();
  gone.forEach((place, index) => writer.keep(place, `${index}`.repeat(2000)));
  writer.keep(staying, 'staying');
  writer.finish();
  writer.begin();
  expect(writer.holds(staying)).toBe(true);
  writer.finish();
  writer.begin();
  expect([...gone, staying].filter((place) => writer.holds(place))).toEqual([]);
  writer.keep(staying, 'staying');
  expect(repeated(writer, staying)).toBe('staying');
});

test('pieces in use are never let go, however large', () => {
  const writer = new ByteWriter();
  const places = Array.from({ length: 100 }, () => new Place());
  for (let round = 0; round < 5; round++) {
    writer.begin();
    places.forEach((place, index) => {
      if (!writer.holds(place)) writer.keep(place, `${round}`.repeat(2000 + index));
    });
    writer.finish();
  }
  writer.begin();
  expect(places.every((place) => writer.holds(place))).toBe(true);
  expect(repeated(writer, places[0])).toBe('0'.repeat(2000));
});

test('a text that was given up leaves nothing in the next one', () => {
  const writer = new ByteWriter();
  writer.begin();
  writer.text('given up');
  writer.begin();
  writer.text('é');
  expect(writer.finishString()).toBe('é');
});

test('integers from 0 to 2^31 - 1 are written as floats', () => {
  const writer = new ByteWriter();
  const numbers = [0, 1, 9, 10, 11, 99, 100, 101, 999_999_999, 1_000_000_000, 2 ** 31 - 1];
  for (const number of numbers) {
    writer.begin();
    writer.reserve(26);
    writer.integer(number);
    expect(writer.finishString()).toBe(`${number}.0`);
  }
});

function repeated(writer: ByteWriter, place: Place | undefined): string {
  if (place === undefined) throw new Error('there is no such place');
  writer.reserve(place.end - place.start);
  writer.repeat(place.start, place.end);
  return writer.finishString();
}
