import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const DOORS = ['index', 'metrics', 'gateway', 'openapi', 'cli'];

/**
 * Takes away the declarations that, as the compiler tells, no door leads to: nobody can import their modules. The others
 * are indented by tabs, as the JavaScript is: the compiler's four spaces for each level make the types 3 % larger.
 */
const pruneDeclarations: Plugin = {
  name: 'prune-declarations',
  closeBundle() {
    const dist = fileURLToPath(new URL('./dist', import.meta.url));
    const tsc = fileURLToPath(new URL('./node_modules/typescript/bin/tsc', import.meta.url));
    const doors = DOORS.filter((door) => door !== 'cli').map((door) => join(dist, `${door}.d.ts`));
    const options = ['--ignoreConfig', '--listFilesOnly', '--module', 'nodenext', '--types', 'node'];
    const reached = new Set(execFileSync(process.execPath, [tsc, ...options, ...doors], { encoding: 'utf8' }).split(/\r?\n/));
    for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
      const path = join(dist, file);
      if (!file.endsWith('.d.ts')) continue;
      if (reached.has(path)) writeFileSync(path, indentByTabs(readFileSync(path, 'utf8')));
      else rmSync(path);
    }
  },
};

function indentByTabs(source: string): string {
  return source.replace(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4));
}

/** What `postern demo --source` writes, without what `npm install` and a build may have left there. */
const copyExample: Plugin = {
  name: 'copy-example',
  closeBundle() {
    const from = fileURLToPath(new URL('./test/example', import.meta.url));
    const own = (path: string): boolean => !/[\\/](?:node_modules|dist|package-lock\.json|orders\.yaml)$/.test(path.slice(from.length));
    cpSync(from, fileURLToPath(new URL('./dist/example', import.meta.url)), { recursive: true, filter: own });
  },
};

/** Bundles the package with the `vite` that comes with `vitest`: a few files start faster than eighty. `tsc` writes the types. */
export default defineConfig({
  plugins: [pruneDeclarations, copyExample],
  build: {
    target: 'node20',
    ssr: true,
    emptyOutDir: false,
    // What ships is there to be read, in stack traces and in `node_modules`.
    minify: false,
    rolldownOptions: {
      input: Object.fromEntries(DOORS.map((name) => [name, fileURLToPath(new URL(`./src/${name}.ts`, import.meta.url))])),
      external: /^node:/,
      // Which file a function comes from is no news to a stack trace.
      experimental: { attachDebugInfo: 'none' },
      output: {
        // V8 takes a constant for one only if it stays a `const`.
        topLevelVar: false,
        // They are in the types, and cost a start-up otherwise.
        comments: { jsdoc: false, annotation: false },
        entryFileNames: '[name].js',
        chunkFileNames: '[name].js',
        minifyInternalExports: false,
        // Each file is read and linked on its own: a service loads three, and `postern/metrics` not all of them.
        codeSplitting: {
          groups: [
            { name: 'registry', test: /\/src\/(?:metrics|process)\//, priority: 1 },
            { name: 'app', test: /\/src\/(?:app|http|mesh|monitor|payload|pipeline|routing)\// },
          ],
        },
      },
    },
  },
});
