/**
 * The table of edges. Rows are kept by edge and touched only where something differs, so that focus and selection stay.
 *
 * Runs in the page: functions here use those of the modules that page.ts lists, and nothing else.
 */

import type { PageDocument, PageElement } from './document.js';
import { setClass, setText, svgElement, htmlElement } from './element.js';
import { drawSparkline } from './sparkline.js';
import { isSlow, type Track } from './track.js';

/** The table, in the page. */
export interface Table {
  /** Shows the edges in their order. */
  show(tracks: readonly Track[], now: number): void;
  /** Marks the rows of edges that are pointed at, and the one that was chosen. */
  mark(keys: ReadonlySet<string>, chosen: string | null): void;
}

/** What a row consists of. */
interface Row {
  readonly row: PageElement;
  readonly update: (track: Track, now: number) => void;
  readonly button: PageElement;
}

/** @param point is told which edge is pointed at, and which was chosen by a click or key */
export function createTable(
  document: PageDocument,
  body: PageElement,
  point: { over(key: string | null): void; choose(key: string): void },
): Table {
  const rows = new Map<string, Row>();
  return {
    show(tracks, now) {
      const present = new Set(tracks.map(({ key }) => key));
      for (const [key, { row }] of rows) {
        if (present.has(key)) continue;
        row.remove();
        rows.delete(key);
      }
      tracks.forEach((track, index) => {
        let row = rows.get(track.key);
        if (row === undefined) {
          row = createRow(document, track, point);
          rows.set(track.key, row);
        }
        if (body.children[index] !== row.row) body.insertBefore(row.row, body.children[index] ?? null);
        row.update(track, now);
      });
    },
    mark(keys, chosen) {
      for (const [key, { row, button }] of rows) {
        setClass(row, 'pointed', keys.has(key));
        button.setAttribute('aria-pressed', String(key === chosen));
      }
    },
  };
}

export function createRow(
  document: PageDocument,
  { key, edge }: Track,
  point: { over(key: string | null): void; choose(key: string): void },
): Row {
  const button = htmlElement(document, 'button', { type: 'button', 'aria-pressed': 'false' });
  const caller = htmlElement(document, 'span', { class: 'unseen' });
  caller.textContent = edge.from === null ? '' : ` asked by ${edge.from}`;
  const name = htmlElement(document, 'th', { scope: 'row', role: 'rowheader', class: 'name' }, button, caller);
  const code = htmlElement(document, 'span', { class: 'code' });
  const reason = htmlElement(document, 'span', { class: 'reason' });
  const status = htmlElement(
    document,
    'td',
    { role: 'cell', class: 'status' },
    htmlElement(document, 'div', {}, code, ' ', reason),
  );
  const time = htmlElement(document, 'td', { role: 'cell', class: 'time' });
  const answered = svgElement(document, 'path', { class: 'answered' });
  const failed = svgElement(document, 'path', { class: 'failed' });
  const line = svgElement(document, 'path', { class: 'line', d: 'M0 27H180' });
  const spark = svgElement(
    document,
    'svg',
    { viewBox: '0 0 180 28', preserveAspectRatio: 'none', role: 'img' },
    line,
    answered,
    failed,
  );
  const last = htmlElement(document, 'td', { role: 'cell', class: 'last' }, spark);
  const moment = htmlElement(document, 'time', {});
  const since = htmlElement(document, 'td', { role: 'cell', class: 'since' }, moment);
  const row = htmlElement(document, 'tr', { role: 'row' }, name, status, time, last, since);
  row.addEventListener('mouseenter', () => point.over(key));
  row.addEventListener('mouseleave', () => point.over(null));
  button.addEventListener('focus', () => point.over(key));
  button.addEventListener('blur', () => point.over(null));
  button.addEventListener('click', () => point.choose(key));

  const update = (track: Track, now: number): void => {
    const { gone, history } = track;
    const { to, level, status: answer, ms, reason: why } = track.edge;
    setText(button, to === '' ? '?' : to);
    row.style.setProperty('--level', String(Math.min(level, 8)));
    setClass(row, 'fails', !gone && answer !== 200);
    setClass(row, 'slow', isSlow(track));
    setClass(row, 'gone', gone);
    setClass(row, 'below', level > 0);
    setText(code, gone ? 'out of sight' : String(answer));
    setText(reason, gone || answer === 200 ? '' : why);
    reason.setAttribute('title', why);
    setText(time, gone || ms === null ? '–' : describeTime(ms));
    const bars = drawSparkline(history, 28);
    answered.setAttribute('d', bars.answered);
    failed.setAttribute('d', bars.failed);
    spark.setAttribute('aria-label', describeHistory(track));
    setText(moment, describeMoment(track.since, now));
    moment.setAttribute('datetime', new Date(track.since).toISOString());
  };
  return { row, update, button };
}

/** `3 ms`, `2.4 s`. */
export function describeTime(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** `22:31:05`, with the date when that is another day's. */
export function describeMoment(ms: number, now: number): string {
  const then = new Date(ms);
  const sameDay = then.toDateString() === new Date(now).toDateString();
  const time = then.toTimeString().slice(0, 8);
  return sameDay ? time : `${then.toDateString().slice(4, 10)} ${time.slice(0, 5)}`;
}

export function describeHistory({ history }: Track): string {
  const samples = history.flatMap((sample) => (sample === null ? [] : [sample]));
  const failed = samples.filter((sample) => sample.failed).length;
  const times = samples.flatMap(({ failed: no, ms }) => (no || ms === null ? [] : [ms]));
  const range = times.length === 0 ? '' : `, ${Math.min(...times)} to ${Math.max(...times)} ms`;
  return `${failed} of the last ${samples.length} failed${range}`;
}
