import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));
const entries = ['index', 'metrics', 'gateway', 'cli'];

interface Declarations {
  /** Each declaration of the file, with its comment, by name. */
  readonly own: Map<string, string>;
  /** Where the other names come from, and a statement for each import or passing on of one. */
  readonly imported: Map<string, { readonly from: string; readonly statements: string[] }>;
}

/** Takes a file as `tsc` writes it apart into its declarations; the comment at its head, which says nothing of them, is lost. */
function readDeclarations(path: string): Declarations {
  const own = new Map<string, string>();
  const imported: Declarations['imported'] = new Map();
  for (const statement of readFileSync(path, 'utf8').split(/^(?=\/\*\*)|^(?<!\*\/\n)(?=import |export |declare |type |interface )/m)) {
    const code = statement.replace(/^\/\*\*(?:(?!\*\/)[^])*\*\/\n/, '');
    const [, how = '', list = '', from = ''] = /^(import|export(?: type)?)(?: type)? \{([^}]*)\} from '([^']+)'/.exec(code) ?? [];
    const name = /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class|function|const) (\w+)/.exec(code)?.[1];
    if (name !== undefined) own.set(name, (own.get(name) ?? '') + statement);
    for (const [, name = ''] of list.matchAll(/(?:type )?(\w+)/g)) {
      const { statements } = imported.get(name) ?? { statements: [] };
      imported.set(name, { from, statements: [...statements, `${how === 'import' ? 'import type' : how} { ${name} } from '${from}';\n`] });
    }
  }
  return { own, imported };
}

/** Leaves only the declarations that those of an entry lead to, indented by tabs. */
function pruneTypes(folder: string): void {
  const files = new Map<string, Declarations>();
  const reached = new Map<string, Set<string>>();
  const visit = (path: string, name: string): void => {
    const file = files.get(path) ?? readDeclarations(path);
    files.set(path, file);
    const names = reached.get(path) ?? new Set();
    reached.set(path, names);
    if (names.has(name)) return;
    names.add(name);
    const from = file.imported.get(name)?.from;
    if (from?.startsWith('.')) visit(join(dirname(path), from.replace(/\.js$/, '.d.ts')), name);
    for (const word of file.own.get(name)?.replace(/\/\*\*(?:(?!\*\/)[^])*\*\//g, '').match(/\w+/g) ?? []) {
      if (file.own.has(word) || file.imported.has(word)) visit(path, word);
    }
  };
  for (const entry of entries) {
    const path = join(folder, `${entry}.d.ts`);
    if (entry !== 'cli') for (const name of readDeclarations(path).imported.keys()) visit(path, name);
  }
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, file);
    if (!file.endsWith('.d.ts')) continue;
    const names = reached.get(path);
    const { own, imported } = readDeclarations(path);
    if (names === undefined) rmSync(path);
    else if (entries.includes(file.slice(0, -5))) continue;
    else {
      const text = [...imported].filter(([name]) => names.has(name)).flatMap(([, { statements }]) => statements).join('') + [...own].filter(([name]) => names.has(name)).map(([, text]) => text).join('');
      writeFileSync(path, text.replace(/^(?: {4})+/gm, (indent) => '\t'.repeat(indent.length / 4)));
    }
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
        // V8 takes a constant for one only if it stays a `const`.
        topLevelVar: false,
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
