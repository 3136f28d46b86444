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
    const outside = boxes.filter(({ x, y, width: wide }) => x < 0 || x + wide > width || y < 17 || y + 17 > height);
    const overlapping = boxes.flatMap((one, index) =>
      boxes.slice(index + 1).filter((other) => one.x === other.x && Math.abs(one.y - other.y) < 40),
    );
    expect({ round, outside, overlapping }).toEqual({ round, outside: [], overlapping: [] });
  }
});
