/*
 * Builds dist: the declarations with tsc, the code as a few files with the Vite that Vitest brings along. A few files
 * load faster than a hundred.
 */

import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ENTRIES = ['index', 'entry/metrics', 'entry/gateway', 'entry/openapi', 'cli'];

/** The script of the live page: its server reads it as text. */
const SCRIPT = 'live/live-script';

/** An import of a namespace, which means that the file is loaded when it is first used (see src/base/builtin.ts). */
const NAMESPACE_IMPORT = /^import \* as (\w+) from '(\.[^']+)\.js';$/gm;

/**
 * Files of dist. A module goes into the first file whose entries all reach it by static imports. Rolldown places every
 * other module itself: in its entry, or in a file that is loaded when it is used.
 */
const FILES = {
  registry: ['index', 'entry/metrics'],
  app: ['index'],
  exporters: ['entry/gateway'],
  document: ['entry/openapi'],
};

const inRoot = (path) => fileURLToPath(new URL(path, import.meta.url));
const sourceOf = (entry) => inRoot(`src/${entry}.ts`);
const require = createRequire(import.meta.url);
const tsc = (...args) =>
  execFileSync(process.execPath, [join(dirname(require.resolve('typescript/package.json')), 'bin/tsc'), ...args], {
    cwd: inRoot('.'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });

rmSync(inRoot('dist'), { recursive: true, force: true });
try {
  tsc('--emitDeclarationOnly');
} catch ({ stdout }) {
  process.stderr.write(stdout);
  process.exit(1);
}
pruneDeclarations();
await bundle();
copyStarter();

/** Removes declarations that no entry reaches: nobody can import their modules. */
function pruneDeclarations() {
  const entries = ENTRIES.filter((entry) => entry !== 'cli').map((entry) => inRoot(`dist/${entry}.d.ts`));
  const options = ['--ignoreConfig', '--listFilesOnly', '--module', 'nodenext', '--types', 'node'];
  const reached = new Set(tsc(...options, ...entries).split(/\r?\n/).map(normalize));
  for (const entry of readdirSync(inRoot('dist'), { recursive: true, withFileTypes: true }).reverse()) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !reached.has(path)) rmSync(path);
  }
  for (const folder of readdirSync(inRoot('dist'))) {
    const path = inRoot(`dist/${folder}`);
    if (!folder.endsWith('.d.ts') && readdirSync(path).length === 0) rmdirSync(path);
  }
}

async function bundle() {
  const vite = createRequire(require.resolve('vitest/package.json')).resolve('vite');
  const { build } = await import(pathToFileURL(vite).href);
  await build({
    configFile: false,
    root: inRoot('.'),
    logLevel: 'warn',
    plugins: [{ name: 'load-later', enforce: 'pre', transform: loadLater, renderChunk: keepRequire }],
    build: {
      target: 'node20',
      ssr: true,
      emptyOutDir: false,
      // Users read the package in stack traces and in node_modules.
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries([...[...ENTRIES, SCRIPT].map(sourceOf), ...filesLoadedLater()].map(named)),
        external: /^node:/,
        // Otherwise shared modules may be put into cli.js, and a ping with a depth would run the command in a service.
        preserveEntrySignatures: 'strict',
        // A stack trace does not need the names of source files.
        experimental: { attachDebugInfo: 'none' },
        output: {
          // V8 treats a constant as one only if it stays a `const`.
          topLevelVar: false,
          // The types have the comments; in the code they cost time at start-up.
          comments: { jsdoc: false, annotation: false },
          entryFileNames: '[name].js',
          chunkFileNames: '[name].js',
          minifyInternalExports: false,
          codeSplitting: { groups: Object.entries(FILES).map(toGroup) },
        },
      },
    },
  });
}

/** The files that src imports as namespaces. */
function filesLoadedLater() {
  const files = readdirSync(inRoot('src'), { recursive: true }).filter((file) => file.endsWith('.ts'));
  return files.flatMap((file) => {
    const path = inRoot(`src/${file}`);
    const imports = readFileSync(path, 'utf8').matchAll(NAMESPACE_IMPORT);
    return [...imports].map(([, , target]) => join(dirname(path), `${target}.ts`));
  });
}

/** // src/http/body.ts → body, src/http/body.ts */
function named(file) {
  return [basename(file, '.ts'), file];
}

/** Makes `import * as x from './y.js'` a call of `later`, and each `x.` in the file an `(x()).`. */
function loadLater(source, id) {
  const names = [];
  const code = source.replace(NAMESPACE_IMPORT, (_, name, target) => {
    names.push(name);
    const path = `./${basename(target)}.js`;
    return `const ${name} = later('${path}', () => __require__('${path}'));`;
  });
  if (names.length === 0) return null;
  const other = names.find((name) => new RegExp(`(?<!const )\\b${name}\\b(?!\\.)`).test(code));
  if (other !== undefined) throw new Error(`${id} uses "${other}" for something else than the namespace; rename one`);
  const used = code.replace(new RegExp(`(?<!#|\\w|(?<!\\.\\.)\\.)(${names.join('|')})\\.(?=\\w)`, 'g'), '($1()).');
  return `import { later } from '${inRoot('src/base/builtin.js')}';\n${used}`;
}

/** Rolldown would put what a `require` leads to into the same file, so this is its name until the files are made. */
function keepRequire(code) {
  return code.replaceAll('__require__(', 'require(');
}

/** A file of dist as Rolldown wants it: its name for the modules that go there, null for others. */
function toGroup([file, entries], index, { length }) {
  const name = (id, graph) => {
    const reaches = (entry) => reachedFrom(sourceOf(entry), graph).has(id);
    return !graph.getModuleInfo(id).isEntry && entries.every(reaches) ? file : null;
  };
  return { name, debugName: file, priority: length - index };
}

/** The modules that one module imports statically, itself included. */
function reachedFrom(id, graph, reached = new Set()) {
  if (reached.has(id)) return reached;
  reached.add(id);
  for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) reachedFrom(imported, graph, reached);
  return reached;
}

/** Copies what `postern new` writes, without what `npm install` and a build may have left there. */
function copyStarter() {
  const from = inRoot('test/starter');
  const isOurs = (path) => !/[\\/](?:node_modules|dist|package-lock\.json)$/.test(path.slice(from.length));
  cpSync(from, inRoot('dist/starter'), { recursive: true, filter: isOurs });
}
