/**
 * A fixed part of the random input: the same iterations of the same seed each time. `npm run fuzz` draws fresh seeds.
 *
 * @module-tag slow
 */

import { afterAll, expect, test } from 'vitest';
import { FuzzThread } from './thread.js';

const SEED = 20_261_123;
/** Iterations of each target: some seconds each. */
const LAST = { router: 3000, headers: 15, body: 50, metrics: 1000, errors: 60, http: 80, connections: 25 };

const thread = new FuzzThread();
afterAll(() => thread.stop());

const targets = Object.entries(LAST).map(([target, last]) => ({ target, last }));

test.for(targets)(
  'the first $last random inputs for $target find nothing',
  { timeout: 900_000 },
  async ({ target, last }) => {
    const { failure } = await thread.run({ seed: SEED, target, from: 0, to: last, seconds: 0 });
    expect(failure).toBeNull();
  },
);
