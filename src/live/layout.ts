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
  readonly edges: ReadonlyMap<string, { readonly path: string; readonly label: Point }>;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** A place in a column, by the middle of its left side: of a service, or of a passing edge, as wide as the column. */
interface Cell {
  readonly before: Cell[];
  readonly after: Cell[];
  x: number;
  y: number;
  width: number;
}

/** The curve of an edge, with the places where its label may be, the best one first. */
interface Curve {
  readonly path: string;
  readonly places: readonly Point[];
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
    const cell: Cell = { before: [], after: [], x: 0, y: 0, width };
    (columns[layer] ??= []).push(cell);
    return cell;
  };
  const nodes = new Map(names.map((name) => [name, put(layers.get(name)!, widthOf(name))]));
  const chainOf = ({ from, to }: Link): Cell[] => {
    const chain = [nodes.get(from)!];
    for (let layer = layers.get(from)! + 1; layer < layers.get(to)!; layer += 1) chain.push(put(layer, 0));
    chain.push(nodes.get(to)!);
    chain.slice(1).forEach((cell, index) => {
      cell.before.push(chain[index]!);
      chain[index]!.after.push(cell);
    });
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
  const curves = [...chains].map(([key, chain]) => ({ key, ...drawForward(chain) }));
  back.forEach(({ key, from, to }, lane) => {
    curves.push({ key, ...drawBack(nodes.get(from)!, nodes.get(to)!, bottom + 14 + 20 * lane, 10 + (lane % 4) * 6) });
  });
  const edges = new Map<string, { path: string; label: Point }>();
  for (const { key, path, places } of curves) {
    const isClear = ({ x, y }: Point): boolean =>
      [...edges.values()].every(({ label }) => Math.abs(label.x - x) > 62 || Math.abs(label.y - y) > 17);
    edges.set(key, { path, label: places.find(isClear) ?? places[0]! });
  }
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

/** Orders each column by what its cells are connected to, and moves them towards it. */
function arrange(columns: readonly Cell[][]): void {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  for (let sweep = 0; sweep < 8; sweep += 1) {
    for (const column of sweep % 2 === 0 ? columns : [...columns].reverse()) {
      const wanted = new Map<Cell, number>();
      for (const cell of column) {
        const near = sweep % 2 === 0 ? cell.before : cell.after;
        wanted.set(cell, near.length === 0 ? cell.y : mean(near.map(({ y }) => y)));
      }
      column.sort((a, b) => wanted.get(a)! - wanted.get(b)!);
      let floor = -Infinity;
      for (const cell of column) {
        const half = cell.width === 0 ? 9 : 23;
        cell.y = Math.max(wanted.get(cell)!, floor + half);
        floor = cell.y + half;
      }
      const drift = mean(column.map((cell) => cell.y - wanted.get(cell)!));
      for (const cell of column) cell.y -= drift;
    }
  }
  const top = Math.min(...columns.flat().map(({ y }) => y));
  for (const cell of columns.flat()) cell.y = Math.round(cell.y - top + 22);
}

/** From cell to cell; a label may be anywhere along the last stretch. */
function drawForward(chain: readonly Cell[]): Curve {
  let path = '';
  let places: Point[] = [];
  chain.slice(1).forEach(({ x, y, before }, index) => {
    const start = chain[index]!;
    const startX = start.x + start.width;
    const half = (x - startX) / 2;
    path += index === 0 ? `M${startX} ${start.y}` : `H${startX}`;
    path += `C${startX + half} ${start.y} ${x - half} ${y} ${x} ${y}`;
    // Where edges fan out, they are farthest from each other at their ends.
    const shares = chain[0]!.after.length > before.length ? [0.7, 0.5, 0.3, 0.85] : [0.5, 0.3, 0.7, 0.15];
    places = shares.map((t) => ({
      x: startX + (x - startX) * (1.5 * t * (1 - t) + t ** 3),
      y: start.y + (y - start.y) * t * t * (3 - 2 * t),
    }));
  });
  return { path, places };
}

/** Out at the right side, down to a lane of its own, back, up, and in at the left side. */
function drawBack(source: Cell, target: Cell, lane: number, out: number): Curve {
  const right = source.x + source.width;
  const left = target.x - out - 8;
  const path =
    `M${right} ${source.y}h${out}q8 0 8 8V${lane - 8}q0 8 -8 8H${left + 8}` +
    `q-8 0 -8 -8V${target.y + 8}q0 -8 8 -8H${target.x}`;
  return { path, places: [0.5, 0.35, 0.65].map((t) => ({ x: left + t * (right - left), y: lane })) };
}
