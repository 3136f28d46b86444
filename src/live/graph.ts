/**
 * The drawn graph: laid out anew when an edge comes or goes, else only marked. It says nothing that the table doesn't.
 *
 * Runs in the page: functions here use those of the modules that page.ts lists, and nothing else.
 */

import type { PageDocument, PageElement } from './document.js';
import { setClass, setText, svgElement } from './element.js';
import { layOut } from './layout.js';
import { describeTime } from './table.js';
import { isSlow, type Track } from './track.js';

/** The graph, in the page. */
export interface Graph {
  /** Shows services and edges; returns whether it is better drawn wide than tall. */
  show(tracks: readonly Track[]): boolean;
  /** Marks edges, with a label, and what they lead to. */
  mark(keys: ReadonlySet<string>): void;
}

/** @param point is told which edges are pointed at */
export function createGraph(
  document: PageDocument,
  svg: PageElement,
  point: { over(keys: readonly string[]): void; choose(key: string): void },
): Graph {
  let shape = '';
  let wide = true;
  let edges = new Map<string, { group: PageElement; above: PageElement; label: PageElement }>();
  let nodes = new Map<string, PageElement>();

  const draw = (tracks: readonly Track[]): void => {
    const names = [...new Set(tracks.flatMap(({ edge: { from, to } }) => (from === null ? [to] : [from, to])))];
    const links = tracks.flatMap(({ key, edge: { from, to } }) => (from === null ? [] : [{ key, from, to }]));
    const widths = measure(document, svg, names);
    const layout = layOut(names, links, (name) => widths.get(name) ?? 0);
    wide = layout.width > 480 && layout.width > 1.2 * layout.height;
    svg.setAttribute('viewBox', `0 0 ${layout.width} ${layout.height}`);
    svg.style.setProperty('min-width', `${Math.round(layout.width * 0.85)}px`);
    svg.style.setProperty('max-width', `${Math.round(layout.width * (wide ? 1.45 : 1))}px`);
    edges = new Map();
    nodes = new Map();
    for (const [key, { path, tip, label: at }] of layout.edges) {
      const label = svgElement(document, 'text', { x: String(Math.round(at.x)), y: String(Math.round(at.y) + 5) });
      const hit = svgElement(document, 'path', { class: 'hit', d: path });
      const line = svgElement(document, 'path', { class: 'line', d: path });
      const arrow = svgElement(document, 'path', { class: 'arrow', d: `M${tip.x - 7} ${tip.y - 4}l7 4l-7 4` });
      const group = svgElement(document, 'g', { class: 'edge' }, hit, line, arrow);
      const above = svgElement(document, 'g', { class: 'edge' }, label);
      group.addEventListener('mouseenter', () => point.over([key]));
      group.addEventListener('mouseleave', () => point.over([]));
      group.addEventListener('click', () => point.choose(key));
      edges.set(key, { group, above, label });
    }
    for (const [name, { x, y, width }] of layout.nodes) {
      const box = { x: String(x), y: String(y - 17), width: String(width), height: '34', rx: '8' };
      const text = svgElement(document, 'text', { x: String(x + 14), y: String(y + 5) }, shorten(name));
      const title = svgElement(document, 'title', {}, name);
      const node = svgElement(document, 'g', { class: 'node' }, title, svgElement(document, 'rect', box), text);
      const own = tracks.filter(({ edge: { from, to } }) => from === name || to === name).map(({ key }) => key);
      node.addEventListener('mouseenter', () => point.over(own));
      node.addEventListener('mouseleave', () => point.over([]));
      nodes.set(name, node);
    }
    const drawn = [...edges.values()];
    svg.replaceChildren(...drawn.map(({ group }) => group), ...nodes.values(), ...drawn.map(({ above }) => above));
  };

  return {
    show(tracks) {
      const now = tracks.map(({ key }) => key).join();
      if (now !== shape) draw(tracks);
      shape = now;
      for (const track of tracks) {
        const { edge: reported, gone } = track;
        const edge = edges.get(track.key);
        const fails = !gone && reported.status !== 200;
        if (edge !== undefined) {
          for (const part of [edge.group, edge.above]) {
            setClass(part, 'fails', fails);
            setClass(part, 'slow', isSlow(track));
            setClass(part, 'gone', gone);
          }
          const time = reported.ms === null ? '' : describeTime(reported.ms);
          setText(edge.label, gone ? '' : fails ? String(reported.status) : time);
        }
      }
      for (const [name, node] of nodes) {
        const seen = tracks.filter(({ edge: { to } }) => to === name);
        const present = seen.filter(({ gone }) => !gone);
        setClass(node, 'gone', present.length === 0);
        setClass(node, 'fails', present.length > 0 && present.every(({ edge: { status } }) => status !== 200));
      }
      return wide;
    },
    mark(keys) {
      for (const [key, { group, above }] of edges)
        for (const part of [group, above]) setClass(part, 'pointed', keys.has(key));
    },
  };
}

/** How wide each service is drawn: its name, and a margin. */
export function measure(document: PageDocument, svg: PageElement, names: readonly string[]): Map<string, number> {
  const texts = names.map((name) => {
    const text = svgElement(document, 'text', {}, shorten(name));
    return { name, text, node: svgElement(document, 'g', { class: 'node' }, text) };
  });
  svg.replaceChildren(...texts.map(({ node }) => node));
  return new Map(texts.map(({ name, text }) => [name, Math.ceil(text.getComputedTextLength?.() ?? 0) + 28]));
}

export function shorten(name: string): string {
  return name.length > 24 ? `${name.slice(0, 23)}…` : name === '' ? '?' : name;
}
