/**
 * Random services behind real gateways: only public handlers run, and every request that one of them answers gets
 * through. `npm run gateways` asks the same of 600 sites, and 20,000 requests of the kind that fails or is slow.
 *
 * @module-tag gateways
 */

import { expect, test } from 'vitest';
import { createRandom } from '../support/random.js';
import { runSites } from '../support/gateway-random.js';
import { EXPORTERS } from '../support/gateway-site.js';
import { askAsPublic } from '../support/public-calls.js';

test('12 random sites and 4,000 requests', { timeout: 120_000 }, async () => {
  const { sent, answered, failures } = await runSites(createRandom(20_261_123), 12, 112);
  expect(failures).toEqual([]);
  expect(sent).toBeGreaterThan(4_000);
  expect(answered).toBeGreaterThan(200);
});

test('the public learns nothing of the calls that were made for a request', { timeout: 120_000 }, async () => {
  const { told, failures } = await askAsPublic(createRandom(2_026), 60);
  expect(failures).toEqual([]);
  expect(told).toBeGreaterThan(20);
});

/** Ways to break an exporter, and what is noticed then. */
const MUTATIONS = [
  { what: 'without the scope', edit: (text: string) => text.replace(/^.*X-Postern-Scope public;?$/gm, ''),
    noticed: /was reached by|got the scope/ },
  { what: 'with a parameter that is too narrow', edit: (text: string) => text.replaceAll('[^/]+$', '[a-z]+$'),
    noticed: /from nobody instead of/ },
  { what: 'with a wildcard that is too narrow',
    edit: (text: string) => text.replace(/\(\?s\)(\^[^"'`]*)\./g, '$1[a-z]'), noticed: /from nobody instead of/ },
  { what: 'that answers HEAD and OPTIONS only', edit: (text: string) => text.replace(/([,: ])GET\b/g, '$1GETS'),
    noticed: /from nobody instead of/ },
];
const broken = MUTATIONS.flatMap((mutation) =>
  (['nginx', 'haproxy', 'caddy'] as const).map((name) => ({ ...mutation, name })),
);

test.for(broken)('an exporter for $name $what is noticed', async ({ name, edit, noticed }) => {
  const { failures } = await runSites(createRandom(12), 8, 60, {
    [name]: (...args: Parameters<(typeof EXPORTERS)['nginx']>) => edit(EXPORTERS[name](...args)),
  });
  expect(failures.filter((failure) => noticed.test(failure)).length, failures[0]).toBeGreaterThan(0);
});
