/**
 * Label values → what belongs to them.
 *
 * A tree of maps, one level for each label: no two sets of values can ever meet in one key, and a
 * look-up hashes nothing that V8 hasn't hashed before.
 */

/** Items are at the leaves alone, as deep as there are names. */
interface Node<T> {
  children: Map<string, Node<T>> | undefined;
  item: T | undefined;
}

export class LabelTree<T> {
  readonly #names: readonly string[];
  readonly #root: Node<T> = { children: undefined, item: undefined };

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  /** The item of these labels, numbers being what `String` makes of them; whatever is wrong with the labels makes it `undefined`. */
  find(labels: object): T | undefined {
    const names = this.#names;
    const record = labels as Readonly<Record<string, unknown>>;
    let node: Node<T> | undefined = this.#root;
    let index = 0;
    for (const name in record) {
      if (name !== names[index++]) return this.#findInAnyOrder(record);
      node = childOf(node, record[name]);
      if (node === undefined) return undefined;
    }
    return node.item;
  }

  /** The item of these values, in the order of the names. */
  get(values: readonly string[]): T | undefined {
    let node: Node<T> | undefined = this.#root;
    for (const value of values) node = node?.children?.get(value);
    return node?.item;
  }

  set(values: readonly string[], item: T): void {
    let node = this.#root;
    for (const value of values) {
      node.children ??= new Map();
      let child = node.children.get(value);
      if (child === undefined) node.children.set(value, (child = { children: undefined, item: undefined }));
      node = child;
    }
    node.item = item;
  }

  /** Takes an item out, and every map that was there for it alone. */
  delete(values: readonly string[]): void {
    prune(this.#root, values, 0);
  }

  clear(): void {
    this.#root.children = undefined;
    this.#root.item = undefined;
  }

  /** Slower than taking the labels as they come: these property names aren't known to the loop. */
  #findInAnyOrder(record: Readonly<Record<string, unknown>>): T | undefined {
    const names = this.#names;
    let rest = names.length;
    for (const _ in record) rest--;
    if (rest !== 0) return undefined;
    let node: Node<T> | undefined = this.#root;
    for (let index = 0; index < names.length; index++) {
      node = childOf(node, record[names[index]!]);
      if (node === undefined) return undefined;
    }
    return node.item;
  }
}

/** What is neither a string nor a number is no key of any map. */
function childOf<T>(node: Node<T>, value: unknown): Node<T> | undefined {
  return node.children?.get(typeof value === 'number' ? String(value) : (value as string));
}

function prune<T>(node: Node<T>, values: readonly string[], depth: number): void {
  const value = values[depth];
  if (value === undefined) {
    node.item = undefined;
    return;
  }
  const child = node.children?.get(value);
  if (child === undefined) return;
  prune(child, values, depth + 1);
  if (child.item === undefined && (child.children?.size ?? 0) === 0) node.children?.delete(value);
}
