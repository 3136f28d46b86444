/** Ten scenarios; each draws a plan from a seed. */

import { createRandom, several, type Random } from '../support/random.js';
import type { Fault, Plan, Request, Work } from './mesh.js';

type Draw = (random: Random) => Omit<Plan, 'scenario' | 'seed'>;

const between = (random: Random, least: number, most: number): number => least + random.int(most - least + 1);
const one = <T>(random: Random, ...choices: readonly T[]): T => random.pick(choices);

/** Work that goes through these services, one after the other. */
function chain(
  random: Random,
  id: string,
  [service = '', ...more]: readonly string[],
  changes: (depth: number) => Partial<Work> = () => ({}),
  depth = 0,
): Work {
  const method = one(random, 'GET', 'GET', 'POST');
  const calls = more.length === 0 ? [] : [chain(random, `${id}.0`, more, changes, depth + 1)];
  return {
    id,
    service,
    method,
    ms: between(random, 0, 40),
    timeout: 2_000,
    retry: one(random, 0, 2),
    calls,
    ...changes(depth),
  };
}

/** Requests spread over some time. */
function requests(
  random: Random,
  count: number,
  overMs: number,
  workOf: (id: string) => Work,
  patience = 10_000,
): Request[] {
  return Array.from({ length: count }, (_, i) => ({
    at: random.int(overMs),
    client: random.int(3),
    patience,
    work: workOf(`r${i}`),
  }));
}

const faults = (random: Random, most: number, overMs: number, draw: () => Omit<Fault, 'at'>): Fault[] =>
  several(random, 1, most, () => ({ at: 1_000 + random.int(overMs), ...draw() }));
const shopAndBilling = (random: Random): Plan['services'] => [
  { name: 'shop', instances: between(random, 2, 4), knows: ['billing'] },
  { name: 'billing', instances: between(random, 2, 4), knows: [] },
];
const two = ['shop', 'billing'];
const anywhere = (random: Random, kind: Fault['kind'], ms: number): Omit<Fault, 'at'> =>
  ({ kind, service: one(random, ...two), instance: random.int(4), ms });

export const SCENARIOS: Readonly<Record<string, Draw>> = {
  'rolling update': (random) => ({
    services: shopAndBilling(random),
    clients: 3,
    requests: requests(
      random,
      200,
      60_000,
      (id) => chain(random, id, two, () => ({ ms: between(random, 0, one(random, 40, 40, 5_000)), timeout: 15_000 })),
      20_000,
    ),
    faults: two.map((service, i) => ({
      at: 3_000 + i * between(random, 1_000, 20_000),
      kind: 'update',
      service,
      instance: 0,
      ms: 0,
    })),
  }),
  crash: (random) => ({
    services: shopAndBilling(random),
    clients: 3,
    requests: requests(random, 150, 30_000, (id) => chain(random, id, two, () => ({ ms: between(random, 0, 600) }))),
    faults: faults(random, 3, 25_000, () =>
      anywhere(random, one(random, 'crash', 'outage'), between(random, 500, 8_000)),
    ),
  }),
  partition: (random) => ({
    services: shopAndBilling(random),
    clients: 3,
    requests: requests(random, 150, 30_000, (id) => chain(random, id, two)),
    faults: faults(random, 3, 25_000, () => ({
      ...anywhere(random, 'cut', between(random, 500, 9_000)),
      service: 'shop',
      other: one(random, 'billing', 'client-0', 'client-1'),
    })),
  }),
  pause: (random) => ({
    services: shopAndBilling(random),
    clients: 3,
    requests: requests(random, 150, 30_000, (id) => chain(random, id, two)),
    faults: faults(random, 4, 25_000, () => anywhere(random, 'pause', between(random, 200, 3_000))),
  }),
  retries: (random) => {
    const share = 0.2 + 0.7 * random.next();
    const failing = (): Partial<Work> => ({
      method: 'GET',
      retry: 2,
      fails: random.next() < share ? one(random, 'http', 'http', 'late', 'api', 'bug') : undefined,
    });
    return {
      services: ['a', 'b', 'c'].map((name, i) => ({
        name,
        instances: between(random, 1, 2),
        knows: i === 2 ? [] : [['b', 'c'][i] as string],
      })),
      clients: 2,
      requests: requests(random, 600, 9_000, (id) =>
        chain(random, id, ['a', 'b', 'c'], (depth) => (depth === 2 ? failing() : { method: 'GET', retry: 2 })),
      ),
      faults: [],
    };
  },
  deadlines: (random) => ({
    services: ['a', 'b', 'c', 'd', 'e'].map((name, i, all) => ({ name, instances: 1, knows: all.slice(i + 1, i + 2) })),
    clients: 2,
    requests: requests(
      random,
      100,
      20_000,
      (id) =>
        chain(random, id, ['a', 'b', 'c', 'd', 'e'], (depth) => ({
          ms: between(random, 0, 300),
          timeout: depth === 0 ? 5_000 : between(random, 100, 2_000),
          optional: random.next() < 0.2,
        })),
      between(random, 300, 5_000),
    ),
    faults: faults(random, 2, 15_000, () => ({
      kind: 'pause',
      service: one(random, 'b', 'd'),
      instance: 0,
      ms: between(random, 100, 3_000),
    })),
  }),
  pings: (random) => ({
    services: ['a', 'b', 'c'].map((name, i, all) => ({ name, instances: 1, knows: [all[(i + 1) % 3] as string] })),
    clients: 2,
    requests: requests(
      random,
      60,
      15_000,
      (id) => chain(random, id, [one(random, 'a', 'b', 'c')], () => ({ timeout: 9_000 })),
      20_000,
    ).map((request) => ({ ...request, ping: random.int(6) })),
    faults:
      random.int(2) === 0
        ? []
        : faults(random, 2, 10_000, () => ({
            kind: 'pause',
            service: one(random, 'b', 'c'),
            instance: 0,
            ms: between(random, 100, 3_000),
          })),
  }),
  streams: (random) => ({
    services: shopAndBilling(random),
    clients: 3,
    requests: requests(
      random,
      80,
      20_000,
      (id) =>
        chain(random, id, two, (depth) => ({
          method: 'GET',
          retry: 0,
          chunks: between(random, 1, 60),
          fails: depth === 1 && random.int(4) === 0 ? 'bug' : undefined,
        })),
      one(random, 700, 10_000),
    ),
    faults: faults(random, 3, 15_000, () =>
      anywhere(random, one(random, 'crash', 'pause', 'outage'), between(random, 500, 4_000)),
    ),
  }),
  overload: (random) => ({
    services: [{ name: 'shop', instances: 1, knows: [], pool: 4 }],
    clients: 3,
    requests: requests(
      random,
      1_600,
      8_000,
      (id) => chain(random, id, ['shop'], () => ({ method: 'GET', ms: 100, retry: one(random, 0, 1), timeout: 1_000 })),
      1_000,
    ),
    faults: [],
  }),
  ages: (random) => ({
    services: shopAndBilling(random),
    clients: 3,
    maxConnectionAge: between(random, 2_000, 5_000),
    requests: requests(random, 250, 60_000, (id) => chain(random, id, two)),
    faults: faults(random, 5, 50_000, () => anywhere(random, one(random, 'start', 'start', 'stop'), 0)),
  }),
};

export function drawPlan(scenario: string, seed: number): Plan {
  const draw = SCENARIOS[scenario];
  if (draw === undefined)
    throw new RangeError(`no scenario ${scenario}; there is ${Object.keys(SCENARIOS).join(', ')}`);
  // Each scenario has choices of its own under one seed.
  const salt = [...scenario].reduce((sum, char) => Math.imul(sum, 31) + char.charCodeAt(0), 7);
  return { scenario, seed, ...draw(createRandom(seed ^ salt)) };
}
