/* Finds what the failures of some services follow from, and says it in one sentence. */

import { Date } from '../base/clock.js';
import type { RequestsDocument } from '../monitor/requests.js';
import { leafOf } from '../story/calls.js';
import type { RecentRequest, StoryEvent } from '../story/story.js';

/** A service, or one instance of it, with what it answered. */
export interface Asked {
  readonly service: string;
  readonly url: string;
  /** Null if it did not answer; then `reason` says why. */
  readonly document: RequestsDocument | null;
  readonly reason: string | null;
  /** NaN if it is not known. */
  readonly memoryPercent: number;
  /** Start of the process, in ms since the Unix epoch; NaN if it is not known. */
  readonly startedAtMs: number;
}

/** The service that the failures follow from, and why. */
export interface Cause {
  readonly sentence: string;
  readonly service: string;
  readonly url: string | null;
  /** Method and path of the route that fails or is slow; null if it is not known. */
  readonly route: string | null;
  readonly reason: string;
  readonly times: number;
}

const NEAR_LIMIT_PERCENT = 90;

/** @returns null if nothing failed or was slow, or no service is at the end of most trees */
export function findCause(asked: readonly Asked[]): Cause | null {
  const weights = new Map<string, number>();
  const add = (service: string, times: number): unknown => weights.set(service, (weights.get(service) ?? 0) + times);
  for (const { document } of asked) for (const { service, times } of document?.counts ?? []) add(service, times);
  if (weights.size === 0) for (const each of asked) for (const slow of recentOf(each)) add(slowLeaf(each, slow), 1);
  const silent = asked.find(({ document }) => document === null);
  if (weights.size === 0 && silent !== undefined) add(silent.service, 1);
  const [[service, times] = ['', 0]] = [...weights].sort(([, a], [, b]) => b - a);
  const total = [...weights.values()].reduce((sum, each) => sum + each, 0);
  return times * 2 > total ? explain(service, times, asked) : null;
}

function explain(service: string, times: number, asked: readonly Asked[]): Cause {
  const own = asked.filter((each) => each.service === service);
  const worst = [...own].sort((a, b) => troubleOf(b) - troubleOf(a))[0];
  const route = routeOf(service, worst, asked);
  const { at, reason } = reasonOf(service, own, worst);
  const where = at === undefined ? service : `${service} at ${at.url}`;
  const what = route === null ? '' : ` (${route})`;
  const caller = mostFrequent(own.flatMap(recentOf).flatMap(({ caller }) => caller ?? []));
  const callers = caller === undefined ? '' : ` Most of its requests come from ${caller}.`;
  const sentence = `${where}${what} ${reason}: ${times} failing or slow requests end there.${callers}`;
  return { sentence, service, url: at?.url ?? null, route, reason, times };
}

/** The reason that the instances of a service give, the most telling one first. */
function reasonOf(service: string, own: readonly Asked[], worst: Asked | undefined): { at?: Asked; reason: string } {
  const find = (msg: string): { at: Asked; event: StoryEvent } | undefined => {
    for (const at of own) {
      const event = at.document?.events.findLast((each) => each.msg === msg);
      if (event !== undefined) return { at, event };
    }
    return undefined;
  };
  const blocked = find('event loop blocked');
  if (blocked !== undefined) {
    const { event, at } = blocked;
    const place = `${String(event['function'])} (${String(event['file'])}:${String(event['line'])})`;
    return { at, reason: `was blocked by ${place}` };
  }
  const silent = own.find(({ document }) => document === null);
  if (silent !== undefined) return { at: silent, reason: `does not answer (${silent.reason})` };
  const full = own.find(({ memoryPercent }) => memoryPercent >= NEAR_LIMIT_PERCENT);
  if (full !== undefined)
    return { at: full, reason: `uses ${Math.round(full.memoryPercent)} % of the memory that it may use` };
  const check = find('health check fails');
  if (check !== undefined) return { at: check.at, reason: `fails its health check ${String(check.event['check'])}` };
  const drain = find('draining');
  if (drain !== undefined) return { at: drain.at, reason: 'is draining' };
  if (worst?.document != null && troubleOf(worst) > 0) return { ...onlyOne(own, worst), reason: symptomOf(worst) };
  const restarted = own.find(({ startedAtMs }) => Date.now() - startedAtMs < 15 * 60_000);
  if (restarted !== undefined && own.length > 0) {
    const started = new Date(restarted.startedAtMs).toISOString().slice(11, 19);
    return { at: restarted, reason: `was not reached, or broke off; it was started at ${started}` };
  }
  if (own.length > 0) return { reason: 'was not reached, while it has no failure of its own: look at its address' };
  return { reason: `failed; ask its own monitor listener, too (postern why … http://…/${service}/)` };
}

/** The instance, if the others of its service do not have its trouble. */
function onlyOne(own: readonly Asked[], worst: Asked): { at?: Asked } {
  return own.length > 1 && own.every((each) => each === worst || troubleOf(each) === 0) ? { at: worst } : {};
}

function symptomOf(asked: Asked): string {
  const { counts } = asked.document as RequestsDocument;
  const most = counts.find(({ service }) => service === asked.service);
  if (most === undefined) return `took up to ${Math.max(...recentOf(asked).map(({ ms }) => ms))} ms`;
  if (most.error_code !== 'framework_overloaded')
    return `answered ${most.status}${most.error_code === null ? '' : ` (${most.error_code})`}`;
  return 'gets more requests than it can answer';
}

/** How much failed or was slow in a service itself, not in those that it calls. */
function troubleOf(asked: Asked): number {
  const { service, document } = asked;
  const failed = (document?.counts ?? []).filter((each) => each.service === service);
  const slow = recentOf(asked).filter((each) => each.status < 500 && slowLeaf(asked, each) === service);
  return failed.reduce((sum, { times }) => sum + times, slow.length);
}

/** The route of a service that fails or is slow most often, by its own account, else by its callers'. */
function routeOf(service: string, worst: Asked | undefined, asked: readonly Asked[]): string | null {
  const own = worst === undefined ? [] : recentOf(worst).filter((each) => slowLeaf(worst, each) === service);
  const routes = own.flatMap(({ method, route }) => (route === null ? [] : [`${method} ${route}`]));
  const calls = asked.flatMap((each) => recentOf(each)).flatMap(({ calls, status, ms }) => {
    const leaf = leafOf(calls, status >= 500, ms);
    return leaf?.[0] === service && leaf[2] !== '' ? [`${leaf[1]} ${leaf[2]}`] : [];
  });
  return mostFrequent(routes) ?? mostFrequent(calls) ?? null;
}

function recentOf({ document }: Asked): readonly RecentRequest[] {
  return document?.recent ?? [];
}

function slowLeaf({ service }: Asked, { calls, status, ms }: RecentRequest): string {
  return leafOf(calls, status >= 500, ms)?.[0] ?? service;
}

function mostFrequent(texts: readonly string[]): string | undefined {
  const times = new Map<string, number>();
  for (const text of texts) times.set(text, (times.get(text) ?? 0) + 1);
  return [...times].sort(([, a], [, b]) => b - a)[0]?.[0];
}
