/*
 * The table of edges. Rows are kept by edge and touched only where something differs, so that focus and selection stay.
 *
 * Runs in the page: functions here may use only functions of the modules that page.ts lists.
 */

import { copyOf, setState, setText, setTime, tellOf, type PageElement, type Pointing } from './element.js';
import { stateOf, type Sample, type Track } from './track.js';

export interface Table {
  /** Shows the edges in their order. */
  show(tracks: readonly Track[], now: number): void;
  /** Marks the rows of edges that are pointed at, and the one that was chosen. */
  mark(keys: ReadonlySet<string>, chosen: string | undefined): void;
}

export function createTable(body: PageElement, pointing: Pointing): Table {
  const rows = new Map<string, PageElement>();
  return {
    show(tracks, now) {
      for (const [key, row] of rows) {
        if (tracks.some((track) => track.key === key)) continue;
        row.remove();
        rows.delete(key);
      }
      tracks.forEach((track, index) => {
        const row = rows.get(track.key) ?? createRow(track, pointing);
        rows.set(track.key, row);
        if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
        updateRow(row, track, now);
      });
    },
    mark(keys, chosen) {
      for (const [key, row] of rows) {
        row.classList.toggle('pointed', keys.has(key));
        row.querySelector('button')!.setAttribute('aria-pressed', String(key === chosen));
      }
    },
  };
}

export function createRow({ key, edge: { from, to } }: Track, pointing: Pointing): PageElement {
  const row = copyOf('row');
  if (from !== null) row.querySelector('.unseen')!.textContent = ` asked by ${from}`;
  const button = row.querySelector('button')!;
  button.textContent = to === '' ? '?' : to;
  tellOf(row, [key], pointing);
  button.addEventListener('focus', () => pointing.over([key]));
  button.addEventListener('blur', () => pointing.over([]));
  button.addEventListener('click', () => pointing.choose(key));
  return row;
}

export function updateRow(row: PageElement, track: Track, now: number): void {
  const { gone, history, since } = track;
  const { status, ms, reason, level } = track.edge;
  const cell = (selector: string): PageElement => row.querySelector(selector)!;
  setState(row, track);
  row.style.setProperty('--level', String(Math.min(level, 8)));
  row.classList.toggle('below', level > 0);
  setText(cell('.code'), gone ? 'out of sight' : String(status));
  setText(cell('.reason'), stateOf(track) === 'fails' ? reason : '');
  cell('.reason').setAttribute('title', reason);
  setText(cell('.time'), gone || ms === null ? '–' : describeTime(ms));
  const { answered, failed } = drawSparkline(history, 28);
  cell('.answered').setAttribute('d', answered);
  cell('.failed').setAttribute('d', failed);
  cell('svg').setAttribute('aria-label', describeHistory(history));
  setTime(cell('time'), describeMoment(since, now), since);
}

/** `3 ms`, `2.4 s`. */
export function describeTime(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** `22:31:05`, with the date when that is another day's. */
export function describeMoment(ms: number, now: number): string {
  const then = new Date(ms);
  const time = then.toTimeString().slice(0, 8);
  if (then.toDateString() === new Date(now).toDateString()) return time;
  return `${then.toDateString().slice(4, 10)} ${time.slice(0, 5)}`;
}

export function describeHistory(history: readonly Sample[]): string {
  const samples = history.filter((sample) => sample !== null);
  const times = samples.flatMap(({ failed, ms }) => (failed || ms === null ? [] : [ms]));
  const range = times.length === 0 ? '' : `, ${Math.min(...times)} to ${Math.max(...times)} ms`;
  return `${samples.filter(({ failed }) => failed).length} of the last ${samples.length} failed${range}`;
}

/** The answers of the last 60 reports as the outlines of two kinds of bars, the newest at the right end. */
export function drawSparkline(history: readonly Sample[], height: number): { answered: string; failed: string } {
  const times = history.flatMap((sample) => (sample === null || sample.failed ? [] : [sample.ms ?? 0]));
  times.sort((a, b) => a - b);
  // One slow answer is cut off at the top, rather than flatten all the others.
  const top = Math.max(10, 1.5 * (times[Math.floor(0.9 * (times.length - 1))] ?? 0));
  const bars = { answered: '', failed: '' };
  history.forEach((sample, index) => {
    if (sample === null) return;
    const x = (60 - history.length + index) * 3;
    const share = sample.failed ? 1 : Math.min(1, (sample.ms ?? 0) / top);
    const bar = Math.round((2 + share * (height - 2)) * 10) / 10;
    bars[sample.failed ? 'failed' : 'answered'] += `M${x} ${height}v${-bar}h2v${bar}z`;
  });
  return bars;
}
