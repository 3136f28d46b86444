/*
 * The script of the live page: asks for `mesh.json` again and again, and shows what it says.
 *
 * The build makes one file of it. It runs in a browser, so it and what it imports import nothing from other folders.
 */

import { byId, copyOf, describeMoment, describeTime, setText, setTime, type PageDocument } from './element.js';
import { drawGraph, showGraph } from './graph.js';
import { showTable } from './table.js';
import { describeDuration, failing, stateOf, type FailureLine, type LiveReport, type Track } from './track.js';

declare const document: PageDocument;

/** @param timeoutMs how long an answer of the own server may take */
export function startPage(timeoutMs: number): void {
  let tracks: readonly Track[] = [];
  let lostAt: number | undefined;
  /** The time of the newest change in the log. */
  let loggedAt = 0;
  let chosen: string | undefined;
  let over: readonly string[] = [];

  const mark = (): void => {
    const keys = new Set([chosen, ...over]);
    const states = new Map(tracks.map((track) => [track.key, stateOf(track)]));
    for (const element of document.querySelectorAll('[data-key]')) {
      const key = element.dataset.key!;
      for (const state of ['gone', 'fails', 'slow']) element.classList.toggle(state, state === states.get(key));
      element.classList.toggle('pointed', keys.has(key));
      element.querySelector('button')?.setAttribute('aria-pressed', String(key === chosen));
    }
  };
  for (const type of ['mouseover', 'mouseout', 'focusin', 'focusout']) {
    document.addEventListener(type, ({ target, relatedTarget }) => {
      const pointed = type.endsWith('out') ? relatedTarget : target;
      // A row or a line, which is an edge, or a service in the graph.
      const { key, name } = pointed?.closest('[data-key], [data-name]')?.dataset ?? {};
      const near = tracks.filter((track) => track.key === key || track.edge.from === name || track.edge.to === name);
      over = near.map((track) => track.key);
      mark();
    });
  }
  document.addEventListener('click', ({ target }) => {
    const { key } = target.closest('button, .edge')?.closest('[data-key]')?.dataset ?? {};
    if (key === undefined) return;
    chosen = chosen === key ? undefined : key;
    mark();
  });

  const log = (kind: string, text: string, at: number, now: number): void => {
    const line = copyOf('change');
    line.setAttribute('class', kind);
    setTime(line.querySelector('time')!, at, now);
    line.querySelector('span')!.textContent = text;
    const list = byId('changes');
    list.prepend(line);
    list.children[500]?.remove();
    byId('unchanged').hidden = true;
  };

  let shown = '';
  const showFailures = (failures: readonly FailureLine[] | null, now: number): void => {
    byId('known').hidden = failures === null;
    const text = JSON.stringify(failures);
    // Only if it differs, so that a selection stays.
    if (failures === null || text === shown) return;
    shown = text;
    const lines = [...failures].reverse().map(({ at, text }) => {
      const line = copyOf('change');
      line.querySelector('span')!.textContent = text;
      setTime(line.querySelector('time')!, at === '' ? now : Date.parse(at), now);
      return line;
    });
    byId('failures').replaceChildren(...lines);
  };

  const showReport = (report: LiveReport, now: number): void => {
    const { service, tracks: present, changes, since, omitted, failures } = report;
    if (lostAt !== undefined) {
      log('answers', `This page's server is back after ${describeDuration(now - lostAt)}`, now, now);
      lostAt = undefined;
      setText(byId('lost'), '');
    }
    const moment = describeMoment(now, now);
    setText(byId('unchanged'), `Nothing has changed since ${describeMoment(since, now)}.`);
    for (const { kind, text, at } of changes) if (at > loggedAt) log(kind, text, at, now);
    loggedAt = Math.max(loggedAt, ...changes.map(({ at }) => at));
    showFailures(failures, now);
    const isDrawn = String(present.map(({ key }) => key)) === String(tracks.map(({ key }) => key));
    tracks = present;
    if (!isDrawn) drawGraph(tracks);
    showGraph(tracks);
    showTable(tracks, now);
    mark();
    const failed = failing(tracks).length;
    document.title = failed > 0 ? `(${failed}) ${service}` : service;
    byId('icon').setAttribute('href', iconOf(failed > 0));
    setText(byId('verdict'), describeVerdict(tracks));
    byId('verdict').classList.toggle('fails', failed > 0);
    const ms = tracks[0]?.edge.ms ?? null;
    const answered = ms === null ? '' : `, answered in ${describeTime(ms)}`;
    const rest = omitted > 0 ? ` ${omitted} more edges are not shown.` : '';
    setText(byId('asked'), `Asked at ${moment}${answered}.${rest}`);
  };

  const showLoss = (now: number): void => {
    if (lostAt !== undefined) return;
    lostAt = now;
    setText(
      byId('lost'),
      `The page lost its own server, postern live, at ${describeMoment(now, now)}. ` +
        'It shows what was known then, and continues by itself when the server is back.',
    );
    setText(byId('verdict'), 'Out of touch');
    const [first] = tracks;
    if (first !== undefined) document.title = `(?) ${first.edge.to}`;
  };

  let timer: ReturnType<typeof setTimeout> | undefined;
  let asking = false;
  let askedAt = 0;
  const schedule = (): void => {
    clearTimeout(timer);
    const due = askedAt + (document.hidden ? 15_000 : 2_000);
    timer = setTimeout(() => void ask(), due - performance.now());
  };
  const ask = async (): Promise<void> => {
    if (asking) return;
    asking = true;
    askedAt = performance.now();
    const answer = fetch('mesh.json', { signal: AbortSignal.timeout(timeoutMs) });
    const read = answer.then((response) => (response.ok ? response.json() : undefined));
    // The page's own server may be gone, or answer with an error.
    const report = (await read.catch(() => undefined)) as LiveReport | undefined;
    asking = false;
    schedule();
    const now = Date.now();
    if (report === undefined) showLoss(now);
    else showReport(report, now);
  };
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void ask();
    else if (!asking) schedule();
  });
  void ask();
}

/** `2 of 4 fail`: each service counts once, however many others call it. */
function describeVerdict(tracks: readonly Track[]): string {
  const servicesOf = (some: readonly Track[]): number => new Set(some.map(({ edge }) => edge.to)).size;
  const [failed, present] = [servicesOf(failing(tracks)), servicesOf(tracks.filter(({ gone }) => !gone))];
  if (failed > 0) return `${failed} of ${present} ${failed === 1 ? 'fails' : 'fail'}`;
  return present === 1 ? 'It answers' : `${present === 2 ? 'Both' : `All ${present}`} services answer`;
}

/** A ring, and a disc while something fails. */
function iconOf(failed: boolean): string {
  const style = failed ? "fill='%23c5221f'" : "fill='none' stroke='%23808890' stroke-width='3'";
  return `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><circle cx='8' cy='8' r='6' ${style}/></svg>`;
}
