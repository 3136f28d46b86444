/**
 * What holds in every run. An invariant is a function from a run's plan and log to the texts of its violations. Prove a
 * new one with a mutant (`mutants.ts`), or with a log that violates it (`invariants.test.ts`).
 */

import { FrameworkErrorCodes } from '../../src/base/errors.js';
import { worksOf, type Plan, type Work } from './scenarios.js';
import type { Entry } from './world.js';

/** A finished run, with its log indexed. */
interface Run {
  readonly plan: Plan;
  readonly works: ReadonlyMap<string, Work>;
  /** For how long, in ms, hosts were paused and links cut: nothing on them can be on time. */
  readonly heldUpMs: number;
  of(...whats: readonly string[]): readonly Entry[];
  /** The first entry of this kind for each request, attempt or host. */
  by(key: 'id' | 'uid', ...whats: readonly string[]): ReadonlyMap<string | undefined, Entry>;
}

type Invariant = (run: Run) => Iterable<string>;

/** Packets, ticks and rounding. */
const BOUND_MS = 60;
const CODES = new Map<string, number>(Object.values(FrameworkErrorCodes).map(({ name, value }) => [name, value]));
CODES.set('own', 20_001);

export const INVARIANTS: Readonly<Record<string, Invariant>> = {
  *'a request ends when its client gives up, or before'({ of, by }) {
    const ends = by('id', 'got');
    for (const { id, at, ms = 0 } of of('send')) {
      const took = (ends.get(id)?.at ?? Infinity) - at;
      if (took > ms + BOUND_MS) yield `${id} took ${took} ms of ${ms}`;
    }
  },

  *'a call ends when its caller leaves or has no time left'({ of, by, heldUpMs }) {
    const [runs, gone] = [by('uid', 'run'), by('uid', 'gone')];
    for (const { id, at, uid, from = 0 } of of('called')) {
      const { at: began = 0, ms = Infinity } = runs.get(uid) ?? {};
      const late = at - Math.max(from, Math.min(began + ms, gone.get(uid)?.at ?? Infinity));
      if (late > BOUND_MS + heldUpMs) yield `the call ${id} of ${uid} went on for ${late} ms`;
    }
  },

  *'a POST runs at most once'({ of }) {
    // A caller that is repeated calls again.
    const keys = of('run').filter(({ method }) => method === 'post').map(({ id, parent }) => `${id} for ${parent}`);
    for (const [key, count] of tally(keys)) if (count > 1) yield `${key} ran ${count} times`;
  },

  *'retries of several hops do not multiply'({ of, plan }) {
    if (plan.scenario !== 'retries') return;
    for (const [id, count] of tally(of('run').map((run) => run.id))) if (count > 3) yield `${id} ran ${count} times`;
  },

  *'a drain loses nothing that it can finish'({ of, by, works }) {
    const [runs, attempts] = [by('uid', 'run'), by('uid', 'attempt')];
    const [ended, done, drains] = [by('uid', 'ended'), by('uid', 'done'), by('id', 'drain')];
    const faults = of('crash', 'outage', 'pause', 'cut');
    const broken = new Set(faults.flatMap(({ id, other }) => [id, other]));
    // Below a host that is broken, its callers leave.
    const isBroken = (run: Entry | undefined): boolean =>
      run !== undefined &&
      (broken.has(run.host) || broken.has(attempts.get(run.sent)?.host) || isBroken(runs.get(run.parent)));
    for (const run of of('run').filter(({ id }) => works.get(id)?.chunks === undefined)) {
      const { at = Infinity } = done.get(run.uid) ?? {};
      const { error, statusCode } = ended.get(run.sent) ?? {};
      const isLost = error !== undefined && statusCode === 503 && at < (drains.get(run.host)?.until ?? Infinity);
      if (isLost && !isBroken(run)) yield `${run.id} on ${run.host} got ${error}`;
    }
  },

  *'an update loses no request that can be repeated'({ of, plan, works }) {
    const isHarmless = ({ method, calls }: Work): boolean => method === 'get' && calls.every(isHarmless);
    if (plan.scenario !== 'rolling update') return;
    for (const { id, error, body } of of('got')) {
      if (body === undefined && isHarmless(works.get(id) as Work)) yield `${id} failed with ${error}`;
    }
  },

  *'a repeated attempt waits as long as Retry-After says'({ of, by, works }) {
    const ended = by('uid', 'ended');
    const last = new Map<string, Entry>();
    for (const entry of of('attempt')) {
      const key = `${entry.host} ${entry.id}`;
      const { at = -Infinity, statusCode } = ended.get(last.get(key)?.uid) ?? {};
      last.set(key, entry);
      const isAsked = entry.attempt !== 1 && works.get(entry.id)?.fails === 'late' && statusCode === 503;
      if (isAsked && entry.at - at < 999) yield `${key} was repeated after ${entry.at - at} ms`;
    }
  },

  *'retries stay in their budget'({ of }) {
    const within = (entries: readonly Entry[], from: number, to: number): number =>
      entries.filter(({ at }) => at >= from && at < to).length;
    const all = of('attempt');
    for (const key of new Set(all.map(({ host, service }) => `${host} → ${service}`))) {
      const attempts = all.filter(({ host, service }) => key === `${host} → ${service}`);
      const calls = attempts.filter(({ attempt }) => attempt === 1);
      const retries = attempts.filter(({ attempt }) => attempt !== 1);
      for (const { at } of retries) {
        const count = within(retries, at, at + 10_000);
        const budget = 110 + 0.2 * within(calls, at - 1_000, at + 10_000);
        if (count > budget) yield `${key}: ${count} retries in 10 s from ${at}, with a budget of ${budget}`;
      }
    }
  },

  *'deadlines only shrink'({ of, by, heldUpMs }) {
    const [runs, attempts] = [by('uid', 'run'), by('uid', 'attempt')];
    for (const { id, at, sent, parent, ms = Infinity } of of('run')) {
      const caller = runs.get(parent);
      // An attempt may be sent again on a fresh connection, long after it began.
      const sentAt = Math.max(Number(attempts.get(sent)?.at), at - BOUND_MS - heldUpMs);
      const left = Number(caller?.ms) - (sentAt - Number(caller?.at));
      if (ms > Math.ceil(left) + 1) yield `${id} was given ${ms} ms of ${left}`;
    }
  },

  *'a connection is not used beyond its age'({ of, works, plan: { maxConnectionAge = Infinity } }) {
    // The last request on it may begin just before, and pass through two services.
    const slackMs = 2_000 + 2 * Math.max(0, ...[...works.values()].map(({ ms }) => ms));
    for (const { ms = 0 } of of('end')) if (ms > 1.1 * maxConnectionAge + slackMs) yield `one was used for ${ms} ms`;
  },

  *'a new instance gets its share'({ of, by, plan }) {
    const ends = by('id', 'drain');
    for (const { id, at } of plan.scenario === 'ages' ? of('ready') : []) {
      const end = Math.min(ends.get(id)?.at ?? Infinity, 60_000);
      const [service = ''] = id.split('-');
      const runs = of('run').filter((run) => run.at > at && run.at < end && run.host.startsWith(service));
      const isIdle = runs.every(({ host }) => host !== id);
      const turns = of('open').filter((open) => open.at > at && open.at < end && open.other?.split(' ').includes(id));
      const hasMissed = turns.length < 2 || turns.length > 3 * Number(turns[0]?.other?.split(' ').length);
      // Its turn may just not have come yet.
      if (runs.length > 20 && end > at + 20_000 && isIdle && hasMissed)
        yield `${id} got none of ${runs.length} requests, on ${turns.length} connections`;
    }
  },

  *'a drained instance closes, and gets no more requests'({ of, by }) {
    const closed = by('id', 'closed');
    for (const { id, until = 0 } of of('drain')) {
      const { at = Infinity } = closed.get(id) ?? {};
      if (at > until + 2_000) yield `${id} closed ${at - until} ms too late`;
      const run = of('run').find((entry) => entry.host === id && entry.at > at);
      if (run !== undefined) yield `${run.id} began on ${id} after it was closed`;
    }
  },

  *'no reply goes to another request'({ of }) {
    for (const { id, body } of of('got', 'called')) if (body !== undefined && body !== id) yield `${id} got ${body}`;
  },

  *'a stream is whole, or an error'({ of, works }) {
    for (const { id, count } of of('got')) {
      const { chunks, fails } = works.get(`${id}.0`) ?? works.get(id) ?? {};
      if (count === undefined || chunks === undefined) continue;
      if (fails !== undefined || count !== chunks) yield `${id} has ${count} of ${chunks} chunks`;
    }
  },

  *'an error has the code that a service gave it'({ of }) {
    for (const { id, error = '', code, value } of of('got')) {
      const isCut = /^$|impatient|aborted|terminated|ECONNRESET|premature/i.test(error);
      if (code === undefined ? !isCut : CODES.get(code) !== value) yield `${id} got ${code} = ${value}: ${error}`;
    }
  },

  *'an error that a service throws reaches the client'({ of, plan, works }) {
    for (const { id, statusCode, code } of plan.faults.length === 0 ? of('got') : []) {
      const last = works.get(`${id}.0.0`);
      const isOwn = statusCode === 409 && code === 'own';
      const isRight = last?.fails === 'api' ? isOwn : last?.fails !== undefined || statusCode === undefined;
      if (last !== undefined && !isRight) yield `${id} ended in ${statusCode} ${code}`;
    }
  },

  *'a ping goes as deep as asked'({ of, plan, works }) {
    if (plan.faults.length > 0) return;
    for (const { id, count } of of('got')) {
      const ping = works.get(id)?.ping;
      if (ping !== undefined && count !== ping) yield `${id} went ${count} deep, not ${ping}`;
    }
  },

  *'an overloaded service keeps answering'({ of, plan }) {
    if (plan.scenario !== 'overload') return;
    // The limiter has four seconds to find out what the service can do.
    const perSecond = (entries: readonly Entry[]): number =>
      entries.filter(({ at }) => at >= 9_000 && at < 11_000).length / 2;
    const inTime = perSecond(of('got').filter(({ body }) => body !== undefined));
    const possible = Math.min(40, perSecond(of('send')));
    if (inTime < 0.9 * possible) yield `${inTime} replies a second of ${possible} that are possible`;
  },

  *'counters agree with what happened'({ of }) {
    for (const { id, attempts, requests = 0 } of of('left')) {
      const sent = of('attempt').filter(({ host }) => host === id).length;
      const run = of('run').filter(({ host }) => host === id).length;
      if (attempts !== sent) yield `${id} counts ${attempts} attempts of ${sent}`;
      if (requests < run) yield `${id} counts ${requests} requests of ${run}`;
    }
  },

  *'nothing is left at the end'({ of }) {
    for (const { id, sockets = 0, tasks = 0, timers = 0 } of of('closed', 'left', 'end')) {
      if (sockets + tasks + timers > 0) yield `${id} has ${sockets} sockets, ${tasks} tasks, ${timers} timers`;
    }
  },
};

function tally(keys: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** @returns for each invariant that is violated its name and one example */
export function check(plan: Plan, log: readonly Entry[]): string[] {
  const run: Run = {
    plan,
    works: new Map(worksOf(plan).map((work) => [work.id, work])),
    heldUpMs: plan.faults.reduce((sum, { kind, ms }) => sum + (kind === 'pause' || kind === 'cut' ? ms : 0), 0),
    of: (...whats) => log.filter(({ what }) => whats.includes(what)),
    by: (key, ...whats) => new Map(run.of(...whats).toReversed().map((entry) => [entry[key], entry])),
  };
  return Object.entries(INVARIANTS).flatMap(([name, invariant]) => {
    const [example, ...more] = invariant(run);
    return example === undefined ? [] : [`${name}: ${example}${more.length === 0 ? '' : ` (and ${more.length} more)`}`];
  });
}
