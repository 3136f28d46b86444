/*
 * `postern ping`: the mesh below a service, drawn as a tree, or as a graph in the languages of mermaid and Graphviz, in
 * which a service is one node however often it was asked.
 */

import type { PingEntry } from '../monitor/ping-document.js';
import { choice, defineCommand, flag, UsageError, whole, type Command } from './command.js';
import { askMesh, DEFAULT_DEPTH, edgesBelow, parseServiceUrl, servicesBelow, type PingEdge } from './mesh.js';
import { paint, toJson, toVisible } from './output.js';

const usage = `Usage: postern ping URL [--depth N] [--format FORMAT] [--json] [--timeout MS]

Asks a service for the services that it is connected to, and draws them with
status and time. Exits with 1 if one of them did not answer 200.

  URL                http://host:port/<service>/, or the URL of its ping
                     endpoint
  --depth N          how many levels to go down, from 0 to 100; default: 3
  --format FORMAT    tree, json, mermaid or dot; default: tree
  --json             the same as --format json
  --timeout MS       ms that a level may take; default: 2000
`;

const FORMATS = ['tree', 'json', 'mermaid', 'dot'] as const;
/** Each draws the asked service and everything below it; ends in a newline. */
const DRAWINGS: Readonly<Record<(typeof FORMATS)[number], (service: string, root: PingEntry) => string>> = {
  tree: drawTree,
  json: (_service, { response }) => toJson(response),
  mermaid: drawMermaid,
  dot: drawDot,
};

const OPTIONS = { depth: whole(0, 100), format: choice(FORMATS), json: flag, timeout: whole(1, 600_000) };

export const ping: Command = defineCommand(usage, 'URL', OPTIONS, async (values, url) => {
  const { depth = DEFAULT_DEPTH, json, format = json ? 'json' : 'tree', timeout = 2000 } = values;
  const asked = parseServiceUrl(url);
  if (json && format !== 'json') throw new UsageError(`--json and --format ${format} are two formats; give one`);
  const root = await askMesh(asked, depth, timeout);
  const entries = [root, ...edgesBelow(asked.service, root).map(({ entry }) => entry)];
  const finding = entries.some((entry) => entry.status_code !== 200);
  return { text: DRAWINGS[format](asked.service, root), finding };
});

/**
 * A line for each service, below the one that asked it, with its status, its time and what went wrong.
 *
 * @param first text before the service's line; `rest` is the text before the lines below it
 */
function drawTree(service: string, entry: PingEntry, first = '', rest = ''): string {
  const { status_code: status, request_time: time, response } = entry;
  const reason = 'description' in response ? `  ${toVisible(response.description)}` : '';
  const below = servicesBelow(response);
  const lines = below.map(([name, each], index) => {
    const last = index === below.length - 1;
    return drawTree(name, each, `${rest}${last ? '└─ ' : '├─ '}`, `${rest}${last ? '   ' : '│  '}`);
  });
  return `${first}${toVisible(service)}  ${paint(status === 200 ? 'green' : 'red', String(status))}  ${toVisible(time)}${reason}\n${lines.join('')}`;
}

/** A mermaid flowchart (https://mermaid.js.org/syntax/flowchart.html); what did not answer 200 has a dotted arrow. */
function drawMermaid(service: string, root: PingEntry): string {
  const { nodes, edges } = toGraph(service, root);
  const ids = new Map([...nodes].map(([name], index) => [name, `n${index}`]));
  return [
    'flowchart TD',
    ...[...nodes].map(([name, label]) => `  ${ids.get(name)}["${encode(label, '#')}"]`),
    ...edges.map(
      ({ from, to, entry }) =>
        `  ${ids.get(from)} ${entry.status_code === 200 ? '-->' : '-.->'}|"${encode(answerOf(entry), '#')}"| ${ids.get(to)}`,
    ),
    '',
  ].join('\n');
}

/** A digraph (https://graphviz.org/doc/info/lang.html); what did not answer 200 is red. */
function drawDot(service: string, root: PingEntry): string {
  const { nodes, edges } = toGraph(service, root);
  const quote = (text: string): string => `"${encode(text, '&#')}"`;
  // Graphviz decodes entities first, and takes a backslash that comes out for the begin of an escape: so it is doubled.
  const label = (text: string): string => `[label=${quote(text).replaceAll('&#92;', '&#92;&#92;')}`;
  return [
    'digraph mesh {',
    ...[...nodes].map(([name, text]) => `  ${quote(name)} ${label(text)}];`),
    ...edges.map(
      ({ from, to, entry }) =>
        `  ${quote(from)} -> ${quote(to)} ${label(answerOf(entry))}${entry.status_code === 200 ? '' : ', color=red, fontcolor=red'}];`,
    ),
    '}',
    '',
  ].join('\n');
}

/** Services with their labels, and edges. Edges that differ only in their time are one; the first time counts. */
function toGraph(service: string, root: PingEntry): { nodes: Map<string, string>; edges: PingEdge[] } {
  const nodes = new Map([[service, `${service} (${answerOf(root)})`]]);
  const edges = new Map<string, PingEdge>();
  for (const edge of edgesBelow(service, root)) {
    const { from, to, entry } = edge;
    if (!nodes.has(to)) nodes.set(to, to);
    const key = JSON.stringify([from, to, entry.status_code]);
    if (!edges.has(key)) edges.set(key, edge);
  }
  return { nodes, edges: [...edges.values()] };
}

function answerOf({ status_code: status, request_time: time }: PingEntry): string {
  return `${status}, ${time}`;
}

/**
 * Text between double quotes; ASCII that could end them, or mean something inside of them, becomes `&#34;` or
 * mermaid's `#34;`.
 */
function encode(text: string, escape: '&#' | '#'): string {
  const entity = (char: string): string => `${escape}${char.charCodeAt(0)};`;
  // An empty label is an error in mermaid.
  return toVisible(text === '' ? '?' : text).replace(/(?![\w .,()~-])[\x00-\x7f]/g, entity);
}
