/*
 * The drawn graph: laid out anew when an edge comes or goes, else only marked. It says nothing that the table doesn't.
 *
 * Runs in the page: functions here may use only functions of the modules that page.ts lists.
 */

import { setState, setText, svgElement, tellOf, type PageElement, type Pointing } from './element.js';
import { layOut } from './layout.js';
import { describeTime } from './table.js';
import { stateOf, type Track } from './track.js';

export interface Graph {
  /** Shows services and edges; returns whether it is better drawn wide than tall. */
  show(tracks: readonly Track[]): boolean;
  /** Marks edges, with a label, and what they lead to. */
  mark(keys: ReadonlySet<string>): void;
}

export function createGraph(svg: PageElement, pointing: Pointing): Graph {
  let shape = '';
  let wide = true;
  let nodes = new Map<string, PageElement>();
  /** A line, and a label above all lines and services. */
  const edges = new Map<string, readonly [line: PageElement, label: PageElement]>();

  const draw = (tracks: readonly Track[]): void => {
    const names = [...new Set(tracks.flatMap(({ edge: { from, to } }) => (from === null ? [to] : [from, to])))];
    const links = tracks.flatMap(({ key, edge: { from, to } }) => (from === null ? [] : [{ key, from, to }]));
    nodes = new Map(names.map((name) => [name, createNode(name)]));
    // Only in the page does a text have a length.
    svg.replaceChildren(...nodes.values());
    const widthOf = (name: string): number =>
      Math.ceil(nodes.get(name)!.lastElementChild!.getComputedTextLength()) + 28;
    const layout = layOut(names, links, widthOf);
    wide = layout.width > 480 && layout.width > 1.2 * layout.height;
    svg.setAttribute('viewBox', `0 0 ${layout.width} ${layout.height}`);
    svg.style.setProperty('min-width', `${Math.round(layout.width * 0.85)}px`);
    svg.style.setProperty('max-width', `${Math.round(layout.width * (wide ? 1.45 : 1))}px`);
    for (const [name, { x, y, width }] of layout.nodes) {
      const node = nodes.get(name)!;
      node.setAttribute('transform', `translate(${x} ${y})`);
      node.children[1]!.setAttribute('width', width);
      const own = tracks.filter(({ edge: { from, to } }) => from === name || to === name);
      const keys = own.map(({ key }) => key);
      tellOf(node, keys, pointing);
    }
    edges.clear();
    for (const { key, to } of links) {
      const { path, label } = layout.edges.get(key)!;
      const { x, y } = layout.nodes.get(to)!;
      const line = svgElement(
        'g',
        { class: 'edge' },
        svgElement('path', { class: 'hit', d: path }),
        svgElement('path', { class: 'line', d: path }),
        svgElement('path', { class: 'arrow', d: `M${x - 7} ${y - 4}l7 4l-7 4` }),
      );
      tellOf(line, [key], pointing);
      line.addEventListener('click', () => pointing.choose(key));
      const text = svgElement('text', { x: Math.round(label.x), y: Math.round(label.y) + 5 });
      edges.set(key, [line, svgElement('g', { class: 'edge' }, text)]);
    }
    svg.prepend(...[...edges.values()].map(([line]) => line));
    svg.append(...[...edges.values()].map(([, label]) => label));
  };

  return {
    show(tracks) {
      const now = tracks.map(({ key }) => key).join();
      if (now !== shape) draw(tracks);
      shape = now;
      for (const track of tracks) {
        const { status, ms } = track.edge;
        const parts = edges.get(track.key) ?? [];
        for (const part of parts) setState(part, track);
        const time = track.gone || ms === null ? '' : describeTime(ms);
        if (parts[1]) setText(parts[1].firstElementChild!, stateOf(track) === 'fails' ? String(status) : time);
      }
      for (const [name, node] of nodes) {
        const states = tracks.filter(({ edge, gone }) => edge.to === name && !gone).map(stateOf);
        node.classList.toggle('gone', states.length === 0);
        node.classList.toggle('fails', states.length > 0 && states.every((state) => state === 'fails'));
      }
      return wide;
    },
    mark(keys) {
      for (const [key, parts] of edges) for (const part of parts) part.classList.toggle('pointed', keys.has(key));
    },
  };
}

/** A service, to be put in its place and given its width. */
export function createNode(name: string): PageElement {
  const short = name.length > 24 ? `${name.slice(0, 23)}…` : name === '' ? '?' : name;
  return svgElement(
    'g',
    { class: 'node' },
    svgElement('title', {}, name),
    svgElement('rect', { y: -17, height: 34, rx: 8 }),
    svgElement('text', { x: 14, y: 5 }, short),
  );
}
