/*
 * Lays a mesh out as a graph: in layers by longest path, one column a layer, with edges that skip a layer kept clear of
 * the services in it, and edges that lead back below everything.
 */

/** An edge to draw. */
export interface Link {
  readonly key: string;
  readonly from: string;
  readonly to: string;
}

/** Where things are, in pixels. */
interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: ReadonlyMap<string, Cell>;
  readonly edges: ReadonlyMap<string, Curve>;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** A place in a column, by the middle of its left side: of a service, or of a passing edge, as wide as the column. */
interface Cell {
  readonly before: Cell[];
  x: number;
  y: number;
  width: number;
}

/** The curve of an edge, and the middle of its label. */
interface Curve {
  readonly path: string;
  readonly label: Point;
}

/**
 * Places services and edges.
 *
 * @param names in order of appearance, the asked service first
 * @param links between those
 * @param widthOf how wide a service is drawn, more than 0
 */
export function layOut(names: readonly string[], links: readonly Link[], widthOf: (name: string) => number): Layout {
  const layers = findLayers(names, links);
  const isBack = ({ from, to }: Link): boolean => layers.get(from)! >= layers.get(to)!;
  const columns: Cell[][] = [];
  const put = (layer: number, width: number): Cell => {
    const cell: Cell = { before: [], x: 0, y: 0, width };
    (columns[layer] ??= []).push(cell);
    return cell;
  };
  const nodes = new Map(names.map((name) => [name, put(layers.get(name)!, widthOf(name))]));
  const chainOf = ({ from, to }: Link): Cell[] => {
    const chain = [nodes.get(from)!];
    for (let layer = layers.get(from)! + 1; layer < layers.get(to)!; layer += 1) chain.push(put(layer, 0));
    chain.push(nodes.get(to)!);
    chain.slice(1).forEach((cell, index) => cell.before.push(chain[index]!));
    return chain;
  };
  const back = links.filter(isBack);
  const chains = new Map(links.filter((link) => !isBack(link)).map((link) => [link.key, chainOf(link)]));
  arrange(columns);

  const margin = back.length > 0 ? 40 : 2;
  const gap = 104;
  let x = margin;
  for (const column of columns) {
    const width = Math.max(...column.map((cell) => cell.width));
    for (const cell of column) {
      cell.x = x;
      cell.width ||= width;
    }
    x += width + gap;
  }
  const bottom = Math.max(...columns.flat().map(({ y }) => y)) + 20;
  const edges = new Map([...chains].map(([key, chain]) => [key, drawForward(chain)]));
  back.forEach(({ key, from, to }, lane) => {
    edges.set(key, drawBack(nodes.get(from)!, nodes.get(to)!, bottom + 14 + 20 * lane, 10 + (lane % 4) * 6));
  });
  const height = bottom + (back.length > 0 ? 20 * back.length + 12 : 0);
  return { width: x - gap + margin, height, nodes, edges };
}

/**
 * How many edges the longest way to each service has. Edges that lead to a service on the way to them are not counted:
 * only these lead to no higher layer.
 */
function findLayers(names: readonly string[], links: readonly Link[]): Map<string, number> {
  const layers = new Map<string, number>();
  const way = new Set<string>();
  /** The links of a service come after all links to it. */
  const forward: Link[] = [];
  const visit = (name: string): void => {
    way.add(name);
    const own = links.filter(({ from, to }) => from === name && !way.has(to));
    for (const { to } of own) if (!layers.has(to)) visit(to);
    way.delete(name);
    forward.unshift(...own);
    layers.set(name, 0);
  };
  for (const name of names) if (!layers.has(name)) visit(name);
  for (const { from, to } of forward) layers.set(to, Math.max(layers.get(to)!, layers.get(from)! + 1));
  return layers;
}

/** Stacks each column around the same middle, in the order of the services that its edges come from. */
function arrange(columns: readonly Cell[][]): void {
  const originOf = ({ before }: Cell): number => before.reduce((sum, { y }) => sum + y, 0) / (before.length || 1);
  const spaceOf = ({ width }: Cell): number => (width === 0 ? 18 : 46);
  for (const column of columns) {
    column.sort((a, b) => originOf(a) - originOf(b));
    let top = column.reduce((sum, cell) => sum + spaceOf(cell), 0) / -2;
    for (const cell of column) {
      cell.y = top + spaceOf(cell) / 2;
      top += spaceOf(cell);
    }
  }
  const top = Math.min(...columns.flat().map(({ y }) => y));
  for (const cell of columns.flat()) cell.y += 22 - top;
}

/** From cell to cell, with the label on the last stretch. */
function drawForward(chain: readonly Cell[]): Curve {
  let path = '';
  let label = { x: 0, y: 0 };
  chain.slice(1).forEach(({ x, y, before }, index) => {
    const start = chain[index]!;
    const startX = start.x + start.width;
    const half = (x - startX) / 2;
    path += index === 0 ? `M${startX} ${start.y}` : `H${startX}`;
    path += `C${startX + half} ${start.y} ${x - half} ${y} ${x} ${y}`;
    // Edges that fan out are farthest from each other at their ends, edges that meet at their starts.
    const t = before.length > 1 ? 0.35 : 0.65;
    label = {
      x: startX + (x - startX) * (1.5 * t * (1 - t) + t ** 3),
      y: start.y + (y - start.y) * t * t * (3 - 2 * t),
    };
  });
  return { path, label };
}

/** Out at the right side, down to a lane of its own, back, up, and in at the left side. */
function drawBack(source: Cell, target: Cell, lane: number, out: number): Curve {
  const right = source.x + source.width;
  const left = target.x - out - 8;
  const path =
    `M${right} ${source.y}h${out}q8 0 8 8V${lane - 8}q0 8 -8 8H${left + 8}` +
    `q-8 0 -8 -8V${target.y + 8}q0 -8 8 -8H${target.x}`;
  return { path, label: { x: (left + right) / 2, y: lane } };
}
