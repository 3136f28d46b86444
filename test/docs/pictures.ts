/**
 * Makes the pictures of the documents, from `dist` as it was built last: `npm run pictures`. It needs Chromium,
 * Prometheus, and the font of Grafana (Debian: `fonts-inter`).
 *
 * `docs/images/overload.svg` is a measurement: `npm run docs` draws what `npm run bench -- overload` has found.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { chromium, type Browser } from 'playwright-core';
import { Postern } from 'postern';
import { ROOT } from '../support/markdown.js';
import { drawDashboard } from './dashboard-picture.js';
import { drawDrain, drawRequest } from './diagrams.js';

const IMAGES = join(ROOT, 'docs/images');
const SERVICES: Readonly<Record<string, readonly string[]>> = {
  stock: [],
  mail: [],
  billing: ['stock'],
  search: ['stock'],
  shop: ['billing', 'search', 'mail'],
};
/** Long enough for a history in each row. */
const HEALTHY_MS = 30_000;

writeFileSync(join(IMAGES, 'request.svg'), drawRequest());
writeFileSync(join(IMAGES, 'drain.svg'), drawDrain());
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
await photographLivePage(browser);
await photographDashboard(browser);
await browser.close();

/** A mesh of five services on the page of `postern live`: in good health, and after one of them has stopped. */
async function photographLivePage(browser: Browser): Promise<void> {
  const urls = new Map<string, string>();
  const apps = new Map<string, Postern>();
  for (const [name, connections] of Object.entries(SERVICES)) {
    const settings = { SERVICE_CONNECTIONS: connections.map((each) => `${each}=${urls.get(each)}`) };
    const app = new Postern(name, { settings, logger: false });
    apps.set(name, app);
    urls.set(name, (await app.listen({ host: '127.0.0.1', port: 0 })).url);
  }
  const live = spawn(process.execPath, [join(ROOT, 'dist/cli.js'), 'live', `${urls.get('shop')}/shop/`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [printed] = (await once(live.stdout, 'data')) as [Buffer];
  const [url = ''] = /^http:\S+$/m.exec(String(printed)) ?? [];
  const pages = await Promise.all(
    (['light', 'dark'] as const).map(async (colorScheme) => {
      const page = await browser.newPage({
        colorScheme,
        viewport: { width: 860, height: 700 },
        deviceScaleFactor: 1.5,
      });
      await page.goto(url);
      return { page, colorScheme };
    }),
  );
  await setTimeout(HEALTHY_MS);
  for (const { page, colorScheme } of pages)
    await page.screenshot({ path: join(IMAGES, `live-healthy-${colorScheme}.png`) });
  await apps.get('mail')?.close();
  for (const { page, colorScheme } of pages) {
    await page.locator('h1.fails').waitFor();
    await page.screenshot({ path: join(IMAGES, `live-${colorScheme}.png`) });
  }
  live.kill('SIGTERM');
  for (const app of apps.values()) await app.close();
}

/** The dashboard for Grafana, drawn as a page. */
async function photographDashboard(browser: Browser): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1400, height: 100 } });
  await page.setContent(await drawDashboard());
  await page.screenshot({ path: join(IMAGES, 'dashboard.png'), fullPage: true });
}
