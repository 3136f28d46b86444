/** A model of clients and services in virtual time, against which the limiter of a route is run alone. */

import { setImmediate as turn } from 'node:timers/promises';
import { RouteLimiter } from '../../src/overload/route-limiter.js';
import { SharedLoad } from '../../src/overload/trial.js';
import { createRandom, type Random } from '../support/random.js';

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** Events in the order of their time. */
export class World {
  now = 0;
  /** When the present event was due: before now, if the CPU was busy. */
  dueAt = 0;
  readonly load = new SharedLoad();
  readonly random: Random;
  readonly #heap: Event[] = [];
  #order = 0;

  constructor(seed: number) {
    this.random = createRandom(seed);
  }

  after(ms: number, run: () => void): void {
    this.at(this.now + ms, run);
  }

  at(at: number, run: () => void): Event {
    const heap = this.#heap;
    const event = { at, order: (this.#order += 1), run, isCancelled: false };
    let i = heap.push(event) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = event;
    return event;
  }

  runUntil(ms: number): void {
    while (this.#runNext(ms));
    this.now = this.dueAt = ms;
  }

  /** As {@link runUntil}; promises and streams that an event starts are done before the next event. */
  async play(ms: number): Promise<void> {
    while (this.#runNext(ms)) await turn();
    this.now = this.dueAt = ms;
  }

  /** @returns false if nothing happens until then */
  #runNext(ms: number): boolean {
    if (this.#heap.length === 0 || this.#heap[0]!.at > ms) return false;
    const { at, run, isCancelled } = this.#take();
    if (isCancelled) return true;
    // A handler that keeps the CPU busy moves the time.
    this.dueAt = at;
    this.now = Math.max(this.now, at);
    run();
    return true;
  }

  #take(): Event {
    const heap = this.#heap;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return first;
  }

  /** A time between two events of a Poisson process. */
  exponential(meanMs: number): number {
    return -Math.log(1 - this.random.next()) * meanMs;
  }

  between(low: number, high: number): number {
    return low + this.random.next() * (high - low);
  }

  lognormal(medianMs: number, sigma: number): number {
    return lognormal(this.random, medianMs, sigma);
  }
}

export function lognormal(random: Random, medianMs: number, sigma: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  return medianMs * Math.exp(sigma * normal);
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** One request, as its service sees it. */
export class Request {
  isAborted = false;
  isOver = false;
  readonly #onAbort: (() => void)[] = [];

  constructor(readonly deadlineAt: number, readonly respond: (status: number) => void) {}

  onAbort(run: () => void): void {
    this.#onAbort.push(run);
  }

  abort(): void {
    if (this.isOver || this.isAborted) return;
    this.isAborted = true;
    for (const run of this.#onAbort) run();
  }

  reply(status: number): void {
    if (this.isOver) return;
    this.isOver = true;
    if (!this.isAborted) this.respond(status);
  }
}

export type Done = (ending?: 'done' | 'failed' | 'cancelled') => void;
export type Work = (request: Request, done: Done) => void;

/** A route behind its limiter. */
export class Service {
  readonly limiter: RouteLimiter;
  refused = 0;
  constructor(
    readonly world: World,
    readonly work: Work,
  ) {
    this.limiter = new RouteLimiter(world.load);
  }

  arrive(request: Request): void {
    const { world, limiter } = this;
    const patienceMs = request.deadlineAt - world.now;
    if (!limiter.admits(world.now, patienceMs)) {
      this.refused += 1;
      request.reply(503);
      return;
    }
    const ticket = limiter.begin(world.now, patienceMs);
    request.onAbort(() => limiter.abandon(ticket, world.now));
    this.work(request, (ending = 'done') => {
      limiter.end(ticket, world.now, ending);
      request.reply(ending === 'done' ? 200 : 503);
    });
  }
}

/** Any number at a time. */
export function endless(world: World, serviceMs: () => number): Work {
  return (_request, done) => world.after(serviceMs(), done);
}

/** A pool of connections with a queue. @param heedsSignal whether a request that is aborted leaves the queue */
export function pool(world: World, size: number, serviceMs: () => number, heedsSignal = false): Work {
  let busy = 0;
  const queue: { request: Request; done: Done }[] = [];
  const next = (): void => {
    for (;;) {
      if (busy >= size) return;
      const job = queue.shift();
      if (job === undefined) return;
      if (heedsSignal && job.request.isAborted) {
        job.done('cancelled');
        continue;
      }
      busy += 1;
      world.after(serviceMs(), () => {
        busy -= 1;
        job.done();
        next();
      });
    }
  };
  return (request, done) => {
    queue.push({ request, done });
    next();
  };
}

/** Processor sharing: all requests at once, each of them the slower the more there are. */
export function sharing(world: World, serviceMs: () => number): Work {
  const active: { leftMs: number; readonly done: Done }[] = [];
  let at = 0;
  let turn = 0;
  const advance = (): void => {
    for (const job of active) job.leftMs -= (world.now - at) / active.length;
    at = world.now;
  };
  const schedule = (): void => {
    const mine = (turn += 1);
    const nextMs = Math.max(0, Math.min(...active.map(({ leftMs }) => leftMs)) * active.length);
    if (active.length > 0) world.after(nextMs, () => {
      if (mine !== turn) return;
      advance();
      const over = active.filter(({ leftMs }) => leftMs <= 1e-6);
      for (const job of over) active.splice(active.indexOf(job), 1);
      schedule();
      for (const { done } of over) done();
    });
  };
  return (_request, done) => {
    advance();
    active.push({ leftMs: serviceMs(), done });
    schedule();
  };
}

/** The CPU: one request at a time, and each request that arrives takes a little of it first. */
export function cpu(
  world: World,
  serviceMs: number,
  arrivalMs: number,
): { work: Work; arrive: (service: Service) => { arrive(request: Request): void } } {
  let debtMs = 0;
  const inner = pool(world, 1, () => {
    const ms = serviceMs + debtMs;
    debtMs = 0;
    return ms;
  });
  return {
    work: inner,
    arrive: (service) => ({
      arrive: (request) => {
        debtMs += arrivalMs;
        service.arrive(request);
      },
    }),
  };
}

/** A call of another service, with the time that is left. */
export function call(world: World, next: { arrive(request: Request): void }, retries: number): Work {
  return (request, done) => {
    const attempt = (left: number): void => {
      const inner = new Request(request.deadlineAt, (status) => {
        if (status === 200) done();
        else if (left > 0 && world.now < request.deadlineAt)
          world.after(world.between(10, 50), () => attempt(left - 1));
        else done('cancelled');
      });
      request.onAbort(() => {
        if (!inner.isOver) done('cancelled');
        inner.abort();
      });
      next.arrive(inner);
    };
    attempt(retries);
  };
}

/** What clients saw, second by second. */
export interface Seen {
  readonly good: number[];
  readonly refused: number[];
  readonly late: number[];
  readonly times: number[][];
}

function newSeen(): Seen {
  return { good: [], refused: [], late: [], times: [] };
}

/** How clients behave. */
export interface Clients {
  /** Mean time between two requests, by the time. */
  readonly everyMs: (now: number) => number;
  /** How long each waits. */
  readonly patienceMs: () => number;
  /** Whether the deadline is sent; else the client only disconnects. */
  readonly statesDeadline: boolean;
  readonly isRegular?: boolean;
  readonly burst?: number;
}

/** Lets clients send requests for a while. */
export function send(
  world: World,
  target: { arrive(request: Request): void },
  clients: Clients,
  untilMs: number,
  seen = newSeen(),
): Seen {
  const bump = (counts: number[], at: number): void => {
    const second = Math.floor(at / 1000);
    counts[second] = (counts[second] ?? 0) + 1;
  };
  const one = (): void => {
    const startedAt = world.dueAt;
    const patience = clients.patienceMs();
    const request = new Request(clients.statesDeadline ? startedAt + patience : Infinity, (status) => {
      const isGood = status === 200 && world.now <= startedAt + patience;
      bump(isGood ? seen.good : status === 503 ? seen.refused : seen.late, world.now);
      if (isGood) (seen.times[Math.floor(world.now / 1000)] ??= []).push(world.now - startedAt);
    });
    if (patience !== Infinity) world.at(startedAt + patience, () => {
      if (!request.isOver) bump(seen.late, world.now);
      request.abort();
    });
    target.arrive(request);
  };
  const loop = (): void => {
    const { dueAt } = world;
    if (dueAt >= untilMs) return;
    for (let i = 0; i < (clients.burst ?? 1); i += 1) one();
    const every = clients.everyMs(dueAt);
    world.at(dueAt + (clients.isRegular ? every : world.exponential(every)), loop);
  };
  loop();
  return seen;
}
