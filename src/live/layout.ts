/*
 * Lays a mesh out as a graph: in layers by longest path, one column a layer, with edges that skip a layer kept clear of
 * the services in it, and edges that lead back below everything.
 *
 * Runs in the page: functions here use each other and nothing else of their module (see page.ts).
 */

/** An edge to draw. */
export interface Link {
  readonly key: string;
  readonly from: string;
  readonly to: string;
}

/** Where things are, in pixels; a service's point is the middle of its left side. */
interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: ReadonlyMap<string, Box>;
  readonly edges: ReadonlyMap<string, { readonly path: string; readonly label: Point }>;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

interface Box extends Point {
  readonly width: number;
}

/** A place in a column: of a service, or of an edge that passes by and is as wide as the column. */
interface Cell extends Box {
  readonly before: Cell[];
  readonly after: Cell[];
  x: number;
  y: number;
  width: number;
}

/** An edge with the places where its label may be, the best one first. */
interface Route {
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
  const { layers, back } = findLayers(names, links);
  const columns: Cell[][] = [];
  const put = (layer: number, width: number): Cell => {
    const cell: Cell = { before: [], after: [], x: 0, y: 0, width };
    (columns[layer] ??= []).push(cell);
    return cell;
  };
  const nodes = new Map(names.map((name) => [name, put(layers.get(name)!, widthOf(name))]));
  const chains = new Map<string, Cell[]>();
  for (const { key, from, to } of links) {
    if (back.has(key)) continue;
    const chain = [nodes.get(from)!];
    for (let layer = layers.get(from)! + 1; layer < layers.get(to)!; layer += 1) chain.push(put(layer, 0));
    chain.push(nodes.get(to)!);
    chain.slice(1).forEach((cell, index) => {
      cell.before.push(chain[index]!);
      chain[index]!.after.push(cell);
    });
    chains.set(key, chain);
  }
  arrange(columns);

  const margin = back.size > 0 ? 40 : 2;
  const gap = 104;
  let right = margin - gap;
  for (const column of columns) {
    const x = right + gap;
    const width = Math.max(...column.map((cell) => cell.width));
    for (const cell of column) {
      cell.x = x;
      cell.width ||= width;
    }
    right = x + width;
  }
  let height = Math.max(...columns.flat().map(({ y }) => y)) + 20;
  const edges = new Map<string, { path: string; label: Point }>();
  const settle = (key: string, { path, places }: Route): void => {
    const others = [...edges.values()];
    const isClear = ({ x, y }: Point): boolean =>
      others.every(({ label }) => Math.abs(label.x - x) > 62 || Math.abs(label.y - y) > 17);
    edges.set(key, { path, label: places.find(isClear) ?? places[0]! });
  };
  for (const [key, chain] of chains) settle(key, drawForward(chain));
  links
    .filter(({ key }) => back.has(key))
    .forEach(({ key, from, to }, lane) => {
      settle(key, drawBack(nodes.get(from)!, nodes.get(to)!, height + 14, 10 + (lane % 4) * 6));
      height += 20;
    });
  return { width: right + margin, height: height + (back.size > 0 ? 12 : 0), nodes, edges };
}

/** How many edges the longest way to each service has, but for edges that lead to a service on the way to them. */
export function findLayers(
  names: readonly string[],
  links: readonly Link[],
): { layers: Map<string, number>; back: Set<string> } {
  const layers = new Map<string, number>();
  const back = new Set<string>();
  const way = new Set<string>();
  const visit = (name: string): void => {
    way.add(name);
    for (const { key, from, to } of links) {
      if (from !== name) continue;
      if (way.has(to)) back.add(key);
      else if (!layers.has(to)) visit(to);
    }
    way.delete(name);
    layers.set(name, 0);
  };
  for (const name of names) if (!layers.has(name)) visit(name);
  // Each service after all services that ask it.
  for (const name of [...layers.keys()].reverse()) {
    for (const { key, from, to } of links) {
      if (from === name && !back.has(key)) layers.set(to, Math.max(layers.get(to)!, layers.get(name)! + 1));
    }
  }
  return { layers, back };
}

/** Orders each column by what its cells are connected to, and moves them towards it. */
export function arrange(columns: readonly Cell[][]): void {
  const mean = (cells: readonly Cell[], valueOf: (cell: Cell) => number): number =>
    cells.reduce((sum, cell) => sum + valueOf(cell), 0) / cells.length;
  for (let sweep = 0; sweep < 8; sweep += 1) {
    for (const column of sweep % 2 === 0 ? columns : [...columns].reverse()) {
      const wanted = new Map<Cell, number>();
      for (const cell of column) {
        const near = sweep % 2 === 0 ? cell.before : cell.after;
        wanted.set(cell, near.length === 0 ? cell.y : mean(near, ({ y }) => y));
      }
      column.sort((a, b) => wanted.get(a)! - wanted.get(b)!);
      let floor = -Infinity;
      for (const cell of column) {
        const half = cell.width === 0 ? 9 : 23;
        cell.y = Math.max(wanted.get(cell)!, floor + half);
        floor = cell.y + half;
      }
      const drift = mean(column, (cell) => cell.y - wanted.get(cell)!);
      for (const cell of column) cell.y -= drift;
    }
  }
  const top = Math.min(...columns.flat().map(({ y }) => y));
  for (const cell of columns.flat()) cell.y = Math.round(cell.y - top + 22);
}

/** From cell to cell; a label may be anywhere along the last stretch. */
export function drawForward(chain: readonly Cell[]): Route {
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
export function drawBack(source: Box, target: Point, lane: number, out: number): Route {
  const right = source.x + source.width;
  const left = target.x - out - 8;
  const path =
    `M${right} ${source.y}h${out}q8 0 8 8V${lane - 8}q0 8 -8 8H${left + 8}` +
    `q-8 0 -8 -8V${target.y + 8}q0 -8 8 -8H${target.x}`;
  return { path, places: [0.5, 0.35, 0.65].map((t) => ({ x: left + t * (right - left), y: lane })) };
}
