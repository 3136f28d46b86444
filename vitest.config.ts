import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));
const entries = ['index', 'metrics', 'gateway', 'cli'];

/** A declaration file without the header of its module, which says nothing of an export, and indented by tabs. */
function slim(text: string): string {
  return text.replace(/^\/\*\*(?:(?!\*\/)[^])*\*\/\n(?=import |export (?:type )?\{)/, '').replace(/^(?: {4})+/gm, (indent) => '\t'.repeat(indent.length / 4));
}

/** Keeps the declarations that those of an entry lead to. */
function pruneTypes(folder: string): void {
  const reached = new Set<string>();
  const visit = (file: string): void => {
    if (reached.has(file)) return;
    reached.add(file);
    const text = readFileSync(join(folder, file), 'utf8');
    for (const [, target = ''] of text.matchAll(/\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g)) visit(join(dirname(file), `${target}.d.ts`));
  };
  for (const name of entries) if (name !== 'cli') visit(`${name}.d.ts`);
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts')) continue;
    const path = join(folder, file);
    if (!reached.has(file)) rmSync(path);
    else writeFileSync(path, slim(readFileSync(path, 'utf8')));
  }
}

/** `vitest` runs the tests with this, and its `vite` bundles the package: one file is read faster than sixty. */
export default defineConfig({
  resolve: {
    alias: [
      { find: /^postern$/, replacement: source('index.ts') },
      { find: /^postern\/metrics$/, replacement: source('metrics.ts') },
      { find: /^postern\/gateway$/, replacement: source('gateway.ts') },
    ],
  },
  plugins: [{ name: 'prune-types', apply: 'build', closeBundle: () => pruneTypes(fileURLToPath(new URL('./dist', import.meta.url))) }],
  build: {
    target: 'node20',
    ssr: true,
    emptyOutDir: false,
    rolldownOptions: {
      input: Object.fromEntries(entries.map((name) => [name, source(`${name}.ts`)])),
      external: /^node:/,
      output: {
        entryFileNames: '[name].js',
        chunkFileNames: '[name].js',
        // Names of classes stay: they are those of error types.
        minify: { compress: true, mangle: { toplevel: true, keepNames: { function: false, class: true } }, codegen: { removeWhitespace: true } },
      },
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
  },
});
