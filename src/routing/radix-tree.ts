/*
 * Keeps texts in a radix tree: nodes part where texts do, so `users` and `usage` have a node for `us` in common, with
 * one below it for each of `ers` and `age`.
 *
 * All nodes are cells of one array of integers, and a node is known by the number of its first cell. What a look-up
 * among ten thousand texts costs is the memory that it touches, and objects would spread that far and wide.
 */

// The cells of a node. The first three are its owner's; 0 means nothing in all of them.

/** Table of the nodes below, each at the masked code of its first character. */
export const CHILDREN = 3;
/** As many bits as it takes for each of them to have a place of its own in the table. */
export const MASK = 4;
/** How long the text is that leads here from the node above. */
export const LENGTH = 5;
/** The codes of its characters. */
export const TEXT = 6;

/** The node of the empty text. The cells before it are a node that is none, and its table, which is empty. */
export const ROOT: number = TEXT;

/** A radix tree; there may be more roots than {@link ROOT} in its cells. */
export class RadixTree {
  /** Another array whenever the tree has grown. */
  cells: Int32Array = new Int32Array(128);
  #size = ROOT + TEXT;

  read(cell: number): number {
    return this.cells[cell] as number;
  }

  write(cell: number, value: number): void {
    this.cells[cell] = value;
  }

  /** What a cell of the owner's holds, which is made if there is nothing. */
  obtainCell(cell: number, create: () => number): number {
    if (this.read(cell) === 0) this.write(cell, create());
    return this.read(cell);
  }

  /** Cells of the owner's. */
  allocate(size: number): number {
    const start = this.#size;
    this.#size += size;
    if (this.#size > this.cells.length) {
      const cells = new Int32Array(2 * this.#size);
      cells.set(this.cells);
      this.cells = cells;
    }
    return start;
  }

  /** A node that nothing leads to, or text of some length that is yet to be written. */
  createNode(length = 0): number {
    const node = this.allocate(TEXT + length);
    this.write(node + LENGTH, length);
    return node;
  }

  /** The node that a text leads to from another, made if there is none; it keeps its number for good. */
  obtain(start: number, text: string): number {
    let node = start;
    for (let at = 0; at < text.length;) {
      const child = this.read(this.#placeOf(node, text.charCodeAt(at)));
      const shared = this.#countShared(child, text, at);
      if (shared === 0) return this.#append(node, text.slice(at));
      node = shared === this.read(child + LENGTH) ? child : this.#split(node, child, shared);
      at += shared;
    }
    return node;
  }

  /** How many characters a text has in common with the one that leads to a node. */
  #countShared(node: number, text: string, at: number): number {
    const length = this.read(node + LENGTH);
    let shared = 0;
    while (shared < length && this.read(node + TEXT + shared) === text.charCodeAt(at + shared)) shared += 1;
    return shared;
  }

  #append(parent: number, text: string): number {
    const node = this.createNode(text.length);
    for (let i = 0; i < text.length; i += 1) this.write(node + TEXT + i, text.charCodeAt(i));
    this.#link(parent, node);
    return node;
  }

  /** Makes a node for the first characters on the way to a child. */
  #split(parent: number, child: number, shared: number): number {
    const node = this.createNode(shared);
    const text = child + TEXT;
    this.cells.copyWithin(node + TEXT, text, text + shared);
    this.#link(parent, node);
    const length = this.read(child + LENGTH);
    this.cells.copyWithin(text, text + shared, text + length);
    this.write(child + LENGTH, length - shared);
    this.#link(node, child);
    return node;
  }

  /** Puts a child in the place of the one with the same first character, or in a place of its own. */
  #link(node: number, child: number): void {
    const code = this.read(child + TEXT);
    const other = this.read(this.#placeOf(node, code));
    const otherCode = other === 0 ? code : this.read(other + TEXT);
    if (this.read(node + CHILDREN) === 0 || otherCode !== code) this.#widen(node, otherCode ^ code);
    this.write(this.#placeOf(node, code), child);
  }

  /** Moves the children to a table that has two places for codes which differ in the given bits. */
  #widen(node: number, difference: number): void {
    const oldTable = this.read(node + CHILDREN);
    const oldMask = this.read(node + MASK);
    let mask = oldMask;
    while (difference !== 0 && (difference & mask) === 0) mask = 2 * mask + 1;
    const table = this.allocate(mask + 1);
    for (let place = oldTable; place <= oldTable + oldMask; place += 1) {
      const child = this.read(place);
      if (child !== 0) this.write(table + (this.read(child + TEXT) & mask), child);
    }
    this.write(node + CHILDREN, table);
    this.write(node + MASK, mask);
  }

  #placeOf(node: number, code: number): number {
    return this.read(node + CHILDREN) + (code & this.read(node + MASK));
  }
}
