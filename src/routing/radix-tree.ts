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

/** The node of the empty text. The cells before it are a placeholder for "no node", and its table, which is empty. */
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

  /** The owner's cells that this cell of the owner points to; made if it points to none. */
  obtainCells(cell: number, size: number): number {
    const start = this.read(cell) || this.allocate(size);
    this.write(cell, start);
    return start;
  }

  /** Cells of the owner's, or a node that nothing leads to. */
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

  /** The node that a text leads to from another, made if there is none; it keeps its number for good. */
  obtain(start: number, text: string): number {
    let node = start;
    for (let at = 0; at < text.length;) {
      const { cells } = this;
      const code = text.charCodeAt(at);
      const child = cells[placeOf(cells, node, code)] as number;
      if (child === 0 || cells[child + TEXT] !== code) return this.#append(node, text, at);
      const length = cells[child + LENGTH] as number;
      const most = Math.min(length, text.length - at);
      let shared = 1;
      while (shared < most && cells[child + TEXT + shared] === text.charCodeAt(at + shared)) shared += 1;
      node = shared === length ? child : this.#split(node, child, shared);
      at += shared;
    }
    return node;
  }

  /** Makes a node for the rest of a text, below one that has none for its first character. */
  #append(parent: number, text: string, at: number): number {
    const length = text.length - at;
    const node = this.allocate(TEXT + length);
    const { cells } = this;
    cells[node + LENGTH] = length;
    for (let i = 0; i < length; i += 1) cells[node + TEXT + i] = text.charCodeAt(at + i);
    const code = text.charCodeAt(at);
    const other = cells[placeOf(cells, parent, code)] as number;
    if (cells[parent + CHILDREN] === 0) this.#widen(parent, 0);
    else if (other !== 0) this.#widen(parent, (cells[other + TEXT] as number) ^ code);
    this.cells[placeOf(this.cells, parent, code)] = node;
    return node;
  }

  /** Makes a node for the first characters on the way to a child, whose place it takes. */
  #split(parent: number, child: number, shared: number): number {
    const node = this.allocate(TEXT + shared + 1);
    const table = node + TEXT + shared;
    const { cells } = this;
    const text = child + TEXT;
    const length = cells[child + LENGTH] as number;
    cells[placeOf(cells, parent, cells[text] as number)] = node;
    cells[node + LENGTH] = shared;
    cells[node + CHILDREN] = table;
    cells[table] = child;
    cells.copyWithin(node + TEXT, text, text + shared);
    cells.copyWithin(text, text + shared, text + length);
    cells[child + LENGTH] = length - shared;
    return node;
  }

  /** Moves the children to a table that has two places for codes which differ in the given bits. */
  #widen(node: number, difference: number): void {
    const oldTable = this.read(node + CHILDREN);
    const oldMask = this.read(node + MASK);
    let mask = oldMask;
    while (difference !== 0 && (difference & mask) === 0) mask = 2 * mask + 1;
    const table = this.allocate(mask + 1);
    const { cells } = this;
    for (let place = oldTable; place <= oldTable + oldMask; place += 1) {
      const child = cells[place] as number;
      if (child !== 0) cells[table + ((cells[child + TEXT] as number) & mask)] = child;
    }
    cells[node + CHILDREN] = table;
    cells[node + MASK] = mask;
  }
}

/** Where a node has the child whose text begins with a code, if it has one. */
function placeOf(cells: Int32Array, node: number, code: number): number {
  return (cells[node + CHILDREN] as number) + (code & (cells[node + MASK] as number));
}
