/** Services that are not overloaded, however it may look: nothing of theirs is refused. */

import { endless, pool, send, Service, type Request, type Work, type World } from './world.js';

export const PATIENCES = [
  { name: 'with deadlines', statesDeadline: true },
  { name: 'with clients that leave', statesDeadline: false },
];

export interface Scenario {
  readonly name: string;
  /** Sets the scenario up, and returns the services that must refuse nothing. */
  readonly play: (world: World, statesDeadline: boolean) => Service[];
  readonly lengthMs: number;
}

export const HEALTHY: readonly Scenario[] = [
  {
    name: 'a burst of 500 on an idle service',
    lengthMs: 30_000,
    play(world, statesDeadline) {
      const service = new Service(world, endless(world, () => world.between(40, 60)));
      send(world, service, { everyMs: () => 100, patienceMs: () => 1000, statesDeadline }, 30_000);
      send(
        world,
        service,
        { everyMs: () => 7000, patienceMs: () => 1000, statesDeadline, burst: 500, isRegular: true },
        30_000,
      );
      return [service];
    },
  },
  {
    name: 'a burst of 500 on an idle service, the first thing it gets',
    lengthMs: 30_000,
    play(world, statesDeadline) {
      const service = new Service(world, endless(world, () => world.between(40, 400)));
      send(
        world,
        service,
        { everyMs: () => 7000, patienceMs: () => 1000, statesDeadline, burst: 500, isRegular: true },
        30_000,
      );
      return [service];
    },
  },
  {
    name: 'a burst of 500 on an idle pool',
    lengthMs: 40_000,
    play(world, statesDeadline) {
      const service = new Service(world, pool(world, 20, () => world.between(80, 120), !statesDeadline));
      send(world, service, { everyMs: () => 50, patienceMs: () => 5000, statesDeadline }, 40_000);
      send(
        world,
        service,
        { everyMs: () => 9000, patienceMs: () => 5000, statesDeadline, burst: 500, isRegular: true },
        40_000,
      );
      return [service];
    },
  },
  {
    name: 'a steady report of 3 s under 5 s, in bursts of ten',
    lengthMs: 120_000,
    play(world, statesDeadline) {
      const service = new Service(world, endless(world, () => world.between(2900, 3100)));
      send(
        world,
        service,
        { everyMs: () => world.between(500, 8000), patienceMs: () => 5000, statesDeadline, burst: 10, isRegular: true },
        120_000,
      );
      return [service];
    },
  },
  {
    name: 'typeahead, 80 % aborted',
    lengthMs: 60_000,
    play(world, statesDeadline) {
      const service = new Service(world, endless(world, () => world.lognormal(150, 0.7)));
      send(
        world,
        service,
        {
          everyMs: () => 8,
          patienceMs: () => (world.random.next() < 0.8 ? world.between(30, 300) : 5000),
          statesDeadline: false,
        },
        60_000,
      );
      if (statesDeadline) send(world, service, { everyMs: () => 20, patienceMs: () => 2000, statesDeadline }, 60_000);
      return [service];
    },
  },
  {
    name: 'typeahead on a pool, 80 % aborted',
    lengthMs: 60_000,
    play(world, statesDeadline) {
      const service = new Service(world, pool(world, 20, () => world.lognormal(60, 0.7), !statesDeadline));
      send(
        world,
        service,
        {
          everyMs: () => 6,
          patienceMs: () => (world.random.next() < 0.8 ? world.between(30, 200) : 5000),
          statesDeadline: false,
        },
        60_000,
      );
      return [service];
    },
  },
  {
    name: 'one client that aborts ten times the traffic of all others',
    lengthMs: 60_000,
    play(world, statesDeadline) {
      const service = new Service(world, endless(world, () => world.lognormal(100, 1)));
      send(
        world,
        service,
        { everyMs: () => 2, patienceMs: () => world.between(90, 110), statesDeadline: false },
        60_000,
      );
      send(world, service, { everyMs: () => 20, patienceMs: () => 5000, statesDeadline }, 60_000);
      return [service];
    },
  },
  {
    name: 'one client whose deadlines are too short, at ten times the traffic of all others',
    lengthMs: 60_000,
    play(world, statesDeadline) {
      const service = new Service(world, endless(world, () => world.lognormal(100, 1)));
      send(world, service, { everyMs: () => 2, patienceMs: () => 80, statesDeadline: true }, 60_000);
      send(world, service, { everyMs: () => 20, patienceMs: () => 5000, statesDeadline }, 60_000);
      return [service];
    },
  },
  {
    name: 'two latencies, the longer one beyond the patience of some',
    lengthMs: 120_000,
    play(world, statesDeadline) {
      const service = new Service(
        world,
        endless(world, () => (world.random.next() < 0.9 ? world.between(5, 15) : world.between(4000, 8000))),
      );
      send(
        world,
        service,
        { everyMs: (now) => (Math.floor(now / 20_000) % 2 === 0 ? 10 : 3000), patienceMs: () => 5000, statesDeadline },
        120_000,
      );
      return [service];
    },
  },
  {
    name: 'two latencies, the quick half ends first',
    lengthMs: 120_000,
    play(world, statesDeadline) {
      let slowShare = 0.1;
      const service = new Service(
        world,
        endless(world, () => (world.random.next() >= slowShare ? world.between(5, 15) : world.between(2500, 3500))),
      );
      const turn = (): void => {
        slowShare = slowShare === 1 ? 0.1 : 1;
        world.after(15_000, turn);
      };
      world.after(15_000, turn);
      send(
        world,
        service,
        { everyMs: () => (slowShare === 1 ? 200 : 10), patienceMs: () => 5000, statesDeadline },
        120_000,
      );
      return [service];
    },
  },
  {
    name: 'a slow start',
    lengthMs: 30_000,
    play(world, statesDeadline) {
      const service = new Service(
        world,
        endless(world, () => Math.max(0, 3000 - world.now) + 50 + 500 * Math.exp(-world.now / 3000)),
      );
      send(world, service, { everyMs: () => 5, patienceMs: () => 5000, statesDeadline }, 30_000);
      return [service];
    },
  },
  {
    name: 'a slow start of a pool',
    lengthMs: 30_000,
    play(world, statesDeadline) {
      const service = new Service(world, pool(world, 10, () => 50 + 450 * Math.exp(-world.now / 500)));
      send(world, service, { everyMs: () => 15, patienceMs: () => 5000, statesDeadline }, 30_000);
      return [service];
    },
  },
  {
    name: 'long polls',
    lengthMs: 240_000,
    play(world, statesDeadline) {
      let waiting: (() => void)[] = [];
      const service = new Service(world, (request: Request, done) => {
        let isDone = false;
        const end = (ending: 'done' | 'cancelled') => (): void => {
          if (!isDone) done(ending);
          isDone = true;
        };
        if (world.random.next() < 0.05) world.after(5, end('done'));
        else {
          waiting.push(end('done'));
          world.after(30_000, end('done'));
          request.onAbort(end('cancelled'));
        }
      });
      const event = (): void => {
        const all = waiting;
        waiting = [];
        const share = world.random.next();
        for (const run of all) if (world.random.next() < share) run(); else waiting.push(run);
        world.after(world.exponential(20_000), event);
      };
      world.after(10_000, event);
      send(
        world,
        service,
        {
          everyMs: () => 30,
          patienceMs: () => (world.random.next() < 0.3 ? world.between(1000, 30_000) : 35_000),
          statesDeadline,
        },
        240_000,
      );
      return [service];
    },
  },
  {
    name: 'a dependency that is slow and steady',
    lengthMs: 120_000,
    play(world, statesDeadline) {
      const service = new Service(
        world,
        endless(world, () => (world.now < 20_000 ? world.between(30, 60) : world.between(2900, 3300))),
      );
      send(world, service, { everyMs: () => 20, patienceMs: () => 5000, statesDeadline }, 120_000);
      return [service];
    },
  },
  {
    name: 'a dependency that is slow and steady, and bursts',
    lengthMs: 120_000,
    play(world, statesDeadline) {
      const service = new Service(
        world,
        endless(world, () => (world.now < 20_000 ? world.between(30, 60) : world.between(2900, 3300))),
      );
      send(world, service, { everyMs: () => 100, patienceMs: () => 5000, statesDeadline }, 120_000);
      send(world, service, { everyMs: () => 11_000, patienceMs: () => 5000, statesDeadline, burst: 200 }, 120_000);
      send(
        world,
        service,
        { everyMs: (now) => (now % 30_000 < 10_000 ? 10 : 200), patienceMs: () => 5000, statesDeadline },
        120_000,
      );
      return [service];
    },
  },
  {
    name: 'a dependency that gets slower and slower, and well again',
    lengthMs: 120_000,
    play(world, statesDeadline) {
      const service = new Service(
        world,
        endless(world, () => 50 + 3000 * Math.max(0, Math.sin((world.now / 60_000) * Math.PI))),
      );
      send(world, service, { everyMs: () => 20, patienceMs: () => 5000, statesDeadline }, 120_000);
      return [service];
    },
  },
  {
    name: 'a dependency that hangs for 2 s now and then',
    lengthMs: 120_000,
    play(world, statesDeadline) {
      const service = new Service(
        world,
        endless(world, () => world.between(30, 60) + (world.now % 10_000 < 2000 ? 2000 - (world.now % 10_000) : 0)),
      );
      send(world, service, { everyMs: () => 10, patienceMs: () => 5000, statesDeadline }, 120_000);
      send(world, service, { everyMs: () => 10, patienceMs: () => 1000, statesDeadline }, 120_000);
      return [service];
    },
  },
  {
    name: 'a busy pool at 80 %',
    lengthMs: 120_000,
    play(world, statesDeadline) {
      const service = new Service(world, pool(world, 10, () => world.lognormal(80, 0.5), !statesDeadline));
      send(world, service, { everyMs: () => 11.3, patienceMs: () => 1000, statesDeadline }, 120_000);
      return [service];
    },
  },
];

/** A stop of the whole process for five seconds: what would happen meanwhile happens after it, at once and in order. */
function withStop(name: string, work: (world: World) => Work): Scenario {
  return {
    name,
    lengthMs: 40_000,
    play(world, statesDeadline) {
      const service = new Service(world, work(world));
      const stopped = {
        arrive: (request: Request): void => world.after(untilRunning(world), () => service.arrive(request)),
      };
      send(world, stopped, { everyMs: () => 10, patienceMs: () => 5000, statesDeadline }, 40_000);
      send(world, stopped, { everyMs: () => 50, patienceMs: () => 1000, statesDeadline }, 40_000);
      return [service];
    },
  };
}

function untilRunning(world: World): number {
  const from = 15_000;
  return world.now >= from && world.now < from + 5000 ? from + 5000 - world.now : 0;
}

/** What ends during the stop is noticed after it. */
const noticed = (world: World, done: () => void): void => world.after(untilRunning(world), done);

export const STOPS: readonly Scenario[] = [
  withStop(
    'a stop of five seconds',
    (world) => (_request, done) => world.after(world.between(20, 50), () => noticed(world, done)),
  ),
  withStop('a stop of five seconds in front of a pool', (world) => {
    const inner = pool(world, 10, () => world.between(20, 50));
    return (request, done) => inner(request, () => noticed(world, done));
  }),
];
