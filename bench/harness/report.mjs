/**
 * What the harness prints: a header, tables on stdout, progress on stderr.
 */

import { execFileSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { canPin, hasWrk } from './cores.mjs';
import { quartiles } from './statistics.mjs';

/** @typedef {Record<string, string | number | boolean>} Header */

/**
 * Where and how a run is made.
 *
 * @param {import('./options.mjs').Options} options
 * @returns {Header}
 */
export function describeRun({ seed, node, quick }) {
  return {
    date: new Date().toISOString().slice(0, 16),
    node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
    cpu: `${cpus()[0]?.model.trim()} x ${cpus().length}`,
    load: loadavg().map((value) => value.toFixed(2)).join(' '),
    commit: commit(),
    seed,
    quick,
    driver: hasWrk ? 'wrk' : 'autocannon',
    pinned: canPin,
  };
}

/** @param {Header} header */
export function printHeader(header) {
  console.log(Object.entries(header).map(([name, value]) => `${name} ${value}`).join(', '));
  if (!header.pinned)
    console.log('No taskset or a single core: servers and load share the cores, and the figures are rough.');
  if (header.quick) console.log('Quick: few rounds, so quartiles are wide; a run without --quick is the one to quote.');
}

/**
 * Prints rows under column titles; the first column is flush left.
 *
 * @param {string} title
 * @param {readonly string[]} columns
 * @param {readonly (readonly string[])[]} rows
 */
export function printTable(title, columns, rows) {
  const widths = columns.map((column, index) => Math.max(column.length, ...rows.map((row) => row[index]?.length ?? 0)));
  const line = (cells) =>
    cells
      .map((cell, index) => (index === 0 ? cell.padEnd(widths[index]) : cell.padStart(widths[index])))
      .join('  ')
      .trimEnd();
  console.log(`\n${title}\n\n${line(columns)}\n${line(widths.map((width) => '-'.repeat(width)))}`);
  for (const row of rows) console.log(line(row));
}

/** A median with its quartiles: `0.97 [0.95 0.99]`. */
export function formatSpread(values, digits = 2) {
  const { q1, median, q3 } = quartiles(values);
  return `${median.toFixed(digits)} [${q1.toFixed(digits)} ${q3.toFixed(digits)}]`;
}

/** JSON for a file, with each list of numbers on one line. */
export function toJson(value) {
  return `${JSON.stringify(value, null, 2).replace(/\[[^[\]{}]*\]/g, (list) => list.replace(/\s+/g, ' '))}\n`;
}

/** Overwrites the line of progress on a terminal; tells exclusions elsewhere, too. */
export function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
  else if (text.endsWith('\n')) process.stderr.write(text);
}

function commit() {
  try {
    const git = (...args) => execFileSync('git', args, { encoding: 'utf8', cwd: import.meta.dirname }).trim();
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '--', '../../src') === '' ? '' : ' with changes'}`;
  } catch {
    return 'unknown';
  }
}
