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

test('8 random sites and 2,000 requests', { timeout: 120_000 }, async () => {
  const { sent, answered, failures } = await runSites(createRandom(20_261_123), 8, 84);
  expect(failures).toEqual([]);
  expect(sent).toBeGreaterThan(2_000);
  expect(answered).toBeGreaterThan(100);
});

test('the public learns nothing of the calls that were made for a request', { timeout: 120_000 }, async () => {
  const { told, failures } = await askAsPublic(createRandom(2_026), 60);
  expect(failures).toEqual([]);
  expect(told).toBeGreaterThan(20);
});

/** Ways to break an exporter, what is noticed then of each gateway, and what a service notices. */
const MUTATIONS = [
  { what: 'without the scope', edit: (text: string) => text.replace(/^.*X-Postern-Scope public;?$/gm, ''),
    noticed: /is reached, which/, inService: /got the scope undefined/ },
  { what: 'with a parameter that is too narrow', edit: (text: string) => text.replaceAll('[^/]+\\z', '[a-z]+\\z'),
    noticed: /from nobody instead of/ },
  { what: 'with a wildcard that is too narrow',
    edit: (text: string) => text.replace(/\(\?s\)(\^[^"'`]*)\./g, '$1[a-z]'), noticed: /from nobody instead of/ },
  { what: 'that answers HEAD and OPTIONS only', edit: (text: string) => text.replace(/([,: ])GET\b/g, '$1GETS'),
    noticed: /from nobody instead of/ },
];

test.for(MUTATIONS)('an exporter $what is noticed, for each gateway', async ({ edit, noticed, inService = noticed }) => {
  const broken = Object.entries(EXPORTERS).map(([name, exporter]) => {
    return [name, (...args: Parameters<typeof exporter>) => edit(exporter(...args))] as const;
  });
  const { failures } = await runSites(createRandom(12), 8, 60, Object.fromEntries(broken));
  const isNoticed = (name: string): boolean => failures.some((text) => text.startsWith(name) && noticed.test(text));
  expect(Object.keys(EXPORTERS).filter(isNoticed), failures[0]).toEqual(Object.keys(EXPORTERS));
  expect(failures.some((text) => inService.test(text))).toBe(true);
});
