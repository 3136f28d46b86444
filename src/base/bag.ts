/*
 * Holds what comes and goes all the time: open connections, requests under way.
 *
 * A `Set` would hold on to members that have left it. Each time V8 makes a new table for a set, the old table points to
 * the new one. Once an old table has outlived a few garbage collections, it keeps all the tables after it, with their
 * members, until the next full collection.
 */

/** Where a member is in the bag, for {@link Bag.delete}. */
export interface Place<T> {
  readonly value: T;
  /** -1 when the member is out. */
  index: number;
}

/** Members in no order. */
export class Bag<T> implements Iterable<T> {
  readonly #places: Place<T>[] = [];

  get size(): number {
    return this.#places.length;
  }

  add(value: T): Place<T> {
    const place = { value, index: this.#places.length };
    this.#places.push(place);
    return place;
  }

  /** Does nothing when the member is out already. */
  delete(place: Place<T>): void {
    const { index } = place;
    if (index === -1) return;
    place.index = -1;
    const last = this.#places.pop() as Place<T>;
    if (last === place) return;
    this.#places[index] = last;
    last.index = index;
  }

  /** Over the members that are in it when the iteration begins. */
  [Symbol.iterator](): Iterator<T> {
    return this.#places.map(({ value }) => value).values();
  }
}
