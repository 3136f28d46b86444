/**
 * Bundles a service with its libraries: `node bundle.mjs TOOL FOLDER OUT (esm | cjs) [minify] [single] [external]`.
 * FOLDER has `main.js`, OUT becomes a folder with `main.js` and what it needs. `single` asks for one file, `external`
 * for the service without its libraries.
 */

import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const [tool = '', folder = '', out = '', ...flags] = process.argv.slice(2);
const isEsm = flags.includes('esm');
const isMinified = flags.includes('minify');
const isSingle = flags.includes('single');
const isExternal = flags.includes('external');
const entry = join(folder, 'main.js');
const format = isEsm ? 'esm' : 'cjs';
const isPart = (name) => ['service.js', 'checks.js', 'in-process.js'].includes(name);
/** The service, and files of the application whose names a bundler could mistake for modules of a library. */
const entries = Object.fromEntries(
  readdirSync(folder)
    .filter((name) => name.endsWith('.js') && !isPart(name))
    .map((name) => [name.slice(0, -3), join(folder, name)]),
);

/** @type {Record<string, () => Promise<void>>} */
const BUNDLERS = {
  async esbuild() {
    const { build } = await import('esbuild');
    const packages = isExternal ? 'external' : 'bundle';
    const common = { bundle: true, packages, platform: 'node', format, minify: isMinified, logLevel: 'error' };
    const entryPoints = isSingle ? { main: entry } : entries;
    // esbuild splits only ES modules.
    await build({ ...common, entryPoints, outdir: out, splitting: isEsm && !isSingle });
  },
  async rollup() {
    const { rollup } = await import('rollup');
    const { default: commonjs } = await import('@rollup/plugin-commonjs');
    const { nodeResolve } = await import('@rollup/plugin-node-resolve');
    const onLog = (level, log) => level === 'warn' && console.log(`${log.code}: ${log.message}`);
    const bundle = await rollup({ input: isSingle ? entry : entries, plugins: [nodeResolve(), commonjs()], onLog });
    await bundle.write({ dir: out, format, inlineDynamicImports: isSingle });
  },
  async rolldown() {
    const { build } = await import('rolldown');
    const output = { dir: out, format, minify: isMinified, ...(isSingle ? { codeSplitting: false } : {}) };
    await build({ input: isSingle ? entry : entries, platform: 'node', output });
  },
  async vite() {
    const { build } = await import('vite');
    const output = { format, entryFileNames: '[name].js' };
    await build({
      root: folder,
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true },
      build: { ssr: 'main.js', outDir: out, emptyOutDir: false, minify: isMinified, rolldownOptions: { output } },
    });
  },
  async webpack() {
    const { default: webpack } = await import('webpack');
    const output = { path: out, filename: 'main.js', ...(isEsm ? { module: true, chunkFormat: 'module' } : {}) };
    const mode = isMinified ? 'production' : 'development';
    const externals = isExternal ? [/^(?:postern|zod|cors)\b/] : [];
    const externalsType = isEsm ? 'module' : 'commonjs';
    const stats = await new Promise((done, fail) => {
      webpack(
        {
          context: folder,
          entry,
          target: 'node',
          mode,
          output,
          externals,
          externalsType,
          experiments: { outputModule: isEsm },
        },
        (error, result) => (error ? fail(error) : done(result)),
      );
    });
    if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString('errors-warnings'));
  },
  async parcel() {
    const { Parcel } = await import('@parcel/core');
    const context = 'node';
    const outputFormat = isEsm ? 'esmodule' : 'commonjs';
    const target = { distDir: out, context, outputFormat, engines: { node: '>=20' }, includeNodeModules: true };
    const bundler = new Parcel({
      entries: entry,
      defaultConfig: createRequire(import.meta.url).resolve('@parcel/config-default'),
      cacheDir: join(out, '../parcel-cache'),
      mode: 'production',
      // As `parcel build` does.
      defaultTargetOptions: { shouldScopeHoist: true, shouldOptimize: isMinified },
      targets: { main: target },
    });
    await bundler.run();
  },
  async ncc() {
    const { default: ncc } = await import('@vercel/ncc');
    const { code, assets } = await ncc(entry, { minify: isMinified, cache: false, quiet: true });
    writeFileSync(join(out, 'main.js'), code);
    for (const [name, { source }] of Object.entries(assets)) {
      mkdirSync(dirname(join(out, name)), { recursive: true });
      writeFileSync(join(out, name), source);
    }
  },
  async nft() {
    const { nodeFileTrace } = await import('@vercel/nft');
    const { fileList, warnings } = await nodeFileTrace([entry], { base: folder });
    for (const warning of warnings) console.log(warning.message);
    for (const file of fileList) cpSync(join(folder, file), join(out, file));
  },
};

const bundle = BUNDLERS[tool];
if (bundle === undefined) throw new Error(`${tool} is not a bundler; give ${Object.keys(BUNDLERS).join(', ')}`);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
writeFileSync(join(out, 'package.json'), JSON.stringify({ type: isEsm ? 'module' : 'commonjs' }));
process.chdir(folder);
await bundle();
