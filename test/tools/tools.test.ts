/**
 * The service under the tools that take the least time; `npm run tools` runs it under all of them.
 *
 * @module-tag package
 * @module-tag slow
 */

import { afterAll, beforeAll, test } from 'vitest';
import { packPackage } from '../support/packed.js';
import { Package } from './harness.js';
import { TOOLS } from './tools.js';

const NAMES = [
  'the first nine requests at once, 20 starts',
  'esbuild esm',
  'esbuild cjs',
  'tsx',
  'tsx with CommonJS',
  'vitest threads inline',
  'mv node_modules under the process',
  'no file descriptor left',
];
const runtime = { binary: process.execPath, major: Number(process.versions.node.split('.')[0]) };

let packed: Package;
beforeAll(async () => {
  packed = new Package((await packPackage()).tarball);
}, 120_000);
afterAll(() => packed.close());

test.for(NAMES)('the service is right: %s', { timeout: 120_000 }, async (name) => {
  const tool = TOOLS.find((each) => each.name === name);
  if (tool === undefined) throw new Error(`no tool is called ${name}`);
  const place = packed.createPlace();
  await tool.check(runtime, place);
});
