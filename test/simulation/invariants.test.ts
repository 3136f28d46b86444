/** Invariants that no mutant violates, each with a log that does. */

import { expect, test } from 'vitest';
import { check } from './invariants.js';
import type { Plan, Work } from './scenarios.js';
import type { Details } from './world.js';

type Row = readonly [at: number, host: string, what: string, id: string, details?: Details];

/** A plan with the request r0, which does this work. */
function planOf(scenario: string, work: Partial<Work>): Plan {
  const usual = { id: 'r0', service: 'shop', method: 'get', ms: 0, timeout: 0, retry: 0, calls: [] } as const;
  const requests = [{ at: 0, client: 0, patience: 100, work: { ...usual, ...work } }];
  return { scenario, seed: 0, services: [], faults: [], requests };
}

const many = (row: Row, count: number): Row[] => Array.from({ length: count }, () => row);
const last = planOf('', { id: 'r0.0.0', fails: 'api' }).requests.map(({ work }) => work);

test.for<readonly [violation: string, plan: Plan, ...log: Row[]]>([
  ['a request ends when its client gives up, or before: r0 took 200 ms of 100', planOf('', {}),
    [0, 'client-0', 'send', 'r0', { ms: 100 }], [200, 'client-0', 'got', 'r0', { body: 'r0' }]],
  ['a request ends when its client gives up, or before: r0 took Infinity ms of 100', planOf('', {}),
    [0, 'client-0', 'send', 'r0', { ms: 100 }]],
  ['a call ends when its caller leaves or has no time left: the call r0.0 of h1 went on for 100 ms', planOf('', {}),
    [0, 'shop-0', 'run', 'r0', { uid: 'h1', ms: 50 }], [150, 'shop-0', 'called', 'r0.0', { uid: 'h1', from: 10 }]],
  ['a new instance gets its share: shop-1 got none of 21 requests, on 0 connections', planOf('ages', {}),
    [10_000, 'shop-1', 'ready', 'shop-1'], ...many([15_000, 'shop-0', 'run', 'r0'], 21)],
  ['a drained instance closes, and gets no more requests: shop-0 closed Infinity ms too late', planOf('', {}),
    [0, '', 'drain', 'shop-0', { until: 12_000 }]],
  ['a drained instance closes, and gets no more requests: r0 began on shop-0 after it was closed', planOf('', {}),
    [0, '', 'drain', 'shop-0', { until: 12_000 }], [5_000, '', 'closed', 'shop-0'], [5_001, 'shop-0', 'run', 'r0']],
  ['no reply goes to another request: r0 got r1', planOf('', {}), [0, 'client-0', 'got', 'r0', { body: 'r1' }]],
  ['a stream is whole, or an error: r0 has 2 of 3 chunks', planOf('', { chunks: 3 }),
    [0, 'client-0', 'got', 'r0', { count: 2 }]],
  ['an error that a service throws reaches the client: r0 ended in 500 undefined', planOf('', { calls: last }),
    [0, 'client-0', 'got', 'r0', { statusCode: 500 }]],
  ['an overloaded service keeps answering: 0.5 replies a second of 40 that are possible', planOf('overload', {}),
    ...many([10_000, 'client-0', 'send', 'r0', { ms: 2_000 }], 400), [10_500, 'client-0', 'got', 'r0', { body: 'r0' }]],
  ['counters agree with what happened: client-0 counts 1 attempts of 0', planOf('', {}),
    [0, 'client-0', 'left', 'client-0', { attempts: 1, requests: 0 }]],
  ['counters agree with what happened: shop-0 counts 0 requests of 1', planOf('', {}),
    [0, 'shop-0', 'run', 'r0'], [1, 'shop-0', 'left', 'shop-0', { attempts: 0, requests: 0 }]],
])('%s', ([violation, plan, ...log]) => {
  const entries = log.map(([at, host, what, id, details]) => ({ at, host, what, id, ...details }));
  expect(check(plan, entries)).toEqual([violation]);
});
