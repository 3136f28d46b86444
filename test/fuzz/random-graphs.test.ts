/**
 * Random meshes as graphs of the live page: no two services overlap, and every edge is drawn.
 *
 * @module-tag package
 * @module-tag slow
 * @module-tag chromium
 */

import { expect, test } from 'vitest';
import { useBrowser } from '../support/browser.js';
import { startFakeMesh } from '../support/fake-mesh.js';
import { reportOf, showReport, startLive } from '../support/live-page.js';
import { createRandom } from '../support/random.js';

const open = useBrowser();

test('100 random graphs', { timeout: 120_000 }, async () => {
  const random = createRandom(7);
  const { page } = await open((await startLive(await startFakeMesh({ s0: [] }))).url);
  for (let round = 0; round < 100; round += 1) {
    const all = Array.from({ length: 2 + random.int(28) }, (_, index) => `s${index}`);
    const links = all.flatMap((from) =>
      all.filter(() => random.int(all.length) < 2).map((to) => [from, to] as const),
    );
    const { nodes, edges, width, height } = await showReport(page, reportOf(all, links));
    expect(Object.keys(edges)).toHaveLength(links.length);
    const boxes = Object.values(nodes);
    expect(Object.keys(nodes).sort()).toEqual([...new Set(['s0', ...links.flat()])].sort());
    for (const [index, one] of boxes.entries()) {
      const isWithin = one.x >= 0 && one.x + one.width <= width && one.y - 17 >= 0 && one.y + 17 <= height;
      expect(isWithin, `${round}`).toBe(true);
      for (const other of boxes.slice(index + 1))
        expect(one.x === other.x && Math.abs(one.y - other.y) < 40, `${round}`).toBe(false);
    }
  }
});
