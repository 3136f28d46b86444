/**
 * Every program in the documents compiles and prints what is printed below it.
 *
 * A block `ts` or `js` without `file=` is a program. What it does not import comes from `postern`; without an `app` of
 * its own it is about `const app = new Postern('shop')`, which is closed at its end. Recipes only have to compile here:
 * `recipes.test.ts` runs them and talks to them. So do the files of a session, which `walks.test.ts` runs.
 *
 * @module-tag package
 */

import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findBlocks, findPages, isAsPrinted, ROOT, type Block } from '../support/markdown.js';

const names = [...readFileSync(join(ROOT, 'src/index.ts'), 'utf8').matchAll(/^export (type )?\{([^}]*)\}/gms)].flatMap(
  ([, types = '', list = '']) =>
    [...list.matchAll(/(type )?\b(\w+)/g)].map(([, type = types, name = '']) => ({ type, name })),
);
const blocks = findPages().flatMap(findBlocks)
  .filter(({ language, meta }) => /^[jt]s$/.test(language) && meta['file'] === undefined && meta['run'] !== 'no');
const files = findPages().flatMap(findBlocks).filter(({ meta }) => meta['file'] !== undefined);
const programs = blocks.map((block, index) => ({ ...block, file: `program${index + 1}` }));

/** The whole program of a block: what a reader has already, and the block. */
function complete({ code, given, language }: Block): string {
  const all = `${given}\n${code}`;
  if (/from 'postern'/.test(all)) return all;
  const isUsed = (name: string): boolean => new RegExp(`(?<![.\\w'$])${name}(?![\\w']|:[^:])`).test(all);
  const isTaken = (name: string): boolean =>
    new RegExp(`(?:class|function|const|let) ${name}\\b|(?:import (?:type )?|const )\\{[^}]*\\b${name}\\b`).test(all);
  const needsApp = isUsed('app') && !/(?:const|let) app\b/.test(all);
  const used = names.filter(({ name, type }) => (type === '' || language === 'ts') && isUsed(name) && !isTaken(name));
  if (needsApp && !used.some(({ name }) => name === 'Postern')) used.push({ name: 'Postern', type: '' });
  const imported = used.map(({ name, type }) => type + name).join(', ');
  const begin = needsApp ? `const app = new Postern('shop', { logger: false });\n` : '';
  return `import { ${imported} } from 'postern';\n${begin}${all}\n${needsApp ? 'await app.close();\n' : ''}`;
}

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-docs-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@types'), { recursive: true });
  symlinkSync(ROOT, join(modules, 'postern'));
  for (const name of ['@types/node', 'undici-types'])
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  const libraries = readdirSync(join(ROOT, 'test/node_modules')).filter((name) => !/^\.|^@types$/.test(name));
  const types = readdirSync(join(ROOT, 'test/node_modules/@types')).map((name) => `@types/${name}`);
  for (const name of [...libraries, ...types]) {
    if (!existsSync(join(modules, name))) symlinkSync(join(ROOT, 'test/node_modules', name), join(modules, name));
  }
  for (const program of programs)
    writeFileSync(join(folder, `${program.file}.m${program.language}`), complete(program));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const { place, meta, code } of files) {
    const file = join(folder, 'sessions', place.replace(/[/.]|:.*/g, ''), meta['file'] ?? '');
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, code);
  }
  const compilerOptions = {
    strict: true,
    target: 'ES2022',
    module: 'NodeNext',
    types: ['node'],
    lib: ['ES2024', 'ESNext.Decorators', 'ESNext.Disposable'],
    rewriteRelativeImportExtensions: true,
  };
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['*.mts', 'sessions/**/*.ts'] }),
  );
  try {
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      cwd: folder,
      encoding: 'utf8',
      stdio: 'pipe',
    });
  } catch (error) {
    const found = (error as { stdout: string }).stdout.replace(
      /program(\d+)\.mts/g,
      (_, number: string) => programs[Number(number) - 1]?.place ?? '',
    );
    throw new Error(`programs in the documents do not compile:\n${found}`);
  }
}, 120_000);
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
