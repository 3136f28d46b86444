/** The programs in the documents, and a folder with all of them in which they find the package and their libraries. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findBlocks, findPages, ROOT, type Block } from './markdown.js';
import { findNode24 } from './node24.js';

const names = [...readFileSync(join(ROOT, 'src/index.ts'), 'utf8').matchAll(/^export (type )?\{([^}]*)\}/gms)].flatMap(
  ([, types = '', list = '']) =>
    [...list.matchAll(/(type )?\b(\w+)/g)].map(([, type = types, name = '']) => ({ type, name })),
);
const blocks = findPages().flatMap(findBlocks)
  .filter(({ language, meta }) => /^[jt]s$/.test(language) && meta['file'] === undefined && meta['run'] !== 'no');
const files = findPages().flatMap(findBlocks).filter(({ meta }) => meta['file'] !== undefined);
/** Blocks `ts` or `js` without `file=`, each with the name of its file. */
export const programs: readonly (Block & { readonly file: string })[] = blocks.map((block, index) => {
  return { ...block, file: `program${index + 1}` };
});

/** The whole program of an example in a docstring: what its reader has already, and the example. */
export function complete(given: string, code: string): string {
  const all = `${given}\n${code}`;
  if (/from 'postern'/.test(all)) return all;
  const isUsed = (name: string): boolean => new RegExp(`(?<![.\\w'$])${name}(?![\\w']|:[^:])`).test(all);
  const isTaken = (name: string): boolean =>
    new RegExp(`(?:class|function|const|let) ${name}\\b|(?:import (?:type )?|const )\\{[^}]*\\b${name}\\b`).test(all);
  const needsApp = isUsed('app') && !/(?:const|let) app\b/.test(all);
  const used = names.filter(({ name }) => isUsed(name) && !isTaken(name));
  if (needsApp && !used.some(({ name }) => name === 'Postern')) used.push({ name: 'Postern', type: '' });
  const imported = used.map(({ name, type }) => type + name).join(', ');
  const begin = needsApp ? `const app = new Postern('shop', { logger: false });\n` : '';
  return `import { ${imported} } from 'postern';\n${begin}${all}\n${needsApp ? 'await app.close();\n' : ''}`;
}

/** The folder of each minor version of TypeScript that is supported. */
export const TYPESCRIPT = {
  '5.6': 'test/node_modules/typescript-5.6',
  '5.7': 'test/node_modules/typescript-5.7',
  '5.8': 'test/node_modules/typescript-5.8',
  '5.9': 'test/node_modules/typescript',
  '6.0': 'test/node_modules/typescript-6.0',
  '7.0': 'node_modules/typescript',
};
export type TypeScriptVersion = keyof typeof TYPESCRIPT;

/** The compiler of a version. */
export function tscOf(version: TypeScriptVersion): string {
  return join(ROOT, TYPESCRIPT[version], 'bin/tsc');
}

/** Files of a folder of {@link writePrograms} that TypeScript compiles. */
export const PROGRAMS = ['*.mts', 'sessions/**/*.ts'];

/** Writes all programs and the files of sessions into a new folder, which the caller removes. */
export function writePrograms(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-docs-'));
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
    writeFileSync(join(folder, `${program.file}.m${program.language}`), program.code);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const { place, meta, code } of files) {
    const file = join(folder, 'sessions', place.replace(/[/.]|:.*/g, ''), meta['file'] ?? '');
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, code);
  }
  return folder;
}

/** Compiles files of a folder of {@link writePrograms}. @throws {Error} with what is wrong and where */
export async function compile(folder: string, tsc: string, include: string[], options: object): Promise<void> {
  const found = await findErrors(folder, tsc, include, options);
  const place = (_: string, number: string): string => programs[Number(number) - 1]?.place ?? '';
  if (found !== '') throw new Error(`it does not compile:\n${found.replace(/program(\d+)\.mts/g, place)}`);
}

/** Compiles files of a folder; returns the output of the compiler, empty if all is well. */
export async function findErrors(folder: string, tsc: string, include: string[], options: object): Promise<string> {
  const shared = { strict: true, target: 'ES2022', module: 'NodeNext', types: ['node'], lib: ['ESNext'] };
  const project = join(folder, `tsconfig.${compilations++}.json`);
  writeFileSync(project, JSON.stringify({ compilerOptions: { ...shared, ...options }, include }));
  // TypeScript 7.0 is a program in Go, a third of whose work is to collect garbage. Its threads check some types twice.
  const env = { ...process.env, GOGC: 'off' };
  const args = [tsc, '-p', project, ...(tsc === tscOf('7.0') ? ['--singleThreaded'] : [])];
  const compiler = spawn(NODE, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [found, [status]] = await Promise.all([text(compiler.stdout), once(compiler, 'close')]);
  return status === 0 ? '' : found || `${tsc} exited with ${status}`;
}

let compilations = 0;
/** Node.js 24, if there is one: it compiles with two thirds of the CPU of Node.js 20. */
const NODE = join(findNode24() ?? dirname(process.execPath), 'node');
