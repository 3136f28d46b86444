/*
 * The page at work: asks for `mesh.json` again and again, and shows what it says.
 *
 * Runs in the page: functions here may use only functions of the modules that page.ts lists.
 */

import { copyOf, part, setText, setTime, type PageDocument } from './element.js';
import { createGraph } from './graph.js';
import { createTable, describeMoment, describeTime } from './table.js';
import { describeChanges, describeDuration, failing, follow, type MeshReport, type Track } from './track.js';

declare const document: PageDocument;

/** @param timeoutMs how long an answer of the own server may take */
export function startPage(timeoutMs: number): void {
  let tracks: readonly Track[] = [];
  let report: MeshReport | undefined;
  let lostAt: number | undefined;
  let chosen: string | undefined;
  let over: readonly string[] = [];

  const mark = (): void => {
    const keys = new Set(chosen === undefined ? over : [chosen, ...over]);
    table.mark(keys, chosen);
    graph.mark(keys);
  };
  const pointing = {
    over(keys: readonly string[]): void {
      over = keys;
      mark();
    },
    choose(key: string): void {
      chosen = chosen === key ? undefined : key;
      mark();
    },
  };
  const table = createTable(part('rows'), pointing);
  const graph = createGraph(part('graph'), pointing);

  const log = (kind: string, text: string, now: number): void => {
    const line = copyOf('change');
    line.setAttribute('class', kind);
    setTime(line.firstElementChild!, describeMoment(now, now), now);
    line.lastElementChild!.textContent = text;
    const list = part('changes');
    list.prepend(line);
    if (list.childElementCount > 200) list.lastElementChild!.remove();
    part('unchanged').hidden = true;
  };

  const showReport = (next: MeshReport, now: number): void => {
    const followed = follow(tracks, next.edges, now);
    const moment = describeMoment(now, now);
    // The first report is not a change.
    if (report === undefined) setText(part('unchanged'), `Nothing has changed since ${moment}.`);
    else for (const { kind, text } of describeChanges(followed.changes)) log(kind, text, now);
    tracks = followed.tracks;
    report = next;
    const failed = failing(tracks).length;
    document.title = failed > 0 ? `(${failed}) ${next.service}` : next.service;
    part('icon').setAttribute('href', iconOf(failed > 0));
    setText(part('verdict'), describeVerdict(tracks));
    part('verdict').classList.toggle('fails', failed > 0);
    setText(part('omitted'), next.omitted > 0 ? `${next.omitted} more edges are not shown.` : '');
    const ms = tracks[0]?.edge.ms ?? null;
    setText(part('asked'), `Asked at ${moment}${ms === null ? '' : `, answered in ${describeTime(ms)}`}.`);
    table.show(tracks, now);
    part('page').setAttribute('class', graph.show(tracks) ? 'wide' : 'tall');
    mark();
  };

  const setLost = (lost: boolean, now: number): void => {
    if (lost === (lostAt !== undefined)) return;
    part('page').classList.toggle('lost', lost);
    if (lostAt !== undefined) {
      log('answers', `This page's server is back after ${describeDuration(now - lostAt)}`, now);
      lostAt = undefined;
      setText(part('lost'), '');
      return;
    }
    lostAt = now;
    setText(
      part('lost'),
      `The page lost its own server, postern live, at ${describeMoment(now, now)}. ` +
        'It shows what was known then, and continues by itself when the server is back.',
    );
    setText(part('verdict'), 'Out of touch');
    if (report !== undefined) document.title = `(?) ${report.service}`;
  };

  let timer: ReturnType<typeof setTimeout> | undefined;
  let askedAt = -Infinity;
  let asking = false;
  const schedule = (): void => {
    clearTimeout(timer);
    const due = askedAt + (document.hidden ? 15_000 : 2_000);
    if (!asking) timer = setTimeout(() => void ask(), Math.max(0, due - performance.now()));
  };
  const ask = async (): Promise<void> => {
    if (asking) return;
    asking = true;
    askedAt = performance.now();
    const next = await getReport(timeoutMs);
    asking = false;
    schedule();
    const now = Date.now();
    setLost(next === undefined, now);
    if (next !== undefined) showReport(next, now);
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) schedule();
    else void ask();
  });
  void ask();
}

/** The mesh as it is, or undefined when the page's own server doesn't tell. */
export async function getReport(timeoutMs: number): Promise<MeshReport | undefined> {
  try {
    const response = await fetch('mesh.json', { signal: AbortSignal.timeout(timeoutMs) });
    return response.ok ? ((await response.json()) as MeshReport) : undefined;
  } catch {
    return undefined;
  }
}

/** `2 of 4 fail`. */
export function describeVerdict(tracks: readonly Track[]): string {
  const present = tracks.filter(({ gone }) => !gone).length;
  const failed = failing(tracks).length;
  if (failed > 0) return `${failed} of ${present} ${failed === 1 ? 'fails' : 'fail'}`;
  return present === 1 ? 'It answers' : present === 2 ? 'Both answer' : `All ${present} answer`;
}

/** A ring, and a disc while something fails. */
export function iconOf(failed: boolean): string {
  const style = failed ? "fill='%23c5221f'" : "fill='none' stroke='%23808890' stroke-width='3'";
  return `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><circle cx='8' cy='8' r='6' ${style}/></svg>`;
}
