/*
 * Holds what comes and goes all the time: open connections, requests under way.
 *
 * A `Set` would keep what has left it. Each time V8 makes the table of one anew, the old one points to the new one, and
 * once an old one outlives a few collections, everything that later ones held waits for the next full one.
 */

/** What stands for a member; gives it back to {@link Bag.delete}. */
export interface Place<T> {
  readonly value: T;
  /** -1 when it is out. */
  index: number;
}

/** In no order. */
export class Bag<T> implements Iterable<T> {
  readonly #places: Place<T>[] = [];

  add(value: T): Place<T> {
    const place = { value, index: this.#places.length };
    this.#places.push(place);
    return place;
  }

  /** Does nothing when it is out. */
  delete(place: Place<T>): void {
    const { index } = place;
    if (index === -1) return;
    place.index = -1;
    const last = this.#places.pop() as Place<T>;
    if (last === place) return;
    this.#places[index] = last;
    last.index = index;
  }

  /** Over those that are in it at the beginning. */
  [Symbol.iterator](): Iterator<T> {
    return this.#places.map(({ value }) => value).values();
  }
}
