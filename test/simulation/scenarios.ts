/** Ten scenarios; each draws a plan from a seed. A plan is pure data. */

import { createRandom, several } from '../support/random.js';

/** What a service does for one request, and what it asks of others for it. Times are in ms. */
export interface Work {
  readonly id: string;
  readonly service: string;
  readonly method: 'get' | 'post';
  readonly ms: number;
  readonly timeout: number;
  readonly retry: number;
  readonly calls: readonly Work[];
  /** An error of the service's own, one of the server's (`late`: with Retry-After), or a bug. */
  readonly fails?: 'api' | 'http' | 'late' | 'bug' | undefined;
  /** Whether the reply does without what this call would have returned. */
  readonly optional?: boolean;
  /** A stream of so many chunks, or a ping of this depth, in place of JSON. */
  readonly chunks?: number;
  readonly ping?: number;
}

export interface Fault {
  readonly at: number;
  readonly kind: 'crash' | 'outage' | 'pause' | 'cut' | 'start' | 'stop';
  readonly service: string;
  /** Which of the instances that are ready, in the order in which they were started. */
  readonly instance: number;
  readonly ms: number;
  /** The service or client at the other end of a link. */
  readonly other?: string;
}

interface Request {
  readonly at: number;
  readonly client: number;
  readonly patience: number;
  readonly work: Work;
}

export interface Plan {
  readonly scenario: string;
  readonly seed: number;
  /** Each may call the next, the last one the first. */
  readonly services: readonly { readonly name: string; readonly instances: number }[];
  readonly requests: readonly Request[];
  readonly faults: readonly Fault[];
  /** How many handlers of an instance work at a time; the others wait. */
  readonly pool?: number;
  readonly maxConnectionAge?: number;
}

/** All works of a plan, with those that they call. */
export function worksOf({ requests }: Plan): Work[] {
  const withCalls = (work: Work): Work[] => [work, ...work.calls.flatMap(withCalls)];
  return requests.flatMap(({ work }) => withCalls(work));
}

interface Scenario {
  /** A request passes through all of them, one after the other. */
  readonly services: readonly string[];
  readonly instances: readonly [least: number, most: number];
  readonly count: number;
  readonly overMs: number;
  readonly patience: () => number;
  /** @param depth how many services are before this one @param share from 0 to 1, one for each plan */
  readonly work: (depth: number, share: number) => Partial<Work>;
  readonly faults: () => readonly Fault[];
  readonly more?: () => Partial<Plan>;
}

let random = createRandom(0);
const between = (least: number, most: number): number => least + random.int(most - least + 1);
const one = <T>(...choices: readonly T[]): T => random.pick(choices);
const some = (least: number, most: number, overMs: number, draw: () => Partial<Fault>): Fault[] =>
  several(random, least, most, () => {
    const at = 1_000 + random.int(overMs);
    return { at, kind: 'pause', service: one(...SHOP), instance: random.int(4), ms: 0, ...draw() };
  });

/** Starts a new instance of a service and stops its oldest one, so many times. */
const update = (service: string, at: number, times: number): Fault[] =>
  Array.from({ length: times }, (_, i) => [
    { at: at + 14_000 * i, kind: 'start', service, instance: 0, ms: 0 } as const,
    { at: at + 14_000 * i + 5_000, kind: 'stop', service, instance: 0, ms: 0 } as const,
  ]).flat();

const SHOP = ['shop', 'billing'] as const;
const USUAL = {
  services: SHOP, instances: [2, 4], count: 150, overMs: 30_000,
  patience: () => 10_000, work: () => ({}), faults: () => [],
} as const;

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'rolling update': {
    ...USUAL, overMs: 60_000, patience: () => 20_000,
    work: () => ({ ms: between(0, one(40, 40, 5_000)), timeout: 15_000 }),
    faults: () => SHOP.flatMap((service, i) => update(service, between(3_000, 3_000 + 18_000 * i), 4)),
    more: () => ({ maxConnectionAge: 3_000 }),
  },
  crash: {
    ...USUAL, count: 250,
    work: () => ({ ms: between(0, 900) }),
    faults: () => some(1, 3, 25_000, () => ({ kind: one('crash', 'outage'), ms: between(500, 8_000) })),
  },
  partition: {
    ...USUAL,
    faults: () => some(1, 3, 25_000, () => {
      return { kind: 'cut', service: 'shop', other: one('billing', 'client-0', 'client-1'), ms: between(500, 9_000) };
    }),
  },
  pause: { ...USUAL, faults: () => some(1, 4, 25_000, () => ({ ms: between(200, 3_000) })) },
  retries: {
    ...USUAL, services: ['a', 'b', 'c'], instances: [1, 2], count: 480, overMs: 9_000,
    work: (depth, share) => {
      const fails = depth === 2 && random.next() < 0.2 + 0.7 * share;
      return { method: 'get', retry: 2, fails: fails ? one('http', 'http', 'late', 'api', 'bug') : undefined };
    },
  },
  deadlines: {
    ...USUAL, services: ['a', 'b', 'c', 'd', 'e'], instances: [1, 1], count: 60, overMs: 15_000,
    patience: () => between(300, 5_000),
    work: (depth) => {
      return { ms: between(0, 300), timeout: depth === 0 ? 5_000 : between(100, 2_000), optional: random.int(5) === 0 };
    },
    faults: () => some(1, 2, 15_000, () => ({ service: one('b', 'd'), ms: between(100, 3_000) })),
  },
  pings: {
    ...USUAL, services: ['a', 'b', 'c'], instances: [1, 1], count: 60, overMs: 15_000, patience: () => 20_000,
    work: () => ({ service: one('a', 'b', 'c'), timeout: 9_000, ping: random.int(6), calls: [] }),
    faults: () => some(0, 2, 10_000, () => ({ service: one('b', 'c'), ms: between(100, 3_000) })),
  },
  streams: {
    ...USUAL, count: 50, overMs: 20_000, patience: () => one(700, 10_000),
    work: (depth) => {
      const fails = depth === 1 && random.int(4) === 0 ? 'bug' : undefined;
      return { method: 'get', retry: 0, chunks: between(1, 60), fails };
    },
    faults: () => some(1, 3, 15_000, () => ({ kind: one('crash', 'pause', 'outage'), ms: between(500, 4_000) })),
  },
  // Five times as many requests as a pool of four can answer.
  overload: {
    ...USUAL, services: ['shop'], instances: [1, 1], count: 1_200, overMs: 6_000, patience: () => 1_000,
    work: () => ({ method: 'get', ms: 100, retry: one(0, 1), timeout: 1_000 }),
    more: () => ({ pool: 4 }),
  },
  ages: {
    ...USUAL, overMs: 60_000,
    faults: () => some(1, 5, 50_000, () => ({ kind: one('start', 'start', 'stop') })),
    more: () => ({ maxConnectionAge: between(2_000, 5_000) }),
  },
};

export function drawPlan(scenario: string, seed: number): Plan {
  const found = SCENARIOS[scenario];
  if (found === undefined) throw new RangeError(`no scenario ${scenario}; use one of ${Object.keys(SCENARIOS).join()}`);
  const { services, instances, count, overMs, patience, work, faults, more } = found;
  // Each scenario has choices of its own under one seed.
  const salt = [...scenario].reduce((sum, char) => Math.imul(sum, 31) + char.charCodeAt(0), 7);
  random = createRandom(seed ^ salt);
  const share = random.next();
  const draw = (id: string, depth: number): Work => {
    const calls = depth + 1 < services.length ? [draw(`${id}.0`, depth + 1)] : [];
    const usual = { service: services[depth] ?? '', ms: between(0, 40), timeout: 2_000, retry: one(0, 2) };
    return { id, method: one('get', 'get', 'post'), ...usual, calls, ...work(depth, share) };
  };
  return {
    scenario,
    seed,
    services: services.map((name) => ({ name, instances: between(...instances) })),
    requests: Array.from({ length: count }, (_, i) => {
      return { at: random.int(overMs), client: random.int(3), patience: patience(), work: draw(`r${i}`, 0) };
    }),
    faults: faults(),
    ...more?.(),
  };
}
