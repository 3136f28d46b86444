/**
 * Every program in the documents compiles and prints what is printed below it.
 *
 * A block `ts` or `js` without `file=` is a program as it is printed. Recipes only have to compile here:
 * `recipes.test.ts` runs them and talks to them. So do the files of a session, which `walks.test.ts` runs.
 *
 * @module-tag package
 */

import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compile, PROGRAMS, programs, writePrograms } from '../support/documented-programs.js';
import { isAsPrinted, ROOT } from '../support/markdown.js';

let folder = '';
beforeAll(async () => {
  folder = writePrograms();
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  await compile(folder, tsc, PROGRAMS, { rewriteRelativeImportExtensions: true });
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.concurrent.for(programs.filter(({ place }) => !place.startsWith('docs/recipes')))(
  '$place runs and prints what the page says',
  { timeout: 60_000 },
  async ({ file, output = '' }, { expect: check }) => {
    const child = spawn(process.execPath, [`${file}.mjs`], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PORT: '0' },
    });
    let [printed, errors] = ['', ''];
    child.stdout.on('data', (chunk) => (printed += String(chunk)));
    child.stderr.on('data', (chunk) => (errors += String(chunk)));
    const code = await new Promise((resolve) => child.on('close', resolve));
    check(errors.split('\n').filter((line) => line !== '' && !line.startsWith('{')).join('\n')).toBe('');
    check(code).toBe(0);
    if (!isAsPrinted(printed, output)) check(printed.trim()).toBe(output.trim());
  },
);

test('there are programs in the documents', () => expect(programs.length).toBeGreaterThan(20));
