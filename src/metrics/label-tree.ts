/*
 * Label values → what belongs to them.
 *
 * A tree with one level for each label: no two sets of values can ever meet in one key, and a look-up hashes nothing
 * that V8 hasn't hashed before. Of a few values, comparing one after the other finds one sooner than a map does.
 */

/** Up to this number, values are compared one by one. */
const FEW = 8;

/** The values of one label; the values of the last label have items, the values of the others have branches. */
class Branch<T> {
  readonly #values: string[] = [];
  readonly #below: (Branch<T> | T)[] = [];
  #map: Map<unknown, Branch<T> | T> | undefined;

  get size(): number {
    return this.#map?.size ?? this.#values.length;
  }

  /** A value that is neither a string nor a number has no item. */
  get(value: unknown): Branch<T> | T | undefined {
    if (this.#map === undefined) {
      const values = this.#values;
      for (let index = 0; index < values.length; index++) {
        if (values[index] === value) return this.#below[index];
      }
    } else {
      const below = this.#map.get(value);
      if (below !== undefined) return below;
    }
    return typeof value === 'number' ? this.get(String(value)) : undefined;
  }

  /** Adds a value that isn't there. */
  set(value: string, below: Branch<T> | T): void {
    if (this.#map === undefined) {
      const values = this.#values;
      if (values.length < FEW) {
        values.push(value);
        this.#below.push(below);
        return;
      }
      this.#map = new Map();
      for (let index = 0; index < values.length; index++) this.#map.set(values[index], this.#below[index]!);
      values.length = this.#below.length = 0;
    }
    this.#map.set(value, below);
  }

  delete(value: string): void {
    const index = this.#values.indexOf(value);
    this.#map?.delete(value);
    if (index === -1) return;
    this.#values.splice(index, 1);
    this.#below.splice(index, 1);
  }
}

export class LabelTree<T> {
  readonly #names: readonly string[];
  #root: Branch<T> | T | undefined;

  constructor(names: readonly string[]) {
    this.#names = names;
    this.clear();
  }

  /**
   * The item of these labels, numbers being what `String` makes of them; whatever is wrong with the labels makes it
   * `undefined`.
   */
  find(labels: object): T | undefined {
    const names = this.#names;
    const record = labels as Readonly<Record<string, unknown>>;
    let below = this.#root;
    let depth = 0;
    for (const name in record) {
      if (name !== names[depth++]) return this.#findInAnyOrder(record);
      below = (below as Branch<T>).get(record[name]);
      if (below === undefined) return undefined;
    }
    return depth === names.length ? (below as T | undefined) : undefined;
  }

  /** The item of these values, in the order of the names. */
  get(values: readonly string[]): T | undefined {
    let below = this.#root;
    for (let depth = 0; depth < values.length && below !== undefined; depth++)
      below = (below as Branch<T>).get(values[depth]);
    return below as T | undefined;
  }

  set(values: readonly string[], item: T): void {
    const last = values.length - 1;
    if (last < 0) {
      this.#root = item;
      return;
    }
    let branch = this.#root as Branch<T>;
    for (let depth = 0; depth < last; depth++) {
      let child = branch.get(values[depth]);
      if (child === undefined) branch.set(values[depth]!, (child = new Branch()));
      branch = child as Branch<T>;
    }
    branch.set(values[last]!, item);
  }

  /** Removes an item, and every branch that only it used. */
  delete(values: readonly string[]): void {
    if (values.length === 0) this.#root = undefined;
    else prune(this.#root as Branch<T>, values, 0);
  }

  clear(): void {
    this.#root = this.#names.length === 0 ? undefined : new Branch();
  }

  /** Slower than taking the labels as they come: these property names aren't known to the loop. */
  #findInAnyOrder(record: Readonly<Record<string, unknown>>): T | undefined {
    const names = this.#names;
    let rest = names.length;
    for (const _ in record) rest--;
    if (rest !== 0) return undefined;
    let below = this.#root;
    for (let depth = 0; depth < names.length && below !== undefined; depth++)
      below = (below as Branch<T>).get(record[names[depth]!]);
    return below as T | undefined;
  }
}

function prune<T>(branch: Branch<T>, values: readonly string[], depth: number): void {
  const value = values[depth]!;
  if (depth < values.length - 1) {
    const child = branch.get(value) as Branch<T> | undefined;
    if (child === undefined) return;
    prune(child, values, depth + 1);
    if (child.size > 0) return;
  }
  branch.delete(value);
}
