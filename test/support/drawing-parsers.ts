/** Reads drawn graphs back: mermaid with a strict grammar of its own, dot with the real program. */

import { spawnSync } from 'node:child_process';

/** A graph: labels of nodes, and edges between labels. */
export interface Graph {
  readonly nodes: readonly string[];
  readonly edges: readonly {
    readonly from: string;
    readonly to: string;
    readonly label: string;
    readonly failed: boolean;
  }[];
}

const TEXT = String.raw`"((?:[\w .,()~-]|[^\x00-\x9f]|#\d+;)+)"`;
const NODE = new RegExp(String.raw`^  (n\d+)\[${TEXT}\]$`);
const EDGE = new RegExp(String.raw`^  (n\d+) (-->|-\.->)\|${TEXT}\| (n\d+)$`);

/**
 * Parses the part of mermaid's flowcharts that is drawn: a header, nodes, then edges between them, a line each.
 *
 * @throws {Error} for any other line, for a node twice, and for an edge of a node that is not there
 */
export function parseMermaid(text: string): Graph {
  const [header, ...lines] = text.split('\n');
  if (header !== 'flowchart TD' || lines.pop() !== '') throw new Error(`no flowchart: ${text}`);
  const labels = new Map<string, string>();
  const edges: Graph['edges'][number][] = [];
  const labelOf = (id: string): string => {
    const label = labels.get(id);
    if (label === undefined) throw new Error(`${id} is not there`);
    return label;
  };
  for (const line of lines) {
    const [, id, label] = NODE.exec(line) ?? [];
    const [, from, arrow, answer, to] = EDGE.exec(line) ?? [];
    if (id !== undefined && label !== undefined && edges.length === 0 && !labels.has(id))
      labels.set(id, decode(label, '#'));
    else if (from !== undefined && answer !== undefined && to !== undefined)
      edges.push({ from: labelOf(from), to: labelOf(to), label: decode(answer, '#'), failed: arrow === '-.->' });
    else throw new Error(`neither node nor edge: ${JSON.stringify(line)}`);
  }
  return { nodes: [...labels.values()], edges };
}

/**
 * Has Graphviz parse and lay out a graph.
 *
 * @throws {Error} when it is not installed, and for anything that it complains about
 */
export function parseDot(text: string): Graph {
  const { objects = [], edges = [] } = JSON.parse(runDot('-Tjson0', text)) as DotJson;
  const labels = new Map(objects.map(({ _gvid, label }) => [_gvid, unescape(label)]));
  const labelOf = (id: number): string => labels.get(id) ?? '';
  return {
    nodes: [...labels.values()],
    edges: edges.map(({ tail, head, label, color }) => ({
      from: labelOf(tail),
      to: labelOf(head),
      label: unescape(label),
      failed: color === 'red',
    })),
  };
}

/** The texts that a person sees in what Graphviz draws. */
export function drawnTexts(text: string): string[] {
  const named: Readonly<Record<string, string>> = { quot: '"', lt: '<', gt: '>', amp: '&' };
  const texts = [...runDot('-Tsvg', text).matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, content = '']) => content);
  return texts.map((content) =>
    decode(content, '&#')
      .replace(/&(\w+);/g, (entity, name: string) => named[name] ?? entity)
      .replaceAll('\u00a0', ' '),
  );
}

interface DotJson {
  readonly objects?: readonly { readonly _gvid: number; readonly label: string }[];
  readonly edges?: readonly {
    readonly tail: number;
    readonly head: number;
    readonly label: string;
    readonly color?: string;
  }[];
}

function runDot(format: string, text: string): string {
  const { error, status, stdout, stderr } = spawnSync('dot', [format], { input: text, encoding: 'utf8' });
  if (error !== undefined)
    throw new Error(`dot can't be run; these tests need the Debian package graphviz: ${error.message}`);
  if (status !== 0 || stderr !== '') throw new Error(`dot ended with ${String(status)}: ${stderr}\n${text}`);
  return stdout;
}

/** A label of dot as it is drawn: entities are decoded before escapes. */
function unescape(label: string): string {
  return decode(label, '&#').replaceAll('\\\\', '\\');
}

function decode(text: string, escape: '#' | '&#'): string {
  return text.replace(new RegExp(`${escape}(\\d+);`, 'g'), (_, code: string) => String.fromCodePoint(Number(code)));
}
