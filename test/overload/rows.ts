/**
 * What overload protection has to achieve in a whole application: services that are merely slow, which serve what they
 * would serve without it, and overloaded ones, which serve most of their capacity.
 */

import type { Priority } from 'postern';
import { createRandom, type Random } from '../support/random.js';
import { createApplication } from './application.js';
import { endless, lognormal, pool, send, sharing, World, type Clients, type Seen, type Work } from './world.js';

/** A route's clients, by the time in ms since the start. */
type EveryMs = Clients['everyMs'];

export interface Row {
  readonly name: string;
  readonly statesDeadline: boolean;
  readonly patienceMs: number;
  readonly createWork: (world: World) => Work;
  readonly routes: readonly { readonly everyMs: EveryMs; readonly priority?: Priority }[];
  /** Requests per second that can be served; undefined for a service that is only slow. */
  readonly capacity?: number;
  /** Only the first routes count. Default: all. */
  readonly counted?: number;
  /** Minimum good requests, in percent of the capacity, or of what is served without protection. */
  readonly wanted: number;
  /** Seconds that count. */
  readonly from: number;
  readonly until: number;
  readonly arrivalMs?: number;
  /** Whether all its requests in flight are too many for memory without protection. */
  readonly isHuge?: boolean;
  /** Whether load stays the same for as long as it counts. Default: true. */
  readonly isSteady?: boolean;
}

export interface Result {
  /** In percent of the capacity, or of all requests. */
  readonly good: number;
  readonly refused: number;
  /** Seconds of load until 80 % of the capacity is served again. */
  readonly lowFor: number;
}

/** When load begins, in seconds. */
const LOAD_FROM = 20;
const LOAD_UNTIL = 60;

const KINDS = [true, false];
const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + (count ?? 0), 0);

const between = (random: Random, low: number, high: number): number => low + random.next() * (high - low);

/** Services without a queue whose requests take another time for a while. */
function slow(
  name: string,
  perSecond: number,
  ms: (random: Random) => number,
  { usualMs = 50, slowUntil = 240, from = 60, until = 240 } = {},
): Row[] {
  return KINDS.map((statesDeadline) => ({
    name: `${name}, ${perSecond}/s`,
    statesDeadline,
    patienceMs: 1000,
    createWork: (world) =>
      endless(world, () => {
        // A request takes as long with protection as without, so that few requests show a difference.
        const random = createRandom(Math.round(1e6 * world.now));
        const isSlow = world.now > 60_000 && world.now < 1000 * slowUntil;
        return isSlow ? ms(random) : between(random, 0.8, 1.2) * usualMs;
      }),
    routes: [{ everyMs: () => 1000 / perSecond }],
    wanted: 97,
    from,
    until,
  }));
}

const MINUTE = { slowUntil: 120, from: 0, until: 200 };
const SLOW: readonly Row[] = [20, 100].flatMap((perSecond) => [
  ...slow('dependency 50 → 600–950 ms', perSecond, (random) => between(random, 600, 950)),
  ...slow('cache 1 → 700–950 ms', perSecond, (random) => between(random, 700, 950), { usualMs: 1 }),
  ...slow('55 % in time', perSecond, (random) => between(random, 750, 1200)),
  ...slow('33 % in time', perSecond, (random) => between(random, 500, 2000)),
  ...slow('25 % in time', perSecond, (random) => between(random, 900, 1300)),
  ...slow('median of 1,080 ms for a minute', perSecond, (random) => lognormal(random, 1080, 0.3), MINUTE),
  ...slow('700–1,250 ms for a minute', perSecond, (random) => between(random, 700, 1250), MINUTE),
]);

interface Load extends Partial<Row> {
  readonly createWork: Row['createWork'];
  readonly capacity: number;
  /** What is wanted, by whether clients state their deadline. */
  readonly percent: readonly [stated: number, leaving: number];
}

/** Half of the capacity, and a multiple of it for 40 s. */
const load = (capacity: number, factor: number): EveryMs => (now) =>
  1000 / capacity / (now >= 1000 * LOAD_FROM && now < 1000 * LOAD_UNTIL ? factor : 0.5);

function overloaded(name: string, factor: number, { percent, capacity, ...rest }: Load): Row[] {
  return KINDS.map((statesDeadline, i) => ({
    name: `${name}, ${factor}×`,
    statesDeadline,
    patienceMs: 1000,
    routes: [{ everyMs: load(capacity, factor) }],
    capacity,
    wanted: percent[i] as number,
    from: 24,
    until: LOAD_UNTIL,
    isHuge: capacity * factor >= 5000,
    ...rest,
  }));
}

const workers = (size: number, ms = 100, heedsSignal = false): Row['createWork'] => (world) =>
  pool(world, size, () => world.between(0.8, 1.2) * ms, heedsSignal);
const busy: Row['createWork'] = (world) => (_request, done) => {
  world.now += world.between(4, 6);
  done();
};
const ramp: EveryMs = (now) =>
  10 / (0.5 + 2.5 * Math.max(0, 1 - Math.abs(now / 1000 - 40) / 20));

/** Today's figures of the limiter alone, less 3 points; 5 where routes share a pool. */
const OVERLOADED: readonly Row[] = [
  ...[
    { size: 1, factor: 2, percent: [90, 90] },
    { size: 4, factor: 2, percent: [97, 96] },
    { size: 10, factor: 2, percent: [97, 97] },
    { size: 100, factor: 2, percent: [97, 97] },
    { size: 1, factor: 10, percent: [96, 60] },
    { size: 4, factor: 10, percent: [97, 73] },
    { size: 10, factor: 10, percent: [97, 75] },
    { size: 100, factor: 10, percent: [97, 77] },
  ].flatMap(({ size, factor, percent: [stated = 0, leaving = 0] }) => [
    ...overloaded(`pool of ${size}`, factor, {
      createWork: workers(size), capacity: 10 * size, percent: [stated, leaving],
    }),
    ...overloaded(`pool of ${size} that heeds the signal`, factor, {
      createWork: workers(size, 100, true), capacity: 10 * size, percent: [stated, size === 1 ? 90 : 97],
    }).filter(({ statesDeadline }) => !statesDeadline),
  ]),
  ...[2, 10].flatMap((factor) => overloaded('pool of 10 × 20 ms, patience 200 ms', factor, {
    createWork: workers(10, 20), capacity: 500, patienceMs: 200, percent: [97, 97],
  })),
  ...overloaded('pool of 10, patience 10 s', 2, {
    createWork: workers(10), capacity: 100, patienceMs: 10_000, percent: [97, 41],
  }),
  ...overloaded('pool of 10, times that vary much', 2, {
    createWork: (world) => pool(world, 10, () => world.lognormal(60, 1)), capacity: 101, percent: [95, 95],
  }),
  ...[1.5, 3].flatMap((factor) => [
    ...overloaded('processor sharing, equal', factor, {
      createWork: (world) => sharing(world, () => 10), capacity: 100, percent: factor === 3 ? [83, 87] : [97, 97],
    }),
    ...overloaded('processor sharing, exponential', factor, {
      createWork: (world) => sharing(world, () => world.exponential(10)), capacity: 100, percent: [60, 60],
    }),
  ]),
  ...overloaded('CPU', 2, { createWork: busy, capacity: 200, arrivalMs: 0.1, percent: [93, 93] }),
  ...overloaded('CPU', 10, { createWork: busy, capacity: 200, arrivalMs: 0.1, percent: [77, 77] }),
  ...overloaded('CPU, patience 200 ms', 2, {
    createWork: busy, capacity: 200, arrivalMs: 0.1, patienceMs: 200, percent: [93, 93],
  }),
  ...overloaded('pool of 10, ramp', 3, {
    createWork: workers(10), capacity: 100, routes: [{ everyMs: ramp }], percent: [96, 91], isSteady: false,
  }),
  ...overloaded('pool of 10, 5 s of load', 3, {
    createWork: workers(10), capacity: 100, percent: [51, 47], isSteady: false,
    routes: [{ everyMs: (now) => (now > 20_000 && now < 25_000 ? 10 / 3 : 20) }],
  }),
  ...[2, 5].flatMap((count) => [2, 5].flatMap((factor) => overloaded(`${count} routes on a pool of 10`, factor, {
    createWork: workers(10), capacity: 100, percent: factor === 5 ? [92, 75] : [92, 90],
    routes: Array.from({ length: count }, () => ({ everyMs: (now) => count * load(100, factor)(now) })),
  }))),
  ...[[0.5, 1.5, 94], [0.9, 0.9, 81], [0.5, 5, 85]].flatMap(([high = 0, low = 0, wanted = 0]) =>
    overloaded(`high ${high}× beside low ${low}× on a pool of 10`, high + low, {
      createWork: workers(10), capacity: 100 * high, counted: 1, percent: [wanted, wanted],
      routes: [high, low].map((factor, i) => ({
        everyMs: (now) => load(100, now >= 20_000 && now < 60_000 ? factor : 0.6 * factor)(now),
        priority: i === 0 ? 'high' : 'low',
      })),
    })),
];

export const ROWS: readonly Row[] = [...SLOW, ...OVERLOADED];

/** Plays a row in a world of its own. */
export async function play(
  postern: typeof import('postern'),
  row: Row,
  seed: number,
  isProtected: boolean,
): Promise<Result> {
  const { routes, createWork, capacity, counted, patienceMs, statesDeadline, from, until, arrivalMs } = row;
  const world = new World(seed);
  const work = createWork(world);
  const served = routes.map(({ priority = 'normal' }) => ({ work, options: { priority } }));
  const targets = createApplication(postern, world, served, isProtected, arrivalMs);
  const seen: Seen[] = [];
  // A world begins with an event, so that its first requests are sent in one.
  world.after(1, () => {
    for (const [i, { everyMs }] of routes.entries())
      seen.push(send(world, targets[i]!, { everyMs, patienceMs: () => patienceMs, statesDeadline }, 1000 * until));
  });
  await world.play(1000 * until + 2 * patienceMs);
  const isSlow = capacity === undefined;
  const part = (counts: readonly number[]): number => sum(counts.slice(from, isSlow ? undefined : until));
  const total = (kind: 'good' | 'refused' | 'late', of = seen): number => sum(of.map((each) => part(each[kind])));
  const counting = seen.slice(0, counted);
  const good = total('good', counting);
  const all = isSlow ? good + total('refused') + total('late') : capacity * (until - from);
  const isLow = (second: number, length: number): boolean =>
    sum(counting.map((each) => sum(each.good.slice(second, second + length)))) < 0.8 * length * (capacity ?? 0);
  const seconds = Array.from({ length: until - LOAD_FROM }, (_, i) => LOAD_FROM + i);
  const first = seconds.find((second) => isLow(second, 1));
  // One second may be low by chance.
  const again = first && seconds.find((second) => second > first && !isLow(second, 3));
  const lowFor = first === undefined ? 0 : (again ?? Infinity) - LOAD_FROM;
  return { good: (100 * good) / all, refused: total('refused'), lowFor };
}
