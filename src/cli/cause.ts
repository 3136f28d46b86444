/* Finds what the failures of some services follow from, and says it in one sentence. */

import { Date } from '../base/clock.js';
import { FrameworkErrorCodes } from '../base/errors.js';
import { localTime } from '../base/text-line.js';
import type { RequestsDocument } from '../monitor/requests.js';
import { leafOf, type CallTuple } from '../story/calls.js';
import { WINDOW_MS, type RecentRequest, type StoryEvent } from '../story/story.js';

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
  const counts = asked.flatMap(({ document }) => document?.counts ?? []);
  const failed = counts.map(({ service, times }): Counted => [service, times]);
  const slow = asked.flatMap((each) => recentOf(each).map((one): Counted => [leafName(each, one), 1]));
  const silent = asked.filter(({ document }) => document === null).map(({ service }): Counted => [service, 1]);
  const ends = [failed, slow, silent.slice(0, 1)].find(({ length }) => length > 0) ?? [];
  const [service, times] = mostOf(ends) ?? ['', 0];
  const total = ends.reduce((sum, [, each]) => sum + each, 0);
  return times * 2 > total ? explain(service, times, asked) : null;
}

/** The service at the end of the calls of a request; the one that was asked, if no call explains the outcome. */
export function leafName({ service }: Asked, request: RecentRequest): string {
  return leafOf(request)?.[0] ?? service;
}

function explain(service: string, times: number, asked: readonly Asked[]): Cause {
  const own = asked.filter((each) => each.service === service);
  const worst = [...own].sort((a, b) => troubleOf(b) - troubleOf(a))[0];
  // Calls of the service that are at the end of failing or slow requests of others.
  const leaves = asked.flatMap(recentOf).map(leafOf).flatMap((leaf) => (leaf?.[0] === service ? [leaf] : []));
  const route = routeOf(service, worst, leaves);
  const { at, reason } = reasonOf(service, own, worst, leaves);
  const where = at === undefined ? service : `${service} at ${at.url}`;
  const what = route === null ? '' : ` (${route})`;
  const [caller] = mostOf(own.flatMap(recentOf).map(({ caller }): Counted => [caller ?? '', 1])) ?? [];
  const callers = caller ? ` Most of its requests come from ${caller}.` : '';
  const ends = times === 1 ? 'request ends' : 'requests end';
  const sentence = `${where}${what} ${reason}: ${times} failing or slow ${ends} there.${callers}`;
  return { sentence, service, url: at?.url ?? null, route, reason, times };
}

/** Reasons that one instance knows, the most telling first. */
const REASONS: readonly ((at: Asked) => string | false | undefined)[] = [
  (at) => told(at, 'event loop blocked', (by) => `was blocked by ${by['function']} (${by['file']}:${by['line']})`),
  ({ document, reason }) => document === null && `does not answer (${reason})`,
  ({ memoryPercent: used }) => used >= NEAR_LIMIT_PERCENT && `uses ${Math.round(used)} % of the memory that it may use`,
  (at) => told(at, 'health check fails', ({ check }) => `fails its health check ${check}`),
  (at) => told(at, 'draining', () => 'is draining'),
];

/** Says what an instance logged, if it did. */
function told({ document }: Asked, msg: string, toText: (event: StoryEvent) => string): string | undefined {
  const event = document?.events.findLast((each) => each.msg === msg);
  return event && toText(event);
}

/** @param leaves calls of the service @returns the reason, with the instance if only one has it */
function reasonOf(
  service: string, own: readonly Asked[], worst: Asked | undefined, leaves: readonly CallTuple[],
): { at?: Asked; reason: string } {
  for (const find of REASONS)
    for (const at of own) {
      const reason = find(at);
      if (reason) return { at, reason };
    }
  if (worst !== undefined && troubleOf(worst) > 0) {
    const isOnlyOne = own.length > 1 && own.every((each) => each === worst || troubleOf(each) === 0);
    return { ...(isOnlyOne && { at: worst }), reason: symptomOf(worst) };
  }
  // A caller without a deadline may count a call as slow that its service, which got a deadline, does not.
  const isSlow = leaves.length > 0 && leaves.every(([, , , status]) => status > 0 && status < 500);
  const symptom = isSlow ? tookUpTo(leaves.map(([, , , , ms]) => ms)) : 'failed';
  if (own.length === 0)
    return { reason: `${symptom}; ask its own monitor listener, too (postern why … http://…/${service}/)` };
  if (isSlow) return { reason: symptom };
  const at = own.find(({ startedAtMs }) => Date.now() - startedAtMs < WINDOW_MS);
  if (at !== undefined) {
    const started = localTime(new Date(at.startedAtMs).toISOString()).slice(0, 8);
    return { at, reason: `was not reached, or broke off; it was started at ${started}` };
  }
  return { reason: 'was not reached, while it has no failure of its own: look at its address' };
}

function symptomOf(asked: Asked): string {
  const most = asked.document?.counts.find(({ service }) => service === asked.service);
  if (most === undefined) return tookUpTo(recentOf(asked).map(({ ms }) => ms));
  const { status, error_code: code } = most;
  if (code === FrameworkErrorCodes.framework_overloaded.name) return 'gets more requests than it can answer';
  return `answered ${status}${code === null ? '' : ` (${code})`}`;
}

function tookUpTo(times: readonly number[]): string {
  return `took up to ${Math.max(...times)} ms`;
}

/** How much failed or was slow in a service itself, not in those that it calls. */
function troubleOf(asked: Asked): number {
  const failed = (asked.document?.counts ?? []).filter(({ service }) => service === asked.service);
  const slow = recentOf(asked).filter((each) => each.status < 500 && leafName(asked, each) === asked.service);
  return failed.reduce((sum, { times }) => sum + times, slow.length);
}

/** The route of a service that fails or is slow most often, by its own account, else by its callers'. */
function routeOf(service: string, worst: Asked | undefined, leaves: readonly CallTuple[]): string | null {
  const own = worst === undefined ? [] : recentOf(worst).filter((each) => leafName(worst, each) === service);
  const routes = own.flatMap(({ method, route }): Counted[] => (route === null ? [] : [[`${method} ${route}`, 1]]));
  const calls = leaves.flatMap(([, method, path]): Counted[] => (path === '' ? [] : [[`${method} ${path}`, 1]]));
  return (mostOf(routes) ?? mostOf(calls))?.[0] ?? null;
}

function recentOf({ document }: Asked): readonly RecentRequest[] {
  return document?.recent ?? [];
}

type Counted = readonly [name: string, times: number];

/** The name with the most times in all; undefined without any. */
function mostOf(counted: readonly Counted[]): Counted | undefined {
  const times = new Map<string, number>();
  for (const [name, more] of counted) times.set(name, (times.get(name) ?? 0) + more);
  return [...times].sort(([, a], [, b]) => b - a)[0];
}
