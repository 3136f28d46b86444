/*
 * Builds dist: the declarations with tsc, and the code with Rolldown, which Vitest brings along. The entry points share
 * their files, so that there is one class of each name. A few files load faster than one for each module.
 */

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

/** The entry points that have a name of their own, as in `postern/metrics`. */
const NAMED = ['metrics', 'gateway', 'openapi'];

process.chdir(fileURLToPath(new URL('.', import.meta.url)));
rmSync('dist', { recursive: true, force: true });
// Of the declarations, only those that an entry point reaches: the others would be a tenth of the package.
const types = mkdtempSync(join(tmpdir(), 'postern-types-'));
const tsc = ['node_modules/typescript/bin/tsc', '--emitDeclarationOnly', '--outDir', types];
execFileSync(process.execPath, tsc, { stdio: 'inherit' });
const take = (file) => {
  if (existsSync(join('dist', file))) return;
  cpSync(join(types, file), join('dist', file));
  const text = readFileSync(join(types, file), 'utf8');
  for (const [, path] of text.matchAll(/(?:from |import\()'(\.[^']+)\.js'/g)) take(join(dirname(file), `${path}.d.ts`));
};
for (const name of ['index', ...NAMED]) take(`${name}.d.ts`);
rmSync(types, { recursive: true });
const bundle = (input) => build({
  input,
  platform: 'node',
  // Otherwise what the command shares with an entry point may be put into cli.js, and loading it would run the command.
  preserveEntrySignatures: 'strict',
  experimental: { attachDebugInfo: 'none' },
  output: {
    dir: 'dist',
    minify: false,
    minifyInternalExports: false,
    // V8 treats a constant as one only if it stays a `const`.
    topLevelVar: false,
    // The types have the comments.
    comments: { jsdoc: false, annotation: false },
    // A chunk has the name of one of its modules; that of the exporters would have the name of one gateway.
    chunkFileNames: ({ moduleIds }) =>
      moduleIds.some((id) => id.includes('/src/gateway/')) ? 'shared/exporters.js' : 'shared/[name].js',
  },
});
await bundle(Object.fromEntries(['index', 'cli', ...NAMED].map((name) => [name, `src/${name}.ts`])));
// By itself: the live page has it as one script, which can import nothing.
await bundle({ 'live-script': 'src/live/live-script.ts' });
// For tools that do not read `exports`, such as Parcel and TypeScript with `moduleResolution: node10`.
for (const name of NAMED) {
  mkdirSync(name, { recursive: true });
  const paths = { main: `../dist/${name}.js`, types: `../dist/${name}.d.ts` };
  writeFileSync(`${name}/package.json`, `${JSON.stringify({ private: true, type: 'module', ...paths }, null, 2)}\n`);
}
// What `postern new` writes, without what `npm install` and a build may have left there.
const isOurs = (path) => !/[\\/](?:node_modules|dist|package-lock\.json)$/.test(path);
cpSync('test/starter', 'dist/starter', { recursive: true, filter: isOurs });
