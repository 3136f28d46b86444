/**
 * A world that is a function of its seed: time, chance, hosts, and a log of all that happens.
 *
 * Time moves from event to event. Before each, everything that the one before has started is done: promises and ticks
 * run to their end, and nothing here waits for a thread, a file or a real timer.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { createRandom } from '../support/random.js';
import { clockOf, type SimulatedClock } from '../support/simulated-clock.js';

const nativeImmediate = setImmediate;

/** One machine. Its events wait while it is paused, and are lost once it has crashed. */
export interface Host {
  readonly name: string;
  readonly service: string;
  pausedUntil: number;
  hasCrashed: boolean;
}

interface Event {
  at: number;
  readonly host: Host;
  readonly run: () => void;
  isCancelled: boolean;
}

/**
 * Fields that only some entries have. `uid` is an attempt of a call or a run of a handler; `sent` is the attempt that a
 * handler runs for, `parent` the run that has made the call. `body` is the request that a reply answers. `ms` is a
 * deadline, a patience or an age; a call began at `from`, a drain ends at `until`. `count` has lines or levels.
 * At the end, `attempts` and `requests` are what a host has counted, `sockets`, `tasks` and `timers` what is left.
 */
type Text = 'uid' | 'sent' | 'parent' | 'body' | 'method' | 'service' | 'code' | 'error' | 'other';
type Numeric =
  | 'ms' | 'from' | 'until' | 'count' | 'attempt' | 'statusCode' | 'value'
  | 'attempts' | 'requests' | 'sockets' | 'tasks' | 'timers';
export type Details = Readonly<Partial<Record<Text, string | undefined> & Record<Numeric, number | undefined>>>;

/** One line of the log: what happened, when, on which host, to which request or host. */
export type Entry = Details & Readonly<Record<'host' | 'what' | 'id', string> & Record<'at', number>>;

/** Where balancers and operators are. */
export const OUTSIDE: Host = { name: '', service: '', pausedUntil: 0, hasCrashed: false };

// One for all worlds: Node.js visits every storage with each promise.
const CURRENT = new AsyncLocalStorage<Host>();

class World {
  now = 0;
  readonly random;
  readonly log: Entry[] = [];
  /** The next one is the last. */
  readonly #events: Event[] = [];

  constructor(seed: number) {
    this.random = createRandom(seed);
  }

  /** The host whose code runs. */
  get host(): Host {
    return CURRENT.getStore() ?? OUTSIDE;
  }

  get hash(): string {
    return createHash('sha256').update(JSON.stringify(this.log)).digest('hex');
  }

  /** How many timers and packets are still to come to hosts that live. */
  get pending(): number {
    return this.#events.filter(({ isCancelled, host }) => !isCancelled && !host.hasCrashed).length;
  }

  write(what: string, id: string, details: Details = {}): void {
    this.log.push({ at: this.now, host: this.host.name, what, id, ...details });
  }

  /** Runs something as this host. */
  on<T>(host: Host, run: () => T): T {
    return CURRENT.run(host, run);
  }

  /** @param host whose event it is. Default: the host whose code runs */
  at(at: number, run: () => void, host = this.host): Event {
    return this.#add({ at, host, run, isCancelled: false });
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.at(this.now + ms, resolve));
  }

  /** Lets everything happen up to this time. */
  async run(until: number): Promise<void> {
    for (;;) {
      await new Promise((resolve) => nativeImmediate(resolve));
      const event = this.#next();
      if (event === undefined || event.at > until) {
        if (event !== undefined) this.#events.push(event);
        break;
      }
      const { at, host, run } = event;
      if (host.pausedUntil > at) {
        event.at = host.pausedUntil;
        this.#add(event);
      } else {
        this.now = at;
        this.on(host, run);
      }
    }
    this.now = until;
  }

  /** Of events at one time, the first added comes first. */
  #add(event: Event): Event {
    const events = this.#events;
    let [low, high] = [0, events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((events[middle]?.at ?? 0) > event.at) low = middle + 1;
      else high = middle;
    }
    events.splice(low, 0, event);
    return event;
  }

  #next(): Event | undefined {
    for (;;) {
      const event = this.#events.pop();
      if (event === undefined || (!event.isCancelled && !event.host.hasCrashed)) return event;
    }
  }
}

/** The world of the current run. */
export let world: World = new World(0);

export function createWorld(seed: number): void {
  world = new World(seed);
}

/** Takes the place of `src/base/clock.ts`. */
export const clock: SimulatedClock = clockOf(() => world);
