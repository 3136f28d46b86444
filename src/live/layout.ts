/**
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
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: ReadonlyMap<string, { readonly x: number; readonly y: number; readonly width: number }>;
  readonly edges: ReadonlyMap<string, Drawn>;
}

/** An edge: its line, the point where its arrow ends, and the middle of its label. */
export interface Drawn {
  readonly path: string;
  readonly tip: Point;
  readonly label: Point;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** A place in a column: of a service, or of an edge that passes by. */
interface Cell {
  readonly name: string | null;
  readonly before: Cell[];
  readonly after: Cell[];
  y: number;
}

/** An edge before its label has a place. */
interface Route {
  readonly path: string;
  readonly tip: Point;
  readonly places: readonly Point[];
}

/**
 * Places services and edges.
 *
 * @param names in order of appearance, the asked service first
 * @param widthOf how wide a service is drawn
 */
export function layOut(names: readonly string[], links: readonly Link[], widthOf: (name: string) => number): Layout {
  const back = findBackEdges(names, links);
  const forward = links.filter(({ key }) => !back.has(key));
  const layers = findLayers(names, forward);
  const columns: Cell[][] = [];
  const cells = new Map<string, Cell>();
  const put = (layer: number, name: string | null): Cell => {
    const cell: Cell = { name, before: [], after: [], y: 0 };
    (columns[layer] ??= []).push(cell);
    return cell;
  };
  for (const name of names) cells.set(name, put(layers.get(name) ?? 0, name));
  const chains = new Map<string, Cell[]>();
  for (const { key, from, to } of forward) {
    const chain = [cells.get(from) as Cell];
    for (let layer = (layers.get(from) ?? 0) + 1; layer < (layers.get(to) ?? 0); layer += 1)
      chain.push(put(layer, null));
    chain.push(cells.get(to) as Cell);
    chain.slice(1).forEach((cell, index) => {
      cell.before.push(chain[index] as Cell);
      chain[index]?.after.push(cell);
    });
    chains.set(key, chain);
  }
  arrange(columns);

  const gap = 104;
  const lefts = new Map<Cell, { x: number; width: number }>();
  const nodes = new Map<string, { x: number; y: number; width: number }>();
  let x = back.size > 0 ? 40 : 2;
  for (const column of columns) {
    const width = Math.max(...column.map(({ name }) => (name === null ? 0 : widthOf(name))));
    for (const cell of column) {
      lefts.set(cell, { x, width: cell.name === null ? width : widthOf(cell.name) });
      if (cell.name !== null) nodes.set(cell.name, { x, y: cell.y, width: widthOf(cell.name) });
    }
    x += width + gap;
  }
  const bottom = Math.max(...columns.flat().map(({ y }) => y)) + 20;
  const edges = new Map<string, Drawn>();
  const labels: Point[] = [];
  const settle = (key: string, { path, tip, places }: Route): void => {
    // The first place that is clear of all labels before it.
    const label = places.find(({ x, y }) =>
      labels.every((other) => Math.abs(other.x - x) > 62 || Math.abs(other.y - y) > 17),
    );
    labels.push(label ?? (places[0] as Point));
    edges.set(key, { path, tip, label: label ?? (places[0] as Point) });
  };
  for (const [key, chain] of chains) settle(key, drawForward(chain, lefts));
  let lane = 0;
  for (const { key, from, to } of links) {
    const source = nodes.get(from);
    const target = nodes.get(to);
    if (!back.has(key) || source === undefined || target === undefined) continue;
    settle(key, drawBack(source, target, bottom + 14 + lane * 20, 10 + (lane % 4) * 6));
    lane += 1;
  }
  return { width: x - gap + (back.size > 0 ? 40 : 2), height: bottom + (lane > 0 ? 12 + lane * 20 : 0), nodes, edges };
}

/** The edges that lead to a service on the way to them, found depth first. */
export function findBackEdges(names: readonly string[], links: readonly Link[]): Set<string> {
  const back = new Set<string>();
  const state = new Map<string, 'open' | 'done'>();
  const visit = (name: string): void => {
    state.set(name, 'open');
    for (const { key, from, to } of links) {
      if (from !== name) continue;
      if (state.get(to) === 'open') back.add(key);
      else if (!state.has(to)) visit(to);
    }
    state.set(name, 'done');
  };
  for (const name of names) if (!state.has(name)) visit(name);
  return back;
}

/** How many edges the longest way to each service has. */
export function findLayers(names: readonly string[], forward: readonly Link[]): Map<string, number> {
  const layers = new Map<string, number>();
  const layerOf = (name: string): number => {
    const known = layers.get(name);
    if (known !== undefined) return known;
    const layer = Math.max(0, ...forward.filter(({ to }) => to === name).map(({ from }) => layerOf(from) + 1));
    layers.set(name, layer);
    return layer;
  };
  for (const name of names) layerOf(name);
  return layers;
}

/** Orders each column by what its cells are connected to, and moves them towards it. */
export function arrange(columns: readonly Cell[][]): void {
  const room = ({ name }: Cell): number => (name === null ? 18 : 46);
  const stack = (column: readonly Cell[], wanted: readonly number[]): void => {
    let floor = -Infinity;
    column.forEach((cell, index) => {
      const half = room(cell) / 2;
      cell.y = Math.max(wanted[index] ?? 0, floor + half);
      floor = cell.y + half;
    });
    const drift = column.reduce((sum, { y }, index) => sum + y - (wanted[index] ?? 0), 0) / column.length;
    for (const cell of column) cell.y -= drift;
  };
  const mean = (cells: readonly Cell[], otherwise: number): number =>
    cells.length === 0 ? otherwise : cells.reduce((sum, { y }) => sum + y, 0) / cells.length;
  for (const column of columns)
    stack(
      column,
      column.map(() => 0),
    );
  for (let sweep = 0; sweep < 8; sweep += 1) {
    const forth = sweep % 2 === 0;
    for (const column of forth ? columns : [...columns].reverse()) {
      const wanted = new Map(column.map((cell) => [cell, mean(forth ? cell.before : cell.after, cell.y)]));
      column.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
      stack(
        column,
        column.map((cell) => wanted.get(cell) ?? 0),
      );
    }
  }
  const top = Math.min(...columns.flat().map(({ y }) => y));
  for (const cell of columns.flat()) cell.y = Math.round(cell.y - top + 22);
}

/** From cell to cell; a label may stand anywhere along the last stretch. */
export function drawForward(chain: readonly Cell[], lefts: ReadonlyMap<Cell, { x: number; width: number }>): Route {
  let path = '';
  let end = { x: 0, y: 0 };
  let tip = end;
  let places: Point[] = [];
  chain.forEach((cell, index) => {
    const { x, width } = lefts.get(cell) ?? { x: 0, width: 0 };
    tip = { x, y: cell.y };
    if (index === 0) path = `M${x + width} ${cell.y}`;
    else {
      const half = (x - end.x) / 2;
      const { x: startX, y: startY } = end;
      path += `C${startX + half} ${startY} ${x - half} ${cell.y} ${x} ${cell.y}`;
      // Where edges fan out, they are farthest from each other at their ends.
      const shares = (chain[0]?.after.length ?? 0) > cell.before.length ? [0.7, 0.5, 0.3, 0.85] : [0.5, 0.3, 0.7, 0.15];
      places = shares.map((t) => ({
        x: startX + (x - startX) * (1.5 * t * (1 - t) + t ** 3),
        y: startY + (cell.y - startY) * t * t * (3 - 2 * t),
      }));
      if (index < chain.length - 1) path += `H${x + width}`;
    }
    end = { x: x + width, y: cell.y };
  });
  return { path, tip, places };
}

/** Out at the right side, down to a lane of its own, back, up, and in at the left side. */
export function drawBack(source: Point & { width: number }, target: Point, lane: number, out: number): Route {
  const right = source.x + source.width;
  const left = target.x - out - 8;
  const path =
    `M${right} ${source.y}h${out}q8 0 8 8V${lane - 8}q0 8 -8 8H${left + 8}` +
    `q-8 0 -8 -8V${target.y + 8}q0 -8 8 -8H${target.x}`;
  const places = [0.5, 0.35, 0.65].map((t) => ({ x: left + t * (right - left), y: lane }));
  return { path, tip: { x: target.x, y: target.y }, places };
}
