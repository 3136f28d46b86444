/*
 * The drawn graph: laid out anew when an edge comes or goes, else only marked. It says nothing that the table doesn't.
 */

import { byId, copyOf, describeTime, setText, type PageElement } from './element.js';
import { layOut } from './layout.js';
import { stateOf, type Track } from './track.js';

/** Draws services and edges; {@link showGraph} shows how they answer. */
export function drawGraph(tracks: readonly Track[]): void {
  const svg = byId('graph');
  const names = [...new Set(tracks.flatMap(({ edge: { from, to } }) => (from === null ? [to] : [from, to])))];
  const links = tracks.flatMap(({ key, edge: { from, to } }) => (from === null ? [] : [{ key, from, to }]));
  const nodes = new Map(names.map((name) => [name, createNode(name)]));
  // Only in the page does a text have a length.
  svg.replaceChildren(...nodes.values());
  const widthOf = (name: string): number =>
    Math.ceil(nodes.get(name)!.querySelector('text')!.getComputedTextLength()) + 28;
  const { width, height, ...places } = layOut(names, links, widthOf);
  const isWide = width > 480 && width > 1.2 * height;
  byId('page').setAttribute('class', isWide ? 'wide' : 'tall');
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.style.setProperty('min-width', `${Math.round(width * 0.85)}px`);
  svg.style.setProperty('max-width', `${Math.round(width * (isWide ? 1.45 : 1))}px`);
  for (const [name, node] of nodes) {
    const { x, y, width } = places.nodes.get(name)!;
    node.setAttribute('transform', `translate(${x} ${y})`);
    node.querySelector('rect')!.setAttribute('width', width);
  }
  // Labels are above all lines and services.
  for (const { key, to } of links) {
    const { path, label } = places.edges.get(key)!;
    const { x, y } = places.nodes.get(to)!;
    const line = copyOf('line');
    line.dataset.key = key;
    for (const stroke of line.querySelectorAll('.hit, .line')) stroke.setAttribute('d', path);
    line.querySelector('.arrow')!.setAttribute('transform', `translate(${x} ${y})`);
    svg.prepend(line);
    const above = copyOf('label');
    above.dataset.key = key;
    above.querySelector('text')!.setAttribute('x', Math.round(label.x));
    above.querySelector('text')!.setAttribute('y', Math.round(label.y) + 5);
    svg.append(above);
  }
}

/** A service, to be put in its place and given its width. */
function createNode(name: string): PageElement {
  const node = copyOf('node');
  node.dataset.name = name;
  node.querySelector('title')!.textContent = name;
  const short = name.length > 24 ? `${name.slice(0, 23)}…` : name === '' ? '?' : name;
  node.querySelector('text')!.textContent = short;
  return node;
}

/** Shows how services and edges answer. */
export function showGraph(tracks: readonly Track[]): void {
  const svg = byId('graph');
  const byKey = new Map(tracks.map((track) => [track.key, track]));
  for (const label of svg.querySelectorAll('.edge text')) {
    const track = byKey.get(label.closest('.edge')!.dataset.key!)!;
    const { status, ms } = track.edge;
    const time = track.gone || ms === null ? '' : describeTime(ms);
    setText(label, stateOf(track) === 'fails' ? String(status) : time);
  }
  for (const node of svg.querySelectorAll('.node')) {
    const states = tracks.filter(({ edge, gone }) => edge.to === node.dataset.name && !gone).map(stateOf);
    node.classList.toggle('gone', states.length === 0);
    node.classList.toggle('fails', states.length > 0 && states.every((state) => state === 'fails'));
  }
}
