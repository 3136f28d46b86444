/**
 * The limiter of a route, run alone against models of services and clients, in virtual time.
 *
 * @module-tag slow
 */

import { expect, test } from 'vitest';
import { RouteLimiter, type Ticket } from '../../src/overload/route-limiter.js';
import { HEALTHY, PATIENCES, STOPS } from './healthy.js';
import { call, cpu, endless, pool, Request, send, Service, sharing, World } from './world.js';
import type { Clients, Seen, Work } from './world.js';

const SEEDS = [1, 2, 3];

test.for(
  [...HEALTHY, ...STOPS].flatMap((scenario) =>
    PATIENCES.map((patience) => ({ ...scenario, ...patience, patience: patience.name, name: scenario.name })),
  ),
)('$name, $patience: nothing is refused', ({ play, lengthMs, statesDeadline }) => {
  const refused = SEEDS.map((seed) => {
    const world = new World(seed);
    const services = play(world, statesDeadline);
    world.runUntil(lengthMs);
    return services.map((service) => service.refused);
  });
  expect(refused.flat()).toEqual(refused.flat().map(() => 0));
});

/** Load in multiples of the capacity: half at first, much from 2 s to 14 s, and half again. */
const load = (capacity: number, factor: number) => (nowMs: number): number =>
  1000 / (capacity * (nowMs >= 2000 && nowMs < 14_000 ? factor : 0.5));

interface Overload {
  readonly name: string;
  /** Requests per second. */
  readonly capacity: number;
  /** The part of the capacity that clients have to get from the fourth second of the load on. */
  readonly share: number;
  readonly patienceMs: number;
  readonly factors: readonly number[];
  readonly statesDeadline: boolean;
  readonly play: (world: World, clients: Clients) => { seen: Seen; services: readonly Service[] };
}

const START: Pick<Overload, 'capacity' | 'share' | 'patienceMs' | 'factors' | 'statesDeadline'> = {
  capacity: 100,
  share: 0.9,
  patienceMs: 1000,
  factors: [2, 5, 10],
  statesDeadline: true,
};
const END_MS = 20_000;

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + (count ?? 0), 0);

function single(create: (world: World) => Service): Overload['play'] {
  return (world, clients) => {
    const service = create(world);
    return { seen: send(world, service, clients, END_MS), services: [service] };
  };
}

const OVERLOADED: readonly Overload[] = [
  { ...START, name: 'a pool', play: single((world) => new Service(world, pool(world, 10, () => 100))) },
  { ...START, name: 'a pool with times that vary',
    play: single((world) => new Service(world, pool(world, 10, () => world.between(50, 150)))) },
  { ...START, name: 'a pool, with a patience of 5 s', patienceMs: 5000,
    play: single((world) => new Service(world, pool(world, 10, () => 100))) },
  { ...START, name: 'a large pool', capacity: 1000, factors: [2, 5],
    play: single((world) => new Service(world, pool(world, 100, () => world.between(50, 150)))) },
  { ...START, name: 'a pool that heeds the signal, and clients that leave', statesDeadline: false,
    play: single((world) => new Service(world, pool(world, 10, () => world.between(50, 150), true))) },
  { ...START, name: 'a pool that does not heed the signal, and clients that leave', statesDeadline: false, factors: [2],
    play: single((world) => new Service(world, pool(world, 10, () => world.between(50, 150)))) },
  {
    ...START,
    name: 'the CPU',
    capacity: 200,
    share: 0.7,
    factors: [2, 5],
    play: (world, clients) => {
      const { work, arrive } = cpu(world, 5, 0.15);
      const service = new Service(world, work);
      return { seen: send(world, arrive(service), clients, END_MS), services: [service] };
    },
  },
  {
    ...START,
    name: 'two hops',
    play: (world, clients) => {
      const back = new Service(world, pool(world, 10, () => world.between(50, 150)));
      const front = new Service(world, call(world, back, 0));
      return { seen: send(world, front, clients, END_MS), services: [front, back] };
    },
  },
  {
    ...START,
    name: 'three hops with retries',
    play: (world, clients) => {
      const back = new Service(world, pool(world, 10, () => world.between(50, 150)));
      const middle = new Service(world, call(world, back, 1));
      const front = new Service(world, call(world, middle, 1));
      return { seen: send(world, front, clients, END_MS), services: [front, middle, back] };
    },
  },
];

test.for(
  OVERLOADED.flatMap((scenario) =>
    scenario.factors.flatMap((factor) => SEEDS.map((seed) => ({ ...scenario, factor, seed }))),
  ),
)(
  '$name at $factor times its capacity keeps answering in time (seed $seed)',
  ({ play, capacity, share, factor, patienceMs, statesDeadline, seed }) => {
    const world = new World(seed);
    const { seen, services } = play(world, {
      everyMs: load(capacity, factor),
      patienceMs: () => patienceMs,
      statesDeadline,
    });
    world.runUntil(14_000);
    const good = seen.good.slice(6, 14);
    expect(Math.min(...good), `good requests a second: ${seen.good.join(' ')}`)
      .toBeGreaterThan(share * capacity * 0.85);
    expect(good.reduce((sum, count) => sum + count, 0) / good.length).toBeGreaterThan(share * capacity);
    const times = seen.times.slice(6, 14).flat().sort((a, b) => a - b);
    expect(times[Math.floor(0.99 * times.length)]).toBeLessThan(patienceMs);

    world.runUntil(17_000);
    if (patienceMs <= 1000) {
      const refused = services.map((service) => service.refused);
      world.runUntil(END_MS);
      expect(services.map((service) => service.refused), 'refused after the load').toEqual(refused);
    }
  },
);

/** Pools under load from the first request on, when nothing is known of them yet. */
const POOLS: readonly { size: number; serviceMs: number; patiences: readonly number[]; factors: readonly number[] }[] =
  [
    { size: 1, serviceMs: 10, patiences: [500, 1000, 5000], factors: [2, 5, 10] },
    // Ten replies a second are too few to notice five times the load before requests are in that nobody waits for.
    { size: 1, serviceMs: 100, patiences: [500, 1000], factors: [2] },
    { size: 2, serviceMs: 100, patiences: [500, 1000, 5000], factors: [2, 5, 10] },
    { size: 4, serviceMs: 10, patiences: [500, 1000, 5000], factors: [2, 5] },
    { size: 4, serviceMs: 100, patiences: [500, 1000, 5000], factors: [2, 5, 10] },
    { size: 10, serviceMs: 100, patiences: [500, 1000, 5000], factors: [2, 5, 10] },
    { size: 10, serviceMs: 1000, patiences: [5000], factors: [2] },
    { size: 50, serviceMs: 100, patiences: [1000], factors: [2, 5] },
    { size: 50, serviceMs: 1000, patiences: [5000], factors: [2] },
  ];

test.for(
  POOLS.flatMap(({ patiences, factors, ...rest }) =>
    patiences.flatMap((patienceMs) => factors.map((factor) => ({ ...rest, patienceMs, factor }))),
  ),
)(
  'a pool of $size × $serviceMs ms, asked for $factor times that from the start under $patienceMs ms, keeps answering',
  ({ size, serviceMs, patienceMs, factor }) => {
    const capacity = (1000 * size) / serviceMs;
    const world = new World(1);
    const service = new Service(world, pool(world, size, () => serviceMs));
    const clients = { everyMs: () => 1000 / capacity / factor, patienceMs: () => patienceMs, statesDeadline: true };
    const seen = send(world, service, clients, 12_000);
    world.runUntil(12_000);
    const good = seen.good.slice(3, 12).reduce((sum, count) => sum + count, 0) / 9;
    expect(good, `good requests a second: ${seen.good.join(' ')}`).toBeGreaterThan(0.9 * capacity);
  },
);

test.for([1, 2].flatMap((size) => [2, 5, 10].map((factor) => ({ size, factor }))))(
  'a pool of $size × 1 s, asked for $factor times that from the start, answers again once its first queue is done',
  ({ size, factor }) => {
    const world = new World(1);
    const service = new Service(world, pool(world, size, () => 1000));
    const clients = { everyMs: () => 1000 / size / factor, patienceMs: () => 5000, statesDeadline: true };
    const seen = send(world, service, clients, 180_000);
    world.runUntil(180_000);
    const good = seen.good.slice(120).reduce((sum, count) => sum + (count ?? 0), 0) / 60;
    expect(good, `good requests a second: ${seen.good.join(' ')}`).toBeGreaterThan(0.9 * size);
  },
);

test.for([1, 2, 3, 4, 5, 6, 7, 8])('a queue from the first request on does not look usual (seed %s)', (seed) => {
  const world = new World(seed);
  const shared = pool(world, 10, () => world.between(50, 150));
  const [main, other] = [new Service(world, shared), new Service(world, shared)];
  const clients = { patienceMs: () => 1000, statesDeadline: true };
  const seen = send(world, main, { ...clients, everyMs: (now) => (now < 2000 ? 20 : 1) }, 12_000);
  send(world, other, { ...clients, everyMs: () => 16 }, 12_000, seen);
  world.runUntil(12_000);
  const good = seen.good.slice(6, 12).reduce((sum, count) => sum + count, 0) / 6;
  expect(good, `good requests a second: ${seen.good.join(' ')}`).toBeGreaterThan(90);
});

// The first requests to end are the tenth that are quick, and nothing is known of the others until they end.
test.for([12, 17, 27, 42, 51])('long polls that outlive three clients in ten refuse nothing (seed %s)', (seed) => {
  const world = new World(seed);
  const service = new Service(world, endless(world, () => (world.random.next() < 0.1 ? 5 : 10_000)));
  const patienceMs = (): number => (world.random.next() < 0.3 ? world.between(1000, 10_000) : 12_000);
  send(world, service, { everyMs: () => 100, patienceMs, statesDeadline: true }, 40_000);
  world.runUntil(40_000);
  expect(service.refused).toBe(0);
});

/** Small pools whose queues grow by chance, but not so much that a request is late. */
const PEAKS = [
  { size: 1, serviceMs: 20, use: 0.8, patienceMs: 400, seeds: [3, 24, 33, 39] },
  { size: 1, serviceMs: 300, use: 0.7, patienceMs: 3000, seeds: [6, 18, 30, 32] },
  { size: 2, serviceMs: 20, use: 0.7, patienceMs: 200, seeds: [2, 12] },
];

test.for(PEAKS.flatMap(({ seeds, ...rest }) => seeds.map((seed) => ({ ...rest, seed }))))(
  'a pool of $size × $serviceMs ms refuses nothing at $use of its capacity (seed $seed)',
  ({ size, serviceMs, use, patienceMs, seed }) => {
    const world = new World(seed);
    const service = new Service(world, pool(world, size, () => world.between(serviceMs / 2, 1.5 * serviceMs)));
    const lengthMs = Math.max(40_000, 600 * serviceMs);
    const clients = { everyMs: () => serviceMs / size / use, patienceMs: () => patienceMs, statesDeadline: true };
    const seen = send(world, service, clients, lengthMs);
    world.runUntil(lengthMs);
    expect([service.refused, seen.late.length]).toEqual([0, 0]);
  },
);

/** A search of 50 to 400 ms whose clients wait for 30 to 300 ms, most of them. */
function search(seed: number, everyMs: number): { readonly world: World; readonly service: Service } {
  const world = new World(seed);
  const service = new Service(world, endless(world, () => world.between(50, 400)));
  const patienceMs = (): number => (world.random.next() < 0.8 ? world.between(30, 300) : 5000);
  send(world, service, { everyMs: () => everyMs, patienceMs, statesDeadline: true }, 60_000);
  return { world, service };
}

test.for([
  { perSecond: 20, seeds: [9, 27, 32, 47, 60] },
  { perSecond: 30, seeds: [9, 47, 137, 203, 226] },
  { perSecond: 60, seeds: [6, 27, 37, 44, 66] },
])('a search whose first requests are quick by chance refuses nothing ($perSecond a second)', ({ perSecond, seeds }) => {
  const refused = seeds.map((seed) => {
    const { world, service } = search(seed, 1000 / perSecond);
    world.runUntil(60_000);
    return service.refused;
  });
  expect(refused).toEqual(seeds.map(() => 0));
});

test('a route that refuses because its first requests were quick by chance learns better', () => {
  const { world, service } = search(38, 1000 / 60);
  world.runUntil(30_000);
  const { refused } = service;
  world.runUntil(60_000);
  expect(refused).toBeGreaterThan(0);
  expect(service.refused).toBe(refused);
});

test('a client with hopeless deadlines cannot close a route for others', () => {
  const world = new World(39);
  const service = new Service(world, endless(world, () => world.lognormal(100, 1)));
  send(world, service, { everyMs: () => 2, patienceMs: () => 80, statesDeadline: true }, 60_000);
  send(world, service, { everyMs: () => 20, patienceMs: () => 5000, statesDeadline: true }, 60_000);
  world.runUntil(10_000);
  const { refused } = service;
  world.runUntil(60_000);
  expect(service.refused).toBe(refused);
});

test.for([2, 5, 10])('a pool whose times vary much keeps answering at %s times its capacity', (factor) => {
  const world = new World(1);
  const service = new Service(world, pool(world, 4, () => world.exponential(100)));
  const clients = { everyMs: () => 25 / factor, patienceMs: () => 500, statesDeadline: true };
  const seen = send(world, service, clients, 30_000);
  world.runUntil(30_000);
  // With the same room for every pool, a third of these would be late.
  expect(seen.good.slice(6).reduce((sum, count) => sum + count, 0) / 24).toBeGreaterThan(36);
  expect(seen.late.slice(6).reduce((sum, count) => sum + (count ?? 0), 0) / 24).toBeLessThan(4);
});

test('how long clients wait is known from the peak before, until a minute has passed', () => {
  const world = new World(1);
  const service = new Service(world, pool(world, 10, () => 100 * world.between(0.8, 1.2)));
  const isPeak = (nowMs: number): boolean => [20_000, 80_000, 200_000].some((at) => nowMs >= at && nowMs < at + 15_000);
  const everyMs = (nowMs: number): number => 10 / (isPeak(nowMs) ? 3 : 0.5);
  const seen = send(world, service, { everyMs, patienceMs: () => 1000, statesDeadline: false }, 215_000);
  world.runUntil(215_000);
  // Without it, nobody is refused before clients leave: in the first seconds of a peak all replies are late.
  const [first, second, third] = [20, 80, 200].map((at) => sum(seen.good.slice(at, at + 15)) / 15);
  expect(first).toBeLessThan(85);
  expect(second).toBeGreaterThan(95);
  expect(third).toBeLessThan(85);
});

test('requests whose handlers never end do not lock a route up', () => {
  const world = new World(1);
  const inner = pool(world, 10, () => 100);
  const service = new Service(world, (request, done) => {
    if (world.now > 3000 && world.now < 5000) return;
    inner(request, done);
  });
  const seen = send(world, service, { everyMs: load(100, 5), patienceMs: () => 1000, statesDeadline: true }, END_MS);
  world.runUntil(END_MS);
  expect(seen.good.slice(9, 13).every((count) => count > 85), seen.good.join(' ')).toBe(true);
  expect(seen.refused.slice(18)).toEqual([]);
});

test.for([10, 130, 300])('a route admits again soon after %s s whose handlers never end', (lengthS) => {
  const limiter = new RouteLimiter();
  const backAt = 20_000 + lengthS * 1000;
  const patienceMs = 1000;
  const leaving: { readonly ticket: Ticket; readonly at: number }[] = [];
  let queue: Ticket[] = [];
  let firstAt = Infinity;
  for (let now = 0; now < backAt + 5000 && firstAt === Infinity; now += 10) {
    const isLost = now >= 20_000 && now < backAt;
    if (isLost) queue = [];
    const done = now % 20 === 0 ? queue.shift() : undefined;
    if (done !== undefined) limiter.end(done, now, 'done');
    for (; leaving[0] !== undefined && leaving[0].at <= now; leaving.shift()) {
      limiter.abandon(leaving[0].ticket, now, true);
    }
    // 50 requests per second can be answered.
    const everyMs = now >= 5000 && now < 20_000 ? 10 : 50;
    if (now % everyMs > 0 || !limiter.admits(now, patienceMs)) continue;
    const ticket = limiter.begin(now, patienceMs);
    queue.push(ticket);
    leaving.push({ ticket, at: now + patienceMs });
    if (now >= backAt) firstAt = now;
  }
  expect(firstAt - backAt).toBeLessThan(1000);
});

/** Services without any queue that become slow after 20 s: their callers wait for one second. */
const SLOW = [
  { name: 'a dependency that is slow but in time', fromMs: 600, toMs: 950, inTime: 1 },
  { name: 'a cache that is flushed', usualMs: 1, fromMs: 700, toMs: 950, inTime: 1 },
  { name: 'a dependency with 55 % in time', fromMs: 750, toMs: 1200, inTime: 0.555 },
  { name: 'a dependency with 33 % in time', fromMs: 500, toMs: 2000, inTime: 0.333 },
  { name: 'a dependency with 25 % in time', fromMs: 900, toMs: 1300, inTime: 0.25 },
];
const SLOW_CASES = SLOW.flatMap((slow) => [20, 100].map((perSecond) => ({ usualMs: 50, ...slow, perSecond })));

test.for(SLOW_CASES)(
  '$name, $perSecond requests a second: users get what they get without protection',
  ({ usualMs, fromMs, toMs, inTime, perSecond }) => {
    const shares = SEEDS.map((seed) => {
      const world = new World(seed);
      const ms = (): number => (world.now > 20_000 ? world.between(fromMs, toMs) : world.between(0.8, 1.2) * usualMs);
      const service = new Service(world, endless(world, ms));
      const clients = { everyMs: () => 1000 / perSecond, patienceMs: () => 1000, statesDeadline: true };
      const seen = send(world, service, clients, 200_000);
      world.runUntil(202_000);
      const [good, refused, late] = [seen.good, seen.refused, seen.late].map((counts) => sum(counts.slice(20)));
      return good! / (good! + refused! + late!);
    });
    expect(sum(shares) / shares.length).toBeGreaterThan(0.96 * inTime);
  },
);

test.for([1019, 1020])('a limit that chance may prove does not lock a slow service in (seed %s)', (seed) => {
  const world = new World(seed);
  const ms = (): number => (world.now > 30_000 ? world.between(750, 1200) : world.between(40, 60));
  const service = new Service(world, endless(world, ms));
  const seen = send(world, service, { everyMs: () => 50, patienceMs: () => 1000, statesDeadline: true }, 120_000);
  world.runUntil(120_000);
  expect(sum(seen.good.slice(30)) / 90).toBeGreaterThan(0.8 * 20 * 0.555);
});

/** Pools with three times the load that they can do. After 40 s their limit has proved itself, and they change. */
const CHANGES: readonly Readonly<{ name: string; size: number; good: number; work: (world: World) => Work }>[] = [
  { name: 'nothing waits any more, but requests take long', size: 10, good: 300 * 0.555, work: (world) => {
    const [before, after] = [pool(world, 10, () => 100), endless(world, () => world.between(750, 1200))];
    return (...request) => (world.now < 40_000 ? before : after)(...request);
  } },
  { name: 'a third of the pool is left', size: 4, good: 40 / 3, work: (world) =>
    pool(world, 4, () => world.between(80, 120) * (world.now < 40_000 ? 1 : 3)) },
];

test.for(CHANGES)('a limit that has proved itself gives way when $name', ({ size, good, work }) => {
  const shares = SEEDS.map((seed) => {
    const world = new World(seed);
    const everyMs = (now: number): number => 100 / size / (now < 20_000 ? 0.5 : 3);
    const clients = { everyMs, patienceMs: () => 1000, statesDeadline: true };
    const seen = send(world, new Service(world, work(world)), clients, 90_000);
    world.runUntil(90_000);
    return sum(seen.good.slice(60, 90)) / 30 / good;
  });
  expect(sum(shares) / shares.length).toBeGreaterThan(0.9);
});

test('after a limit that does not help, the next one waits for 30 s or more', () => {
  const world = new World(1);
  const service = new Service(world, endless(world, () => (world.now < 20_000 ? 50 : world.between(750, 1200))));
  const clients = { everyMs: () => 10, patienceMs: () => 1000, statesDeadline: true };
  const { refused } = send(world, service, clients, 200_000);
  world.runUntil(200_000);
  const seconds = Object.keys(refused).map(Number);
  const pauses = seconds.map((second, i) => second - (seconds[i - 1] ?? second)).filter((pause) => pause > 5);
  expect(pauses.length).toBeGreaterThan(0);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(29);
});

test.for([2, 5].flatMap((count) => [2, 5].map((factor) => ({ count, factor }))))(
  '$count routes on one pool at $factor times its capacity do not mistake each other for a failed limit',
  ({ count, factor }) => {
    const good = SEEDS.map((seed) => {
      const world = new World(seed);
      const shared = pool(world, 10, () => world.between(80, 120));
      const clients = { everyMs: (now: number) => count * load(100, factor)(now), patienceMs: () => 1000 };
      const seen = Array.from({ length: count }).map(() =>
        send(world, new Service(world, shared), { ...clients, statesDeadline: true }, END_MS),
      );
      world.runUntil(END_MS);
      return sum(seen.map((each) => sum(each.good.slice(6, 14)))) / 8;
    });
    expect(sum(good) / good.length).toBeGreaterThan(80);
  },
);

test.for([1.5, 3])('a database that slows all queries down at %s times its capacity keeps answering', (factor) => {
  const good = SEEDS.map((seed) => {
    const world = new World(seed);
    const service = new Service(world, sharing(world, () => world.exponential(10)));
    const everyMs = (now: number): number => 10 / (now < 10_000 ? 0.5 : factor);
    const seen = send(world, service, { everyMs, patienceMs: () => 1000, statesDeadline: true }, 50_000);
    world.runUntil(50_000);
    return sum(seen.good.slice(14)) / 36;
  });
  expect(sum(good) / good.length).toBeGreaterThan(60);
});

test('deadlines count again after very many requests without one', () => {
  const world = new World(1);
  const service = new Service(world, pool(world, 10, () => 100));
  const sendFrom = (from: number, until: number, patienceMs: number): Seen => {
    const seen = { good: [], refused: [], late: [], times: [] };
    const clients = { everyMs: () => (from === 0 ? 25 : 5), patienceMs: () => patienceMs, statesDeadline: true };
    world.after(from, () => void send(world, service, clients, until, seen));
    return seen;
  };
  sendFrom(0, 300_000, Infinity);
  const seen = sendFrom(300_000, 330_000, 1000);
  world.runUntil(330_000);
  expect(sum(seen.good.slice(320)) / 10).toBeGreaterThan(90);
});

test('deadlines count again after a first one that is longer than any timer', () => {
  const world = new World(1);
  const service = new Service(world, pool(world, 10, () => 100));
  service.arrive(new Request(1e300, () => {}));
  const everyMs = (now: number): number => (now < 20_000 ? 20 : 5);
  const seen = send(world, service, { everyMs, patienceMs: () => 1000, statesDeadline: true }, 30_000);
  world.runUntil(30_000);
  expect(sum(seen.good.slice(24)) / 6).toBeGreaterThan(90);
});

test('if nobody has a deadline and nobody disconnects, nothing is refused', () => {
  const world = new World(1);
  const service = new Service(world, pool(world, 10, () => 100));
  send(world, service, { everyMs: load(100, 5), patienceMs: () => Infinity, statesDeadline: true }, END_MS);
  world.runUntil(END_MS);
  expect(service.refused).toBe(0);
});

/** Lets a route yield to another one while that is crowded. */
function yields(world: World, low: Service, high: Service): void {
  const { episode, ahead } = high.limiter;
  low.limiter.isYielding = episode !== null && ahead > 0.5 * episode.limit;
  world.after(100, () => yields(world, low, high));
}

test('a route that yields to one of higher priority is refused first', () => {
  const world = new World(1);
  const shared = pool(world, 10, () => 100);
  const [low, high] = [new Service(world, shared), new Service(world, shared)];
  yields(world, low, high);
  const clients = { patienceMs: () => 1000, statesDeadline: true };
  send(world, low, { ...clients, everyMs: load(100, 3) }, END_MS);
  const seen = send(world, high, { ...clients, everyMs: load(160, 0.5) }, END_MS);
  world.runUntil(14_000);
  expect(seen.good.slice(6, 14).reduce((sum, count) => sum + count) / 8).toBeGreaterThan(70);
  expect(low.refused).toBeGreaterThan(10 * high.refused);
});

test('a route that yields serves what is left within seconds, although the other one was held up by it before', () => {
  const good = [...SEEDS, 4, 5, 6, 7, 8].map((seed) => {
    const world = new World(seed);
    const shared = pool(world, 10, () => world.between(99, 102));
    const [low, high] = [new Service(world, shared), new Service(world, shared)];
    yields(world, low, high);
    const clients = { patienceMs: () => 1000, statesDeadline: true };
    const seen = send(world, low, { ...clients, everyMs: (now) => (now < 2000 ? 20 : 1) }, 9000);
    send(world, high, { ...clients, everyMs: () => 25 }, 9000);
    world.runUntil(9000);
    return sum(seen.good.slice(6, 9)) / 3;
  });
  expect(Math.min(...good)).toBeGreaterThan(48);
});
