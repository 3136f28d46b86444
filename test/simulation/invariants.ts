/**
 * What holds in every run, checked on its log and on what is left at its end.
 *
 * An invariant is a function from a finished run to the texts of its violations. It may look at the plan, the log, the
 * metrics of the applications and the network. Add one to `INVARIANTS`, then prove it with a mutant (`mutants.ts`).
 */

import { FrameworkErrorCodes, type Postern } from 'postern';
import { DRAIN, type Mesh, type Plan, type Work } from './mesh.js';
import type { Entry } from './world.js';

/** A finished run, with its log indexed. */
interface Run {
  readonly plan: Plan;
  readonly mesh: Mesh;
  readonly log: readonly Entry[];
  /** Entries by what happened, and by their id. */
  of(what: string): readonly Entry[];
  first(what: string, id: string): Entry | undefined;
}

type Invariant = (run: Run) => Iterable<string>;

/** Packets, ticks and rounding, in ms. */
const BOUND_MS = 60;
const OWN: ReadonlyMap<string, number> = new Map([
  ['own', 20_001],
  ...Object.values(FrameworkErrorCodes).map(({ name, value }) => [name, value] as const),
]);

/** For how long hosts were paused, and links cut, in all: nothing on them can be on time. */
const heldUp = ({ plan }: Run): number =>
  plan.faults.reduce((sum, { kind, ms }) => sum + (kind === 'pause' || kind === 'cut' ? ms : 0), 0);
const worksOf = ({ requests }: Plan): Map<string, Work> => {
  const all = new Map<string, Work>();
  const add = (work: Work): void => void all.set(work.id, work).get(work.calls.map(add).join());
  requests.forEach(({ work }) => add(work));
  return all;
};

export const INVARIANTS: Readonly<Record<string, Invariant>> = {
  *'every request of a client ends, at the latest when its patience does'({ of, first, plan }) {
    for (const { id, at, more } of of('send')) {
      const end = ['answered', 'failed', 'streamed', 'pong', 'mixed up'].map((what) => first(what, id))
        .find((entry) => entry !== undefined);
      if (end === undefined) yield `${id} has no end`;
      else if (end.at > at + Number(more['patience']) + BOUND_MS)
        yield `${id} ended ${end.at - at} ms after it was sent (${plan.scenario})`;
    }
  },

  *'a call ends by the deadline of the request that makes it'(run) {
    const runs = new Map(run.of('run').map((entry) => [entry.more['uid'], entry]));
    for (const { id, at, more } of run.of('called')) {
      const parent = runs.get(more['parent']);
      const deadlineMs = parent?.more['deadlineMs'];
      if (parent === undefined || deadlineMs === undefined) continue;
      const late = at - Math.max(run.first('call', id)?.at ?? 0, parent.at + Number(deadlineMs));
      if (late > BOUND_MS + heldUp(run)) yield `the call ${id} ended ${late} ms too late`;
    }
  },

  *'a request that is not idempotent runs at most once'({ of, plan }) {
    const works = worksOf(plan);
    const counts = new Map<string, number>();
    for (const { id } of of('run')) counts.set(id, (counts.get(id) ?? 0) + 1);
    // A caller that is repeated calls again.
    const mayRepeat = (id: string): boolean => id.split('.')
      .some((_, i, parts) => works.get(parts.slice(0, i + 1).join('.'))?.method === 'GET' && i < parts.length - 1);
    for (const [id, count] of counts)
      if (count > 1 && works.get(id)?.method === 'POST' && !mayRepeat(id)) yield `POST ${id} ran ${count} times`;
  },

  *'what a service has begun before its drain is not lost'(run) {
    const { of, first } = run;
    const [ended, attempts, done] = ['ended', 'attempt', 'done'].map(
      (what) => new Map(of(what).map((entry) => [what === 'done' ? String(entry.more['uid']) : entry.id, entry])),
    );
    const broken = [...of('crash'), ...of('outage'), ...of('cut'), ...of('pause')];
    for (const { id, at, host, more } of of('run')) {
      const uid = String(more['uid']);
      const [end, attempt, finish] = [ended?.get(uid), attempts?.get(uid), done?.get(uid)];
      if (broken.length > 0 || end === undefined || attempt === undefined || finish === undefined) continue;
      const drain = first('drain', host);
      if (drain !== undefined && finish.at > Number(drain.more['until'])) continue;
      if (end.more['failedWith'] === 503)
        yield `${id} (${uid}) ran on ${host} from ${at}, and its caller got nothing${drain === undefined ? '' : ` (drain at ${drain.at})`}`;
    }
  },

  *'an update loses no request that can be repeated'({ of, plan }) {
    if (plan.scenario !== 'rolling update') return;
    const works = worksOf(plan);
    const isHarmless = (work: Work): boolean => work.method === 'GET' && work.calls.every(isHarmless);
    for (const { id, more } of of('failed'))
      if (isHarmless(works.get(id) as Work)) yield `${id} failed with ${JSON.stringify(more)}`;
  },

  *'a repeated attempt waits as long as Retry-After says'({ of, plan }) {
    const works = worksOf(plan);
    const ends = new Map(of('ended').map((entry) => [entry.id, entry]));
    const before = new Map<string, Entry>();
    for (const entry of of('attempt')) {
      const key = `${entry.host} ${String(entry.more['id'])}`;
      const last = before.get(key);
      before.set(key, entry);
      const end = last === undefined ? undefined : ends.get(last.id);
      const isAsked = works.get(String(entry.more['id']))?.fails === 'late' && end?.more['statusCode'] === 503;
      if (Number(entry.more['attempt']) > 1 && isAsked && entry.at - (end?.at ?? 0) < 999)
        yield `${key} was repeated after ${entry.at - (end?.at ?? 0)} ms`;
    }
  },

  *'retries of several hops do not multiply'({ of, plan }) {
    if (plan.scenario !== 'retries') return;
    const counts = new Map<string, number>();
    for (const { id } of of('run')) counts.set(id, (counts.get(id) ?? 0) + 1);
    for (const [id, count] of counts) if (count > 3) yield `${id} ran ${count} times`;
  },

  *'the calls of a request end when its client leaves'(run) {
    const left = new Map(run.of('left').map((entry) => [entry.id, entry]));
    for (const { id, at, more } of run.of('called')) {
      const leaving = left.get(String(more['parent']));
      const late = at - Math.max(leaving?.at ?? Infinity, run.first('call', id)?.at ?? 0);
      if (late > BOUND_MS + heldUp(run)) yield `the call ${id} went on for ${late} ms after the client had left`;
    }
  },

  *'a connection is not used beyond its age'({ plan, mesh }) {
    const { maxConnectionAge = Infinity } = plan;
    const { oldestMs } = mesh.network;
    // The last request on it may begin just before.
    if (oldestMs > 1.1 * maxConnectionAge + 2_000)
      yield `one was used for ${oldestMs} ms, with an age of ${maxConnectionAge}`;
  },

  *'a new instance gets its share'({ of, plan, mesh }) {
    if (plan.scenario !== 'ages') return;
    for (const { id, at } of of('ready')) {
      const end = Math.min(of('drain').find((entry) => entry.id === id)?.at ?? Infinity, 60_000);
      const hasRun = of('run').some(({ host }) => host === id);
      if (end - at > 20_000 && !hasRun)
        yield `${id} of ${mesh.instances.length} was ready from ${at} to ${end}, and was asked nothing`;
    }
  },

  *'no reply goes to another request'({ of }) {
    for (const { id, more } of of('mixed up')) yield `${id} got ${JSON.stringify(more)}`;
  },

  *'a stream is whole, or an error'({ of, plan }) {
    const works = worksOf(plan);
    for (const { id, more } of of('streamed')) {
      const source = works.get(`${id}.0`) ?? works.get(id);
      if (source?.fails !== undefined || more['lines'] !== source?.chunks)
        yield `${id} has ${String(more['lines'])} of ${source?.chunks} chunks, and no error`;
    }
  },

  *'retries stay in their budget'({ of }) {
    const attempts = new Map<string, { calls: number[]; retries: number[] }>();
    for (const { at, host, more } of of('attempt')) {
      const key = `${host} → ${String(more['service'])}`;
      const found = attempts.get(key) ?? { calls: [], retries: [] };
      attempts.set(key, found);
      (Number(more['attempt']) > 1 ? found.retries : found.calls).push(at);
    }
    const within = (times: readonly number[], from: number, to: number): number =>
      times.filter((at) => at >= from && at < to).length;
    for (const [key, { calls, retries }] of attempts) {
      for (let from = 0; retries.length > 0 && from <= (retries.at(-1) ?? 0); from += 1_000) {
        const count = within(retries, from, from + 10_000);
        const budget = 0.2 * within(calls, from - 1_000, from + 10_000) + 110;
        if (count > budget) yield `${key}: ${count} retries in 10 s from ${from}, with a budget of ${budget}`;
      }
    }
  },

  *'deadlines only shrink'({ of }) {
    const runs = new Map(of('run').map((entry) => [entry.more['uid'], entry]));
    const begun = new Map(of('call').map((entry) => [entry.id, entry]));
    for (const { id, more } of runs.values()) {
      const call = begun.get(String(more['call']));
      const parent = call === undefined ? undefined : runs.get(call.more['parent']);
      const [own, outer] = [more['deadlineMs'], parent?.more['deadlineMs']];
      if (call === undefined || parent === undefined || outer === undefined) continue;
      const leftMs = Number(outer) - (call.at - parent.at);
      if (own === undefined || Number(own) > Math.ceil(leftMs) + 1)
        yield `${id} was given ${String(own)} ms of ${leftMs}`;
    }
  },

  *'an error has the code that a service gave it'({ of }) {
    for (const { id, more } of of('failed')) {
      if (more['aborted'] === true) continue;
      if (
        more['error'] !== undefined &&
        more['code'] === undefined &&
        !/aborted|terminated|ECONNRESET|premature/i.test(String(more['error']))
      )
        yield `${id} failed without a code: ${String(more['error'])}`;
      if (more['code'] !== undefined && OWN.get(String(more['code'])) !== more['value'])
        yield `${id} has ${String(more['code'])} = ${String(more['value'])}`;
    }
  },

  *'an error that a service throws reaches the client'({ first, plan }) {
    if (plan.faults.length > 0 || plan.scenario === 'overload') return;
    for (const { work } of plan.requests) {
      const failed = first('failed', work.id);
      const last = work.calls[0]?.calls[0];
      if (last === undefined || work.chunks !== undefined) continue;
      if (last.fails === 'api' && (failed?.more['statusCode'] !== 409 || failed.more['code'] !== 'own'))
        yield `${work.id} ended in ${JSON.stringify(failed?.more)}, not in 409 own`;
      if (last.fails === undefined && failed !== undefined)
        yield `${work.id} failed with ${JSON.stringify(failed.more)}, and nothing was wrong`;
    }
  },

  *'a ping goes as deep as it was told'({ of, plan }) {
    if (plan.faults.length > 0) return;
    const depths = new Map(plan.requests.map(({ work, ping }) => [work.id, ping]));
    for (const { id, more } of of('pong'))
      if (more['depth'] !== depths.get(id))
        yield `${id} went ${String(more['depth'])} deep, not ${String(depths.get(id))}`;
  },

  *'an overloaded service keeps answering'({ of, plan }) {
    if (plan.scenario !== 'overload') return;
    // Five times what a pool of four can do, from the fourth second on.
    const inTime = of('answered').filter(({ at }) => at >= 9_000 && at < 13_000).length / 4;
    if (inTime < 36) yield `${inTime.toFixed(1)} replies a second of 40 that are possible`;
  },

  *'an instance that is drained is closed, and asked no more'({ of, first }) {
    for (const { id, at } of of('drain')) {
      const drained = first('drained', id);
      if (drained === undefined || drained.at > at + DRAIN.delay + DRAIN.timeout + 2_000)
        yield `${id} was told to drain at ${at}, and was closed at ${String(drained?.at)}`;
      else
        for (const { host, at: began, id: work } of of('run'))
          if (host === id && began > drained.at) yield `${work} began on ${id} after it was closed`;
    }
  },

  *'counters agree with what happened'({ of, mesh }) {
    for (const { host, app } of [...mesh.instances, ...mesh.clients]) {
      if (host.hasCrashed) continue;
      const counted = sumOf(app, 'service_request_duration_seconds_count', /./);
      const attempts = of('attempt').filter((entry) => entry.host === host.name).length;
      if (counted !== attempts) yield `${host.name} counts ${counted} attempts of ${attempts}`;
      const runs = of('run').filter((entry) => entry.host === host.name).length;
      const requests = sumOf(app, 'http_request_duration_seconds_count', /route="\/do\/:id"/);
      if (requests < runs) yield `${host.name} counts ${requests} requests of ${runs}`;
    }
  },

  *'after the last client nothing is left'({ mesh, of }) {
    for (const { host, app } of [...mesh.instances, ...mesh.clients]) {
      const active = sumOf(app, 'active_task_count', /^/);
      if (!host.hasCrashed && active > 0) yield `${host.name} has ${active} active tasks`;
    }
    for (const { id, more } of [...of('closed'), ...of('drained')])
      if (more['sockets'] !== 0) yield `${id} has ${String(more['sockets'])} sockets after its close`;
    if (mesh.network.open.size > 0) yield `${mesh.network.open.size} sockets are open`;
    const timers = mesh.world.pendingOf((host) => host?.hasCrashed !== true);
    if (timers > 0) yield `${timers} timers are set`;
  },
};

function sumOf(app: Postern, name: string, labels: RegExp): number {
  const samples = [...app.metrics.expose().matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (.*)$`, 'gm'))];
  return samples.filter(([, given = '']) => labels.test(given)).reduce((sum, [, , value]) => sum + Number(value), 0);
}

/** @returns what is violated, each with one example */
export function check(plan: Plan, mesh: Mesh): string[] {
  const { log } = mesh.world;
  const byWhat = new Map<string, Entry[]>();
  for (const entry of log) {
    const same = byWhat.get(entry.what);
    if (same === undefined) byWhat.set(entry.what, [entry]);
    else same.push(entry);
  }
  const run: Run = {
    plan,
    mesh,
    log,
    of: (what) => byWhat.get(what) ?? [],
    first: (what, id) => byWhat.get(what)?.find((entry) => entry.id === id),
  };
  return Object.entries(INVARIANTS).flatMap(([name, invariant]) => {
    const [example, ...more] = invariant(run);
    return example === undefined ? [] : [`${name}: ${example}${more.length === 0 ? '' : ` (and ${more.length} more)`}`];
  });
}
