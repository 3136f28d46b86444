/**
 * A fixed part of the random input: the same iterations of the same seed each time. `npm run fuzz` draws fresh seeds.
 *
 * @module-tag slow
 */

import { afterAll, expect, test } from 'vitest';
import { FuzzThread } from './thread.js';

const SEED = 20_261_123;
/** Iterations of each target: a second each. */
const LAST = { router: 500, headers: 5, body: 15, metrics: 300, errors: 15, http: 20, connections: 8 };

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
