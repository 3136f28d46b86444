/** Tables of the figures in `bench/figures.json`, which `npm run bench -- --write` measures. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './markdown.js';

/** One number for each run, by scenario, contender and figure. */
type Measured = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>>>;

interface Row {
  readonly name: string;
  readonly scenario: 'warm' | 'cold' | 'start' | 'size';
  readonly figure: string;
  readonly digits: number;
  /** What one unit of the file is in the table; default: 1. */
  readonly unit?: number;
}

interface Figures {
  readonly date: string;
  readonly node: string;
  readonly machine: string;
  readonly commit: string;
}

const SUMMARY: readonly Row[] = [
  { name: 'CPU time of a warm request, × bare', scenario: 'warm', figure: 'cpuRatios', digits: 2 },
  { name: 'CPU time of each of the first 10,000 requests, × bare', scenario: 'cold', figure: 'cpuRatios', digits: 2 },
  { name: 'CPU time of a start, ms', scenario: 'start', figure: 'startMs', digits: 0 },
  { name: 'memory after the start, MiB', scenario: 'start', figure: 'idleMiB', digits: 0 },
  { name: 'installed size, MB', scenario: 'size', figure: 'bytes', digits: 1, unit: 1e-6 },
];
const DETAILS: readonly Row[] = [
  { name: 'CPU time of a warm request, µs', scenario: 'warm', figure: 'cpuMicros', digits: 1 },
  { name: 'CPU time of each of the first 10,000 requests, µs', scenario: 'cold', figure: 'cpuMicros', digits: 1 },
  { name: 'memory after 100,000 requests, MiB', scenario: 'start', figure: 'loadedMiB', digits: 0 },
  { name: 'installed packages', scenario: 'size', figure: 'packages', digits: 0 },
];
const PEERS = ['polka', 'fastify', 'hono', 'express'];

const file = readFileSync(join(ROOT, 'bench/figures.json'), 'utf8');
const measured = JSON.parse(file) as Measured;
const { date, node, machine, commit } = JSON.parse(file) as Figures;

/** The texts that pages include between `<!-- figures: NAME -->` and `<!-- end of figures -->`. */
const TEXTS: Readonly<Record<string, string>> = {
  summary: tableOf(SUMMARY),
  details: tableOf([...SUMMARY, ...DETAILS]),
  slower: tableOfSlower(),
};
const SETTING = `Measured on ${date} with Node.js ${node.slice(1)} on ${machine}, commit ${commit}: the median of three runs, and in brackets their range.`;

/** @throws {Error} for a name that has no figures */
export function withFigures(page: string): string {
  return page.replace(/(?<=<!-- figures: (\w+) -->)\n.*?(?=<!-- end of figures -->)/gs, (_, name: string) => {
    const text = TEXTS[name];
    if (text === undefined) throw new Error(`there are no figures "${name}"; use ${Object.keys(TEXTS).join(', ')}`);
    return `\n\n${text}\n\n${SETTING}\n\n`;
  });
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    // The second bare server is the control: how far it is from 1 is noise.
    const bare = row.figure === 'cpuRatios' ? 'bare again (A/A)' : 'bare';
    return [row.name, ...['postern', ...PEERS, bare].map((name) => cell(row, name))];
  });
  return markdownTable(['', 'Postern', ...PEERS, 'bare `node:http`'], lines);
}

/** The rows in which a peer is better. */
function tableOfSlower(): string {
  const lines = [...SUMMARY, ...DETAILS].flatMap((row) => {
    const own = median(valuesOf(row, 'postern'));
    const better = PEERS.filter((name) => median(valuesOf(row, name)) < own);
    if (better.length === 0 || row.figure === 'cpuMicros') return [];
    return [[row.name, cell(row, 'postern'), better.map((name) => `${name}: ${cell(row, name)}`).join(', ')]];
  });
  return markdownTable(['what', 'Postern', 'less'], lines);
}

function markdownTable(titles: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`.replaceAll('|  |', '| |');
  return [line(titles), line(titles.map(() => '---')), ...lines.map(line)].join('\n');
}

/** The median of the runs, and their range: `1.05 (1.02–1.08)`. */
function cell(row: Row, name: string): string {
  const values = valuesOf(row, name);
  if (values.length === 0) return '–';
  const text = (value: number): string => value.toFixed(row.digits);
  const [least, most] = [text(Math.min(...values)), text(Math.max(...values))];
  return least === most ? least : `${text(median(values))} (${least}–${most})`;
}

function valuesOf({ scenario, figure, unit = 1 }: Row, name: string): readonly number[] {
  return (measured[scenario]?.[name]?.[figure] ?? []).map((value) => value * unit);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
