/**
 * A consumer with `declaration: true` can name every type in the published declarations, and each type of `@types/node`
 * in them exists in every version from 20.9 on.
 *
 * The compiler takes a name from any entry point in its program, so `postern` has a program of its own. TypeScript 7.0
 * compiles with every version of `@types/node`, and checks the declarations themselves. Earlier compilers are slow, so
 * each compiles with one version. As with pnpm, a consumer cannot import `undici-types`.
 *
 * @module-tag package
 * @module-tag slow
 */

import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findErrors, tscOf, type TypeScriptVersion } from './support/documented-programs.js';
import { ROOT } from './support/markdown.js';
import { doors, findNamelessTypes, findUncalled, writeConsumer } from './support/public-types.js';

/** The oldest and the newest version of each major. */
const NODE_TYPES = {
  '20.9': 'node-types-20.9',
  '20.19': '@types/node',
  '22.0': 'node-types-22.0',
  '22.20': 'node-types-22.20',
  '24.0': 'node-types-24.0',
  '24.19': 'node-types',
  '26.0': 'node-types-26.0',
  '26.6': 'node-types-26.6',
};

const PROGRAMS = {
  postern: ['postern.ts', 'inferred.ts'],
  'the other entry points': ['postern-metrics.ts', 'postern-gateway.ts', 'postern-openapi.ts'],
};
const fileOf = (door: string): string => `${door.replace('/', '-')}.ts`;

interface Run {
  readonly compiler: TypeScriptVersion;
  readonly nodeTypes: keyof typeof NODE_TYPES;
  readonly program: keyof typeof PROGRAMS;
  readonly lib?: readonly string[];
}
const RUNS: readonly Run[] = [
  { compiler: '5.6', nodeTypes: '20.9', program: 'postern' },
  { compiler: '5.7', nodeTypes: '22.0', program: 'postern' },
  { compiler: '5.8', nodeTypes: '24.0', program: 'postern', lib: ['ES2022', 'DOM'] },
  { compiler: '5.9', nodeTypes: '26.6', program: 'postern' },
  { compiler: '6.0', nodeTypes: '26.0', program: 'postern' },
  ...(Object.keys(NODE_TYPES) as (keyof typeof NODE_TYPES)[]).flatMap((nodeTypes) =>
    (Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[]).map((program): Run => {
      return { compiler: '7.0', nodeTypes, program };
    }),
  ),
];

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-declarations-'));
  const installed = join(folder, 'node_modules/postern');
  cpSync(join(ROOT, 'dist'), join(installed, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(installed, 'package.json'));
  for (const [version, name] of Object.entries(NODE_TYPES)) {
    mkdirSync(join(folder, 'types', version), { recursive: true });
    symlinkSync(join(ROOT, 'test/node_modules', name), join(folder, 'types', version, 'node'));
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  cpSync(join(ROOT, 'test/types/inferred.ts'), join(folder, 'inferred.ts'));
  for (const door of doors) writeFileSync(join(folder, fileOf(door.name)), writeConsumer(door));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.for(doors)('$name exports every type that its declarations mention', (door) => {
  expect(findNamelessTypes(door)).toEqual([]);
});

test.for(doors)('test/types/inferred.ts calls every generic or overloaded function of $name', (door) => {
  expect(findUncalled(door)).toEqual([]);
});

test('every entry point is in a program', () => {
  expect(Object.values(PROGRAMS).flat()).toEqual(expect.arrayContaining(doors.map(({ name }) => fileOf(name))));
});

// From TypeScript 6 on, the default is no types at all.
test.concurrent.for(doors)('$name compiles without the setting types', { timeout: 900_000 }, async ({ name }) => {
  const file = `bare-${fileOf(name)}`;
  writeFileSync(join(folder, file), `export * from '${name}';`);
  const options = { types: [], typeRoots: [join(folder, 'types/20.19')], lib: ['ES2022'], noEmit: true };
  expect(await findErrors(folder, tscOf('7.0'), [file], options)).toBe('');
});

test.concurrent.for(RUNS)(
  'with TypeScript $compiler and @types/node $nodeTypes, all inferred types of $program have names',
  { timeout: 900_000 },
  async ({ compiler, nodeTypes, program, lib = ['ES2022'] }) => {
    const outDir = join(folder, 'out', compiler, nodeTypes, program);
    const found = await findErrors(folder, tscOf(compiler), PROGRAMS[program], {
      declaration: true,
      emitDeclarationOnly: true,
      removeComments: true,
      outDir,
      lib,
      typeRoots: [join(folder, 'types', nodeTypes)],
      skipLibCheck: compiler !== '7.0',
    });
    // A new compiler finds errors in old versions of `@types/node`, too.
    const ours = found.split(/^(?=\S)/m).filter((error) => !/^\S*\/node_modules\/(?:@types\/node|node-types)\b/.test(error));
    expect(ours.join('')).toBe('');
    const emitted = readdirSync(outDir);
    expect(emitted.length).toBe(PROGRAMS[program].length);
    // A type that is too deep, or refers to itself without a name, becomes `any` without an error.
    const lines = emitted.flatMap((file) => readFileSync(join(outDir, file), 'utf8').split('\n'));
    expect(lines.filter((line) => /\bany\b/.test(line))).toEqual([]);
  },
);
