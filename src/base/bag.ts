/*
 * Holds what comes and goes all the time: open connections, requests under way.
 *
 * A `Set` would hold on to members that have left it. Each time V8 makes a new table for a set, the old table points to
 * the new one. Once an old table has outlived a few garbage collections, it keeps all the tables after it, with their
 * members, until the next full collection.
 */

/** A value in a bag; {@link Bag.delete} takes it. */
interface BagMember<T> {
  readonly value: T;
  /** -1 after it was deleted. */
  index: number;
}

/** Members in no order. */
class Bag<T> implements Iterable<T> {
  readonly #members: BagMember<T>[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(value: T): BagMember<T> {
    const member = { value, index: this.#members.length };
    this.#members.push(member);
    return member;
  }

  /** Does nothing when the member was deleted before. */
  delete(member: BagMember<T>): void {
    const { index } = member;
    if (index === -1) return;
    member.index = -1;
    const last = this.#members.pop() as BagMember<T>;
    if (last === member) return;
    this.#members[index] = last;
    last.index = index;
  }

  /** Iterates over the values of the members that it has when the iteration begins. */
  [Symbol.iterator](): Iterator<T> {
    return this.#members.map(({ value }) => value).values();
  }
}
