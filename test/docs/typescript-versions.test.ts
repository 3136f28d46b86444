/**
 * The programs in the documents and the files of `test/types` compile with every minor version of TypeScript that is
 * supported. The declarations of the package compile without `skipLibCheck`, however their modules are resolved.
 *
 * @module-tag package
 * @module-tag slow
 */

import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { compile, PROGRAMS, TYPESCRIPT, tscOf, writePrograms } from '../support/documented-programs.js';
import type { TypeScriptVersion } from '../support/documented-programs.js';
import { ROOT } from '../support/markdown.js';

let folder = '';
beforeAll(() => {
  folder = writePrograms();
  cpSync(join(ROOT, 'test/types'), join(folder, 'types'), { recursive: true });
  // Each version compiles it in `declarations.test.ts`.
  rmSync(join(folder, 'types/inferred.ts'));
  const entries = Object.keys(packageJson.exports).filter((path) => path !== './package.json');
  const imports = entries.map((path, i) => `export * as entry${i} from 'postern${path.slice(1)}';\n`);
  writeFileSync(join(folder, 'entries.ts'), imports.join(''));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.concurrent.for(Object.keys(TYPESCRIPT) as TypeScriptVersion[])(
  'the documents and the types of the tests compile with TypeScript %s',
  { timeout: 900_000 },
  async (version) => {
    const options = { noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true };
    await compile(folder, tscOf(version), [...PROGRAMS, 'types/*.ts'], options);
  },
);

type Declarations = readonly [version: TypeScriptVersion, module: string, resolution: string, exactOptionals: boolean];
const DECLARATIONS: readonly Declarations[] = [
  ['5.6', 'Node16', 'Node16', true],
  ['5.6', 'CommonJS', 'Node10', false],
  ['5.9', 'ESNext', 'Bundler', false],
  ['6.0', 'NodeNext', 'NodeNext', true],
  ['7.0', 'NodeNext', 'NodeNext', false],
  ['7.0', 'ESNext', 'Bundler', true],
];

test.concurrent.for(DECLARATIONS)(
  'the declarations compile without skipLibCheck with TypeScript %s, %s, %s, exactOptionalPropertyTypes %s',
  { timeout: 900_000 },
  async ([version, module, moduleResolution, exactOptionalPropertyTypes]) => {
    const options = { noEmit: true, module, moduleResolution, exactOptionalPropertyTypes };
    await compile(folder, tscOf(version), ['entries.ts'], options);
  },
);
