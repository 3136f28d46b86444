/*
 * The table of edges. Rows are kept by edge and touched only where something differs, so that focus and selection stay.
 */

import { byId, copyOf, describeTime, setText, setTime, type PageElement } from './element.js';
import { stateOf, type Sample, type Track } from './track.js';

/** Shows the edges in their order. */
export function showTable(tracks: readonly Track[], now: number): void {
  const body = byId('rows');
  const known = new Map(Array.from(body.children, (row) => [row.dataset.key, row]));
  for (const [key, row] of known) if (!tracks.some((track) => track.key === key)) row.remove();
  tracks.forEach((track, index) => {
    const row = known.get(track.key) ?? copyOf('row');
    if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
    showRow(row, track, now);
  });
}

function showRow(row: PageElement, track: Track, now: number): void {
  const { key, gone, history, since } = track;
  const { from, to, status, ms, reason, level } = track.edge;
  const cell = (selector: string): PageElement => row.querySelector(selector)!;
  row.dataset.key = key;
  row.style.setProperty('--level', String(Math.min(level, 8)));
  row.classList.toggle('below', level > 0);
  setText(cell('button'), to === '' ? '?' : to);
  setText(cell('.unseen'), from === null ? '' : ` asked by ${from}`);
  setText(cell('.code'), gone ? 'out of sight' : String(status));
  setText(cell('.reason'), stateOf(track) === 'fails' ? reason : '');
  cell('.reason').setAttribute('title', reason);
  setText(cell('.time'), gone || ms === null ? '–' : describeTime(ms));
  const { answered, failed } = drawSparkline(history);
  cell('.answered').setAttribute('d', answered);
  cell('.failed').setAttribute('d', failed);
  cell('svg').setAttribute('aria-label', describeHistory(history));
  setTime(cell('time'), since, now);
}

function describeHistory(history: readonly Sample[]): string {
  const samples = history.filter((sample) => sample !== null);
  const times = samples.flatMap(({ failed, ms }) => (failed || ms === null ? [] : [ms]));
  const range = times.length === 0 ? '' : `, ${Math.min(...times)} to ${Math.max(...times)} ms`;
  return `${samples.filter(({ failed }) => failed).length} of the last ${samples.length} failed${range}`;
}

/** Height of a sparkline; each of its bars is 3 wide. */
const HEIGHT = 28;

/** The answers of the last 60 reports as the outlines of two kinds of bars, the newest at the right end. */
function drawSparkline(history: readonly Sample[]): { answered: string; failed: string } {
  const times = history.flatMap((sample) => (sample === null || sample.failed ? [] : [sample.ms ?? 0]));
  times.sort((a, b) => a - b);
  // One slow answer is cut off at the top, rather than flatten all the others.
  const top = Math.max(10, 1.5 * (times[Math.floor(0.9 * (times.length - 1))] ?? 0));
  const bars = { answered: '', failed: '' };
  history.forEach((sample, index) => {
    if (sample === null) return;
    const x = (60 - history.length + index) * 3;
    const share = sample.failed ? 1 : Math.min(1, (sample.ms ?? 0) / top);
    const bar = Math.round((2 + share * (HEIGHT - 2)) * 10) / 10;
    bars[sample.failed ? 'failed' : 'answered'] += `M${x} ${HEIGHT}v${-bar}h2v${bar}z`;
  });
  return bars;
}
