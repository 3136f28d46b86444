/** A real Chromium without a window, as Debian installs it; nothing of it is shared between tests. */

import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

/** A page, and what it did that a page of ours must not do. */
export interface WatchedPage {
  readonly page: Page;
  /** Messages of the console but those of a request that failed, uncaught errors and dialogs. */
  readonly complaints: readonly string[];
  /** Addresses that it asked for anything. */
  readonly requests: readonly string[];
}

const ARGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

/** Starts a browser for the tests of a file; pages are closed when their test ends. */
export function useBrowser(): (url: string, options?: BrowserContextOptions) => Promise<WatchedPage> {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ARGS });
  }, 60_000);
  afterAll(async () => browser?.close());
  return async (url, options = {}) => {
    if (browser === undefined) throw new Error('a page is opened in a test');
    const context = await browser.newContext(options);
    onTestFinished(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    const requests: string[] = [];
    page.on('console', (message) => {
      if (!message.text().startsWith('Failed to load resource: net::ERR_CONNECTION')) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('dialog', (dialog) => {
      complaints.push(dialog.message());
      void dialog.dismiss();
    });
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(url);
    return { page, complaints, requests };
  };
}
