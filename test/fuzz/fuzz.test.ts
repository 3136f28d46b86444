/**
 * A fixed part of the random input: the same iterations of the same seed each time. `npm run fuzz` draws fresh seeds.
 *
 * @module-tag slow
 */

import { afterAll, expect, test } from 'vitest';
import { FuzzThread } from './thread.js';

const SEED = 20_261_123;
/** Iterations of each target: a second or two each. */
const LAST = { router: 1000, headers: 10, body: 30, metrics: 400, errors: 30, http: 40, connections: 15 };

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
