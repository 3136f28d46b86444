/**
 * `postern live`: its page in a real Chromium, and what its server answers.
 *
 * @module-tag package
 * @module-tag slow
 * @module-tag chromium
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { useBrowser } from '../support/browser.js';
import { startFakeMesh } from '../support/fake-mesh.js';
import { askLive, reportOf, showReport, startLive } from '../support/live-page.js';
import { PATIENCE_MS } from '../support/patience.js';
import { rawExchange } from '../support/raw.js';
import { createApp, expectFailures } from '../support/serve.js';
import { freePort } from '../support/ports.js';

const open = useBrowser();
// A browser beside all other tests takes its time.
vi.setConfig({ testTimeout: 120_000, expect: { poll: { timeout: PATIENCE_MS, interval: 100 } } });
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SHOP = { shop: ['billing', 'mail'], billing: ['stock'], stock: ['shop'], mail: [] };

const textOf = (page: Page, selector: string): Promise<string> => page.locator(selector).innerText();
const services = async (page: Page): Promise<string[]> => (await page.locator('tbody tr button').allInnerTexts())
  .map((name) => name.trim());
const logOf = (page: Page): Promise<string[]> => page.locator('[role=log] li span').allInnerTexts();
const rowOf = (page: Page, name: string): ReturnType<Page['locator']> =>
  page.locator('tbody tr', { has: page.locator('button', { hasText: name }) }).first();

/** Makes the page believe that nobody looks at it, or that somebody does again. */
async function setHidden(page: Page, hidden: boolean): Promise<void> {
  await page.evaluate(
    `Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} }); document.dispatchEvent(new Event('visibilitychange'))`,
  );
}

test('lists every service once for each edge, with status, time, history and since when', async () => {
  const mesh = await startFakeMesh({ ...SHOP, mail: ['stock'] });
  mesh.times.set('mail', 742);
  const { url } = await startLive(mesh);
  const { page, complaints, requests } = await open(url);
  // stock is asked by two; what it asks stands below the first of them.
  await expect.poll(() => services(page)).toEqual(['shop', 'billing', 'stock', 'shop', 'mail', 'stock']);
  expect(await textOf(page, 'h1')).toBe('All 4 services answer');
  expect(await page.title()).toBe('shop');
  const mail = rowOf(page, 'mail');
  expect(await mail.locator('td').allInnerTexts())
    .toEqual([expect.stringMatching(/^200\s*$/), '742 ms', '', expect.stringMatching(/^\d\d:\d\d:\d\d$/)]);
  expect(await mail.getAttribute('class')).toContain('slow');
  await expect.poll(() => mail.locator('.last svg').getAttribute('aria-label'))
    .toBe('0 of the last 2 failed, 742 to 742 ms');
  expect(await page.locator('#graph .node').count()).toBe(4);
  expect(await page.locator('#graph .edge .line').count()).toBe(5);
  // Labels are for what is slow or fails.
  expect(await page.locator('#graph .edge text:visible').allTextContents()).toEqual(['742 ms']);
  mesh.down.add('stock');
  await expect.poll(() => page.title()).toBe('(2) shop');
  expect(await textOf(page, 'h1')).toBe('1 of 4 fails');
  expect(complaints).toEqual([]);
  expect(new Set(requests)).toEqual(new Set([url, `${url}mesh.json`]));
});

test('a service that goes down and comes back: status, title, graph and log, while focus and selection stay', async () => {
  const mesh = await startFakeMesh(SHOP);
  const { url } = await startLive(mesh);
  const { page, complaints } = await open(url);
  await expect.poll(() => services(page)).toHaveLength(5);
  expect(await logOf(page)).toEqual([]);
  await page.locator('tbody button').nth(1).focus();
  await page.evaluate(`getSelection().selectAllChildren(document.querySelector('tbody tr:nth-child(5) button'))`);

  mesh.down.add('stock').add('mail');
  await expect.poll(() => page.title()).toBe('(2) shop');
  expect(await textOf(page, 'h1')).toBe('2 of 4 fail');
  expect((await rowOf(page, 'mail').innerText()).replace(/\s+/g, ' ')).toContain('503 mail is unreachable');
  expect((await page.locator('#graph .node.fails text').allTextContents()).sort()).toEqual(['mail', 'stock']);
  expect(await page.locator('#graph .edge.fails text:visible').allTextContents()).toEqual(['503', '503']);
  // Nobody tells of what stock asks: it doesn't count as failing.
  expect(await rowOf(page, 'stock').locator('xpath=following-sibling::tr[1]').innerText()).toContain('out of sight');
  expect(await logOf(page)).toEqual([
    'stock → shop is out of sight',
    '2 fail: billing → stock (503), shop → mail (503)',
  ]);

  mesh.down.clear();
  await expect.poll(() => page.title()).toBe('shop');
  expect((await logOf(page)).slice(0, 2))
    .toEqual(['stock → shop appears', '2 answer again: billing → stock, shop → mail']);
  mesh.down.add('mail');
  await expect.poll(() => logOf(page).then(([newest]) => newest))
    .toBe('shop → mail fails: 503 mail is unreachable');
  expect(await page.title()).toBe('(1) shop');
  expect(await page.evaluate('document.activeElement.textContent')).toBe('billing');
  expect(await page.evaluate('String(getSelection())')).toBe('mail');
  expect(complaints).toEqual([]);
});

test('a page that is reloaded, or opened later, knows what changed before', async () => {
  const mesh = await startFakeMesh(SHOP);
  const { url } = await startLive(mesh);
  const { page } = await open(url);
  await expect.poll(() => services(page)).toHaveLength(5);
  mesh.down.add('mail');
  await expect.poll(() => logOf(page)).toEqual(['shop → mail fails: 503 mail is unreachable']);
  await page.reload();
  await expect.poll(() => logOf(page)).toEqual(['shop → mail fails: 503 mail is unreachable']);
  const later = await open(url);
  await expect.poll(() => logOf(later.page)).toEqual(['shop → mail fails: 503 mail is unreachable']);
  await expect.poll(() => rowOf(later.page, 'mail').locator('.last svg').getAttribute('aria-label'))
    .toMatch(/[1-9]\d* of the last \d+ failed/);
});

test('with --monitor it shows what failed there, with its calls', async () => {
  const services = { mail: () => new Response('', { status: 503 }) };
  const app = createApp({ monitor: { host: '127.0.0.1', port: 0 }, services });
  expectFailures(app, 503).get('/send', async (ctx) => (await ctx.service('mail').get('/<b>')).body as object);
  const { url: served, monitor } = await app.listen({ host: '127.0.0.1', port: 0 });
  await fetch(`${served}/send`);
  const { url } = await startLive(await startFakeMesh(SHOP), '--monitor', `${monitor?.url}/users/`);
  const { page, complaints } = await open(url);
  await expect.poll(() => page.locator('#failures li span').allTextContents()).toEqual([
    expect.stringMatching(/^users {2}GET \/send 503 framework_error_unspecified\n {2}└ mail GET 503 /),
  ]);
  expect(await page.locator('#known').isVisible()).toBe(true);
  expect(complaints).toEqual([]);
});

test('the asked service counts as one edge when it does not answer', async () => {
  const mesh = await startFakeMesh(SHOP);
  const lost = { ...mesh, url: `http://127.0.0.1:${await freePort()}/shop/` };
  const { page } = await open((await startLive(lost)).url);
  await expect.poll(() => page.title()).toBe('(1) shop');
  expect(await textOf(page, 'h1')).toBe('1 of 1 fails');
  expect(await rowOf(page, 'shop').innerText()).toContain('ECONNREFUSED');
});

test('20 edges that fail at once are one line of the log', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
  const mesh = await startFakeMesh({ edge: names });
  const { page } = await open((await startLive(mesh)).url);
  await expect.poll(() => services(page)).toHaveLength(21);
  for (const name of names) mesh.down.add(name);
  await expect.poll(() => logOf(page))
    .toEqual(['20 fail: edge → s0 (503), edge → s1 (503), edge → s2 (503), edge → s3 (503), and 16 more']);
});

test('asks every 2 s, hardly while hidden, at once when shown again, and one question at a time', async () => {
  const mesh = await startFakeMesh(SHOP);
  const { url } = await startLive(mesh);
  const { page, requests } = await open(url);
  await page.clock.install();
  await page.reload();
  const asked = (): number => requests.filter((each) => each === `${url}mesh.json`).length;
  /** Lets time pass for the page; by then its questions of that time are known here. */
  const pass = async (ms: number): Promise<void> => {
    await page.clock.runFor(ms);
    await page.evaluate(`fetch('/').then((answer) => answer.text())`);
  };
  await expect.poll(() => services(page)).toHaveLength(5);
  const first = asked();
  await pass(2_000);
  await expect.poll(asked).toBeGreaterThan(first);
  await setHidden(page, true);
  const shown = asked();
  for (let turn = 0; turn < 6; turn += 1) await pass(2_000);
  expect(asked() - shown).toBeLessThanOrEqual(1);
  let release = (): void => undefined;
  mesh.held = new Promise((resolve) => (release = resolve));
  const unseen = asked();
  await setHidden(page, false);
  await expect.poll(asked).toBe(unseen + 1);
  for (const hidden of [true, false, true, false]) await setHidden(page, hidden);
  await pass(3_000);
  expect(asked()).toBe(unseen + 1);
  release();
  mesh.held = undefined;
  await expect.poll(async () => (await pass(2_000), asked())).toBeGreaterThan(unseen + 1);
  expect(mesh.mostAtATime).toBe(1);
});

test('several pages ask the mesh no more than once at a time', async () => {
  const mesh = await startFakeMesh(SHOP);
  const { url } = await startLive(mesh);
  let release = (): void => undefined;
  mesh.held = new Promise((resolve) => (release = resolve));
  const answers = Array.from({ length: 5 }, () => fetch(`${url}mesh.json`));
  await expect.poll(() => mesh.asked).toBe(1);
  release();
  for (const answer of answers) expect((await answer).status).toBe(200);
  expect(mesh.mostAtATime).toBe(1);
});

test('says when it has lost its own server, and goes on by itself when that is back', async () => {
  const mesh = await startFakeMesh(SHOP);
  const port = String(await freePort());
  const { url, stop } = await startLive(mesh, '--port', port);
  expect(url).toBe(`http://127.0.0.1:${port}/`);
  const { page, complaints } = await open(url);
  await expect.poll(() => services(page)).toHaveLength(5);
  await stop();
  await expect.poll(() => textOf(page, '[role=status]')).toContain('lost its own server');
  expect(await page.title()).toBe('(?) shop');
  expect(await services(page)).toHaveLength(5);
  await startLive(mesh, '--port', port);
  await expect.poll(() => textOf(page, '[role=status]')).toBe('');
  await expect.poll(() => page.title()).toBe('shop');
  expect(await logOf(page)).toEqual([expect.stringMatching(/^This page's server is back after \d+ s$/)]);
  expect(complaints).toEqual([]);
});

test('every name and reason is text, whatever it holds', async () => {
  const names = [
    '<img src=x onerror=alert(1)>', '</script><script>alert(2)</script>', '"\' onload=alert(3) style=color:red',
    'a\u202eb\u0000c', '__proto__', '', 'x'.repeat(5_000),
  ];
  const mesh = await startFakeMesh({ shop: names });
  mesh.down.add(names[0] ?? '').add(names[1] ?? '');
  const { page, complaints, requests } = await open((await startLive(mesh)).url, {
    viewport: { width: 400, height: 800 },
  });
  await expect.poll(() => services(page)).toHaveLength(1 + names.length);
  expect((await services(page)).slice(1, 6)).toEqual([...names.slice(0, 3), 'a\\u202eb\\u0000c', '__proto__']);
  expect(await rowOf(page, '<img').innerText()).toContain('<img src=x onerror=alert(1)> is unreachable');
  expect(await page.locator('img, main script').count()).toBe(0);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(400);
  expect(complaints).toEqual([]);
  expect(requests.every((url) => url.startsWith('http://127.0.0.1:'))).toBe(true);
});

test.for(['light', 'dark'] as const)(
  'axe finds nothing in %s, at any width, with 30 services and failures',
  async (colorScheme) => {
    const names = Array.from({ length: 29 }, (_, index) => `service-${index}`);
    const mesh = await startFakeMesh({ edge: names, 'service-3': ['edge'] });
    mesh.times.set('service-5', 900);
    const { page, complaints } = await open((await startLive(mesh)).url, {
      colorScheme,
      viewport: { width: 1440, height: 900 },
    });
    await expect.poll(() => services(page)).toHaveLength(31);
    mesh.down.add('service-7').add('service-8').add('service-3');
    await expect.poll(() => page.title()).toBe('(3) edge');
    await page.evaluate(AXE);
    for (const width of [1440, 800, 400]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate('document.documentElement.scrollWidth'), `at ${width} px`).toBe(width);
      // What axe says of all that is right is 300 times as long.
      const violations = await page.evaluate(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
        violations.map(({ id, impact, nodes }) => impact + ' ' + id + ': ' + nodes[0].html))`);
      expect(violations, `at ${width} px`).toEqual([]);
    }
    expect(complaints).toEqual([]);
  },
);

test('the keyboard reaches every service, and points at its edge in the graph', async () => {
  const mesh = await startFakeMesh(SHOP);
  const { page } = await open((await startLive(mesh)).url);
  await expect.poll(() => services(page)).toHaveLength(5);
  const reached: string[] = [];
  for (let presses = 0; presses < 8; presses += 1) {
    await page.keyboard.press('Tab');
    reached.push(String(await page.evaluate('document.activeElement.innerText')).split('\n')[0]?.trim() ?? '');
    if (reached.at(-1) === 'stock') break;
  }
  expect(reached.slice(-3)).toEqual(['shop', 'billing', 'stock']);
  expect(await page.locator('#graph .edge.pointed text:visible').allTextContents()).toEqual(['3 ms']);
  await page.keyboard.press('Enter');
  expect(await page.locator('tbody button[aria-pressed=true]').allInnerTexts()).toEqual(['stock']);
});

test('an edge that failed and then vanished counts no more', async () => {
  const mesh = await startFakeMesh({ shop: ['billing', 'mail'] });
  mesh.down.add('mail');
  const { url } = await startLive(mesh);
  const { page } = await open(url);
  await expect.poll(() => page.title()).toBe('(1) shop');
  mesh.edges['shop'] = ['billing'];
  await expect.poll(() => page.title()).toBe('shop');
  expect(await textOf(page, 'h1')).toBe('Both services answer');
});

test('a sparkline has the last 60 at its right end, failures in full height, and no slow answer flattens the others', async () => {
  const mesh = await startFakeMesh({ shop: ['mail'] });
  const { url } = await startLive(mesh);
  const look = async (ms: number): Promise<void> => {
    mesh.times.set('mail', ms);
    await askLive(url);
  };
  for (let count = 0; count < 20; count += 1) await look(40);
  await look(9_000);
  mesh.edges['shop'] = [];
  await look(0);
  mesh.edges['shop'] = ['mail'];
  mesh.down.add('mail');
  const report = await askLive(url);
  const { page } = await open(url);
  await showReport(page, report);
  const path = async (name: string): Promise<string> =>
    (await rowOf(page, 'mail').locator(`.last .${name}`).getAttribute('d')) ?? '';
  await expect.poll(() => path('failed')).toBe('M177 28v-28h2v28z');
  const answered = await path('answered');
  expect(answered.match(/M/g)).toHaveLength(21);
  const heights = [...answered.matchAll(/v-([\d.]+)h/g)].map(([, height]) => Number(height));
  expect(heights.at(-1)).toBe(28);
  expect(heights[0]).toBeGreaterThan(14);
});

/** The graph of a page for edges like `ab`, from `a` to `b`. */
async function draw(...pairs: readonly string[]): Promise<Awaited<ReturnType<typeof showReport>>> {
  const names = [...new Set(pairs.join(''))];
  const { page } = await open((await startLive(await startFakeMesh(SHOP))).url);
  return showReport(page, reportOf(names, pairs.map(([from = '', to = '']) => [from, to])));
}

test('a graph has a column for each length of way, and edges that lead back run below everything', async () => {
  const { nodes, edges, height } = await draw('ab', 'bc', 'ac', 'cd', 'da', 'dd');
  const columns = ['a', 'b', 'c', 'd'].map((name) => nodes[name] ?? { x: 0, y: 0, width: 0 });
  for (const [index, { x, width }] of columns.slice(0, -1).entries())
    expect((columns[index + 1]?.x ?? 0) - x).toBeGreaterThan(width + 60);
  const bottom = Math.max(...columns.map(({ y }) => y + 17));
  for (const key of ['d>a', 'd>d']) expect(edges[key]?.labelY).toBeGreaterThan(bottom);
  expect(edges['d>a']?.labelY).not.toBe(edges['d>d']?.labelY);
  for (const { labelY } of Object.values(edges)) expect(labelY).toBeLessThan(height);
});

test('an edge that skips a layer keeps clear of the service in it', async () => {
  const { nodes, edges } = await draw('ab', 'bc', 'ac');
  const { x = 0, y = 0, width = 0 } = nodes['b'] ?? {};
  const passing = [...(edges['a>c']?.path.matchAll(/ (\d+)H(\d+)/g) ?? [])].map(([, at, to]) => ({
    y: Number(at),
    x: Number(to),
  }));
  expect(passing).toEqual([{ x: x + width, y: expect.any(Number) }]);
  expect(Math.abs((passing[0]?.y ?? 0) - y)).toBeGreaterThan(22);
});

test('the page is one document that permits nothing else', async () => {
  const { url } = await startLive(await startFakeMesh(SHOP));
  const [one, two] = await Promise.all([fetch(url), fetch(url)]);
  const policy = one.headers.get('content-security-policy') ?? '';
  expect(policy).toMatch(
    /^default-src 'none'; script-src 'nonce-[^']{20,}'; style-src 'nonce-[^']{20,}'; connect-src 'self'/,
  );
  expect(policy).not.toBe(two.headers.get('content-security-policy'));
  expect(policy).not.toContain('unsafe');
  const html = await one.text();
  expect(html).not.toMatch(/\b(?:src|href)="(?!data:)|@import|url\(| style="|innerHTML/);
  const answer = await fetch(`${url}mesh.json`);
  expect([answer.status, answer.headers.get('content-type'), answer.headers.get('access-control-allow-origin')])
    .toEqual([200, 'application/json', null]);
});

test('stops at once while the mesh hangs', async () => {
  const mesh = await startFakeMesh(SHOP);
  mesh.held = new Promise(() => undefined);
  const { url, stop } = await startLive(mesh);
  const closed = expect(fetch(`${url}mesh.json`)).rejects.toThrow();
  await expect.poll(() => mesh.asked).toBe(1);
  await stop();
  await closed;
});

const hosts = [
  { host: 'localhost:8000', status: 200 },
  { host: 'LOCALHOST', status: 200 },
  { host: '127.0.0.1:1', status: 200 },
  { host: '[::1]:8000', status: 200 },
  { host: 'evil.example', status: 403 },
  { host: 'localhost.evil.example', status: 403 },
  { host: '127.0.0.1.evil.example', status: 403 },
  { host: '10.0.0.1', status: 403 },
];
test('answers under a name of loopback alone, so that no page from elsewhere can read the mesh', async () => {
  const { url } = await startLive(await startFakeMesh(SHOP));
  for (const { host, status } of hosts) {
    for (const path of ['/', '/mesh.json']) {
      const answer = await rawExchange(
        Number(new URL(url).port),
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      expect(answer, `${host} ${path}`).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      if (status === 403) expect(answer).not.toContain('shop');
    }
  }
});
