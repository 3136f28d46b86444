import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const DOORS = ['index', 'metrics', 'gateway', 'openapi', 'cli'];

/** Takes away the declarations that no door leads to: nobody can import their modules. */
const pruneDeclarations: Plugin = {
  name: 'prune-declarations',
  closeBundle() {
    const dist = fileURLToPath(new URL('./dist', import.meta.url));
    const reached = new Set<string>();
    const reach = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      const imports = readFileSync(`${file}.d.ts`, 'utf8').matchAll(/(?:from '|import\(["'])(\.[^'"]+)\.js["']/g);
      for (const [, target = ''] of imports) reach(join(file, '..', target));
    };
    for (const door of DOORS) if (door !== 'cli') reach(join(dist, door));
    for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
      const path = join(dist, file);
      if (path.endsWith('.d.ts') && !reached.has(path.slice(0, -'.d.ts'.length))) rmSync(path);
    }
  },
};

/** Bundles the package with the `vite` that comes with `vitest`: a few files start faster than eighty. `tsc` writes the types. */
export default defineConfig({
  plugins: [pruneDeclarations],
  build: {
    target: 'node20',
    ssr: true,
    emptyOutDir: false,
    // What ships is there to be read, in stack traces and in `node_modules`.
    minify: false,
    rolldownOptions: {
      input: Object.fromEntries(DOORS.map((name) => [name, fileURLToPath(new URL(`./src/${name}.ts`, import.meta.url))])),
      external: /^node:/,
      output: {
        // V8 takes a constant for one only if it stays a `const`.
        topLevelVar: false,
        // They are in the types, and cost a start-up otherwise.
        comments: { jsdoc: false, annotation: false },
        entryFileNames: '[name].js',
        chunkFileNames: '[name].js',
        minifyInternalExports: false,
      },
    },
  },
});
