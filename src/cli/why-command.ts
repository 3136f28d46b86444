/* `postern why`: what happened in some services in the last 15 minutes, and first what the rest follows from. */

import type { RequestsDocument } from '../monitor/requests.js';
import { Date } from '../base/clock.js';
import { isRecord } from '../base/options-check.js';
import { localTime } from '../base/text-line.js';
import type { FailureLine } from '../live/track.js';
import { readCalls, type CallTuple } from '../story/calls.js';
import { kindOf, WINDOW_MS, type FailureCount } from '../story/story.js';
import { defineCommand, flag, type Command } from './command.js';
import { clientsOf, parseServiceUrl } from './mesh.js';
import { reasonOfFailure } from './monitor.js';
import { paint, toJson, toVisible } from './output.js';
import { findCause, leafName, type Asked } from './cause.js';

const usage = `Usage: postern why URL... [--json]

Asks services what failed or was slow in the last 15 minutes, and prints first
in one sentence what the rest follows from, then everything in the order of
time. Exits with 1 if something failed, with 2 if no service answered.

  URL      http://host:port/<service>/ of a monitor listener (option monitor),
           once for each instance
  --json   what the services answered, and the parts of the sentence
`;

/** Short: at the time of an incident some services do not answer, and the others must not wait for them. */
const TIMEOUT_MS = 800;
/** Members of an entry that are moments. */
const MOMENTS = ['at', 'first', 'last'];

export const why: Command = defineCommand(usage, 'URL...', { json: flag }, async ({ json }, ...urls) => {
  const asked = await askAll(urls);
  if (asked.every(({ document }) => document === null))
    throw new Error(`no service answered: ${asked.map(({ url, reason }) => `${url}: ${reason}`).join('; ')}`);
  const cause = findCause(asked);
  const lines = toLines(asked);
  const isOfRequests = asked.some(({ document }) => document === null || document.counts.length > 0);
  // A job, or a promise given to `app.track`.
  const finding = isOfRequests || asked.some(({ document }) => document?.events.some(({ level }) => level === 'error'));
  const nothing = lines.length === 0 ? 'Nothing failed.' : 'No request failed.';
  const unclear = isOfRequests ? 'No single service is to blame for most failures.' : nothing;
  const sentence = cause?.sentence ?? unclear;
  if (json) return { text: toJson({ sentence, cause, services: asked }), finding };
  const first = paint(cause === null && !finding ? 'green' : 'red', toVisible(sentence));
  const rows = lines.map(({ at, text }) => (at === '' ? text : `${localTime(at)}  ${text}`));
  return { text: `${[first, '', ...rows].join('\n').trimEnd()}\n`, finding };
});

/** @throws {UsageError} for a URL that names no service */
export function askAll(urls: readonly string[]): Promise<Asked[]> {
  return Promise.all(urls.map(ask));
}

/** Failures, slow requests and warnings, in the order of time. */
export function toLines(asked: readonly Asked[]): FailureLine[] {
  return asked.flatMap(linesOf).sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

async function ask(given: string): Promise<Asked> {
  const root = parseServiceUrl(given);
  const { service, base } = root;
  const url = `${base}/${service}/`;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const clients = clientsOf(root);
  const read = async (path: string): Promise<string> => {
    const response = await clients.client(service).fetch(`/${service}/${path}`, { signal });
    const remedy = 'give http://host:port/<service>/ of the monitor listener, with the name of its service';
    if (!response.ok) throw new Error(`${path} answered ${response.status}; ${remedy}`);
    return response.text();
  };
  try {
    const [requests, metrics] = await Promise.all([read('requests/'), read('metrics/').catch(() => '')]);
    const numberOf = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1] ?? NaN);
    const startedAtMs = numberOf('process_start_time_seconds') * 1000;
    const memoryPercent = numberOf('proc_rss_mem_perc');
    return { service, url, document: readDocument(JSON.parse(requests)), memoryPercent, startedAtMs, reason: null };
  } catch (error) {
    const reason = signal.aborted ? `no answer within ${TIMEOUT_MS} ms` : reasonOfFailure(error);
    return { service, url, document: null, memoryPercent: NaN, startedAtMs: NaN, reason };
  } finally {
    clients.close();
  }
}

/** The document of a service, which may be of another version: entries of another shape are left out. */
function readDocument(value: unknown): RequestsDocument {
  const lists = isRecord(value) ? value : {};
  const read = <T>(name: keyof RequestsDocument, texts: string[], numbers: string[]): T[] => {
    const list = Array.isArray(lists[name]) ? lists[name].filter(isRecord) : [];
    const entries = list.filter(
      (each) =>
        !(Date.parse(String(each['at'])) < Date.now() - WINDOW_MS) &&
        texts.every((key) => typeof each[key] === 'string') &&
        texts.every((key) => !MOMENTS.includes(key) || !Number.isNaN(Date.parse(String(each[key])))) &&
        numbers.every((key) => typeof each[key] === 'number') &&
        Object.entries(each).every(([key, member]) => key === 'calls' || typeof member !== 'object' || member === null),
    );
    const hasCalls = name === 'active' || name === 'recent';
    return entries.map((each) => (hasCalls ? { ...each, calls: readCalls(each['calls'], 0) } : each) as T);
  };
  return {
    active: read('active', ['id', 'method'], ['age_ms']),
    recent: read('recent', ['id', 'method', 'at'], ['status', 'ms']),
    counts: read('counts', ['service', 'first', 'last'], ['status', 'times']),
    events: read('events', ['at', 'level', 'msg'], []),
  };
}

/** A line of the page, for something that happened once or several times. */
interface Happening extends Pick<FailureCount, 'times' | 'first' | 'last'> {
  readonly what: string;
  readonly calls?: readonly CallTuple[] | undefined;
}

/** A line for each kind of failure, of slow requests and of warnings, at the time at which it began. */
function linesOf(asked: Asked): FailureLine[] {
  const { service, url, document, reason } = asked;
  if (document === null) return [{ at: '', text: toVisible(`${service} at ${url} does not answer: ${reason}`) }];
  const happened = new Map<string, Happening>();
  const known = new Map(document.recent.map((each) => [kindOf(each, leafName(asked, each)), each]));
  for (const count of document.counts) {
    const kind = kindOf(count, count.service);
    const { method = '', calls } = known.get(kind) ?? {};
    const what = `${method} ${count.route ?? '(no route)'} ${count.status} ${count.error_code ?? ''}`.trim();
    happened.set(kind, { ...count, what, calls });
  }
  const add = (key: string, at: string, what: string, calls?: readonly CallTuple[]): void => {
    const { times = 0, first = at } = happened.get(key) ?? {};
    happened.set(key, { what, times: times + 1, first, last: at, calls });
  };
  for (const { method, route, status, at, calls } of document.recent) {
    const what = `${method} ${route ?? '(no route)'} ${status}, slow`;
    if (status < 500) add(what, at, what, calls);
  }
  for (const { at, level, msg, ...fields } of document.events)
    add(`${level} ${msg}`, at, [level, msg, ...Object.entries(fields).map((pair) => pair.join('='))].join(' '));
  return [...happened.values()].map(({ what, times, first, last, calls = [] }) => {
    const seconds = Math.max(1, Math.round((Date.parse(last) - Date.parse(first)) / 1000));
    const often = times === 1 ? '' : `, ${times} times in ${seconds} s`;
    return { at: first, text: `${toVisible(`${service}  ${what}${often}`)}${treeOf(calls, '  ')}` };
  });
}

/** The calls below a line, each on a line of its own. */
function treeOf(calls: readonly CallTuple[], indent: string): string {
  return calls.map(([service, method, route, status, ms, code, below]) => {
    const what = [service, method, route, status, code, `${ms} ms`].filter((part) => part !== '' && part !== null);
    return `\n${indent}└ ${toVisible(what.join(' '))}${treeOf(below, `${indent}  `)}`;
  }).join('');
}
