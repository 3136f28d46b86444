/**
 * Blocks of the documents that need more than a process of their own: files, a browser, another program.
 *
 * @module-tag package
 * @module-tag slow
 * @module-tag chromium
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { events, reply } from 'postern';
import { useBrowser } from '../support/browser.js';
import { CERTIFICATE, KEY } from '../support/localhost-certificate.js';
import { findBlocks, ROOT } from '../support/markdown.js';
import { packPackage } from '../support/packed.js';
import { freePorts } from '../support/ports.js';
import { createApp, serve } from '../support/serve.js';

const openPage = useBrowser();

/** The only block of a page that is not run as a program and has some text. */
function blockWith(page: string, part: string): string {
  const found = findBlocks(page).filter(({ meta, code }) => meta['run'] === 'no' && code.includes(part));
  expect(found).toHaveLength(1);
  return found[0]?.code ?? '';
}

/** A folder in which the package, and a library, are installed. */
function createFolder(library?: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-surroundings-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/postern'));
  if (library !== undefined)
    symlinkSync(join(ROOT, 'test/node_modules', library), join(folder, 'node_modules', library));
  return folder;
}

test('the sample for HTTPS answers, and drains at SIGTERM', { timeout: 60_000 }, async () => {
  const folder = createFolder();
  const [port = 0] = await freePorts(1);
  writeFileSync(join(folder, 'key.pem'), KEY);
  writeFileSync(join(folder, 'cert.pem'), CERTIFICATE);
  writeFileSync(join(folder, 'app.mjs'), blockWith('docs/how-do-i.md', 'node:https').replace('8443', String(port)));
  const child = spawn(process.execPath, ['app.mjs'], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ask = (): Promise<number | undefined> =>
    new Promise((resolve) => {
      const url = `https://localhost:${port}/shop/ping/`;
      const request = get(url, { ca: CERTIFICATE, family: 4 }, (response) => resolve(response.resume().statusCode));
      request.on('error', () => resolve(undefined));
    });
  await expect.poll(ask).toBe(200);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('the sample for Sentry reports what was thrown', { timeout: 60_000 }, async () => {
  const folder = createFolder('@sentry');
  const envelopes: string[] = [];
  const sentry = createServer((req, res) => {
    void text(req).then((envelope) => res.end(String(envelopes.push(envelope))));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void sentry.close());
  await once(sentry, 'listening');
  const { port } = sentry.address() as { port: number };
  const rest = `
app.get('/', () => { throw new Error('what was thrown'); });
console.log((await app.request('/')).status);
await Sentry.close(20_000);
`;
  writeFileSync(join(folder, 'app.mjs'), blockWith('docs/how-do-i.md', '@sentry/node') + rest);
  const env = { ...process.env, SENTRY_DSN: `http://key@127.0.0.1:${port}/1` };
  const child = spawn(process.execPath, ['app.mjs'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await text(child.stdout)).toBe('500\n');
  expect(envelopes.join('\n')).toContain('what was thrown');
});

test('the script for a page shows the events of the service', { timeout: 60_000 }, async () => {
  const app = createApp().get('/', () => reply('<title>orders</title>', { headers: { 'content-type': 'text/html' } }));
  app.get('/favicon.ico', () => undefined);
  app.get('/orders/events', () => events([{ event: 'placed', data: { item: 'lamp' } }], { retry: 60_000 }));
  const { url } = await serve(app);
  const { page, complaints } = await openPage(url);
  await page.addScriptTag({ content: blockWith('docs/guides/streaming.md', 'EventSource') });
  await expect.poll(() => complaints).toEqual(['lamp']);
});

test('an agent finds pages as the skill says', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-skill-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules/postern'), { recursive: true });
  const { tarball } = await packPackage();
  const extract = ['-xzf', tarball, '-C', join(folder, 'node_modules/postern'), '--strip-components=1'];
  await once(spawn('tar', extract), 'exit');
  const commands = blockWith('docs/SKILL.md', 'llms.txt').trim().split('\n');
  expect(commands).toHaveLength(3);
  for (const command of commands) {
    const child = spawn('sh', ['-c', command], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
    expect((await text(child.stdout)).split('\n').length, command).toBeGreaterThan(5);
  }
});
