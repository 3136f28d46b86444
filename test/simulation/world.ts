/**
 * A world that is a function of its seed: time, chance, hosts, and a log of all that happens.
 *
 * Time moves from event to event. Before each, everything that the one before has started is done: promises and ticks
 * run to their end, and nothing here waits for a thread, a file or a real timer.
 */

import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { createHash, type Hash } from 'node:crypto';
import { createRandom, type Random } from '../support/random.js';

const nativeImmediate = setImmediate;

/** One machine. What it does waits while it is paused, and is lost once it has crashed. */
export interface Host {
  readonly name: string;
  readonly service: string;
  pausedUntil: number;
  hasCrashed: boolean;
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly host: Host | undefined;
  readonly run: () => void;
  isCancelled: boolean;
}

/** One line of the log: what happened, when, on which host, to which request or attempt. */
export interface Entry {
  readonly at: number;
  readonly host: string;
  readonly what: string;
  readonly id: string;
  readonly more: Readonly<Record<string, unknown>>;
}

// One for all worlds: Node.js visits every storage with each promise.
const CURRENT = new AsyncLocalStorage<Host>();

export class World {
  now = 0;
  readonly random: Random;
  readonly log: Entry[] = [];
  readonly #hash: Hash = createHash('sha256');
  /** A binary heap, earliest first. */
  readonly #events: Event[] = [];
  #order = 0;

  constructor(seed: number) {
    this.random = createRandom(seed);
  }

  get host(): Host | undefined {
    return CURRENT.getStore();
  }

  get hash(): string {
    return this.#hash.copy().digest('hex');
  }

  /** How many timers and packets are still to come to some hosts. */
  pendingOf(isMeant: (host: Host | undefined) => boolean): number {
    return this.#events.filter(({ isCancelled, host }) => !isCancelled && isMeant(host)).length;
  }

  write(what: string, id: string, more: Entry['more'] = {}, host = this.host?.name ?? ''): void {
    const entry = { at: this.now, host, what, id, more };
    this.log.push(entry);
    this.#hash.update(JSON.stringify(entry));
  }

  /** Runs something as this host. */
  on<T>(host: Host, run: () => T): T {
    return CURRENT.run(host, run);
  }

  /** @param host the one that it happens to; the current one by default */
  at(at: number, run: () => void, host = this.host): Event {
    const event: Event = { at, order: this.#order++, host, run, isCancelled: false };
    this.#push(event);
    return event;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.at(this.now + ms, resolve));
  }

  /** Runs until nothing is left to happen, or until this time. */
  async run(until = Infinity): Promise<void> {
    for (;;) {
      await new Promise((resolve) => nativeImmediate(resolve));
      const event = this.#events[0];
      if (event === undefined || event.at > until) break;
      this.#pop();
      const { host, isCancelled } = event;
      if (isCancelled || host?.hasCrashed) continue;
      if (host !== undefined && host.pausedUntil > Math.max(this.now, event.at)) {
        this.#push({ ...event, at: host.pausedUntil, order: this.#order++ });
        continue;
      }
      this.now = Math.max(this.now, event.at);
      if (host === undefined) event.run();
      else this.on(host, event.run);
    }
    if (until !== Infinity) this.now = until;
  }

  #push(event: Event): void {
    const heap = this.#events;
    let index = heap.push(event) - 1;
    for (
      let parent = (index - 1) >> 1;
      index > 0 && isBefore(event, heap[parent] as Event);
      parent = (index - 1) >> 1
    ) {
      heap[index] = heap[parent] as Event;
      index = parent;
    }
    heap[index] = event;
  }

  #pop(): void {
    const heap = this.#events;
    const last = heap.pop() as Event;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child += 1;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[index] = heap[child] as Event;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at === b.at ? a.order < b.order : a.at < b.at;
}

/** What `setTimeout` and the like return. */
class Timer {
  #event: Event | undefined;
  readonly #run: () => void;

  constructor(readonly world: World, callback: () => void, readonly ms: number, repeats: boolean) {
    this.#run = AsyncResource.bind(() => {
      if (repeats) this.refresh();
      callback();
    });
    this.refresh();
  }

  refresh(): this {
    this.close();
    this.#event = this.world.at(this.world.now + this.ms, this.#run);
    return this;
  }

  close(): this {
    if (this.#event !== undefined) this.#event.isCancelled = true;
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** The world that Postern's clock is in. */
let current = new World(0);

export function enter(world: World): void {
  current = world;
}

/** Replaces the globals that Postern's clock takes when it is loaded, for the time of loading it. */
export function loadInWorld<T>(load: () => T): T {
  const start = (repeats: boolean) => (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    new Timer(current, () => callback(...args), Math.max(ms, 1), repeats);
  const startNow = (callback: (...args: unknown[]) => void, ...args: unknown[]): Timer =>
    new Timer(current, () => callback(...args), 0, false);
  const stop = (timer?: Timer): void => void timer?.close();
  class VirtualDate extends Date {
    constructor(...args: [] | [number | string | Date]) {
      super(args[0] ?? EPOCH + current.now);
    }
    static override now(): number {
      return EPOCH + current.now;
    }
  }
  const fakes = {
    setTimeout: start(false), setInterval: start(true), setImmediate: startNow,
    clearTimeout: stop, clearInterval: stop, clearImmediate: stop, Date: VirtualDate,
  };
  const crypto = process.getBuiltinModule('node:crypto') as unknown as Record<string, unknown>;
  const bytes = (count: number): Buffer => Buffer.from(Array.from({ length: count }, () => current.random.int(256)));
  // These are looked up when they are used; the clock takes the others for good.
  Object.assign(crypto, { randomBytes: bytes, randomUUID: () => bytes(16).toString('hex') });
  const real = Object.fromEntries(Object.keys(fakes).map((name) => [name, globalThis[name as keyof typeof fakes]]));
  const [now, random] = [performance.now, Math.random];
  Object.assign(globalThis, fakes);
  Object.assign(Math, { random: () => current.random.next() });
  Object.defineProperty(performance, 'now', { value: () => current.now, configurable: true, writable: true });
  try {
    return load();
  } finally {
    Object.assign(globalThis, real);
    Object.assign(Math, { random });
    Object.defineProperty(performance, 'now', { value: now, configurable: true, writable: true });
  }
}

const EPOCH = Date.UTC(2026, 0, 1);
