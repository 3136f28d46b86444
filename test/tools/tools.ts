/** The tools that people put around Node.js, each with how it runs the service. */

import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { checkService, run, ToolError, type Form, type Place } from './harness.js';

/** A version of Node.js. */
export interface Runtime {
  readonly binary: string;
  readonly major: number;
}

export interface Tool {
  readonly name: string;
  /** Throws when the service is not right. */
  readonly check: (runtime: Runtime, place: Place) => Promise<void>;
  /** The first version of Node.js that has what it needs, with the reason. */
  readonly since?: readonly [major: number, reason: string];
}

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Names that modules of Postern have or had: a bundler must not take a file of the application for one of them. */
const CLASHING = ['body', 'json', 'view', 'timer', 'summary', 'document', 'watch', 'accept', 'raw', 'app', 'sampler'];

/** The path of a file of an installed tool, whether the tool exports the file or not. */
function fileOf(tool: string, file: string): string {
  const folders = [HERE, join(HERE, '..'), join(HERE, '../..')].map((folder) => join(folder, 'node_modules', tool, file));
  const found = folders.find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${tool} is not installed; run npm ci --prefix test/tools`);
  return found;
}

/** How Node.js, or what is loaded into it, runs the service. */
interface Run {
  /** Arguments of Node.js before the file. */
  readonly args?: () => readonly string[];
  /** Packages of a tool that the folder of the service has installed. */
  readonly installed?: readonly string[];
  readonly compilerOptions?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly since?: Tool['since'];
}

/** Runs the service in a folder with `node_modules`. */
function runs(name: string, form: Form, { args, installed = [], compilerOptions, env = {}, since }: Run = {}): Tool {
  const main = form === 'esm' || form === 'cjs' ? 'main.js' : 'main.ts';
  return {
    name,
    ...(since === undefined ? {} : { since }),
    async check({ binary }, place) {
      const folder = place.installService(form);
      for (const tool of installed) {
        const link = join(folder, 'node_modules', tool);
        mkdirSync(dirname(link), { recursive: true });
        symlinkSync(dirname(fileOf(tool, 'package.json')), link);
      }
      if (compilerOptions !== undefined)
        writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
      await checkService(binary, [...(args?.() ?? []), main], folder, { env });
    },
  };
}

/**
 * Bundles the service, and runs the bundle in a folder without anything else; with the flag `external`, its libraries
 * are not bundled, and are in the `node_modules` above.
 */
function bundles(tool: string, ...flags: readonly string[]): Tool {
  return {
    name: [tool, ...flags].join(' '),
    async check({ binary }, place) {
      const out = await bundle(binary, place, tool, flags);
      await checkService(binary, ['main.js'], out);
    },
  };
}

/** @returns the folder with the bundle */
async function bundle(node: string, place: Place, tool: string, flags: readonly string[]): Promise<string> {
  const folder = place.installService('esm');
  if (['esbuild', 'rollup', 'rolldown'].includes(tool) && !flags.includes('single')) {
    const code = "throw new Error('a file of the application is executed as a module of Postern');";
    for (const name of CLASHING) writeFileSync(join(folder, `${name}.js`), code);
  }
  const out = flags.includes('external') ? join(folder, 'out') : place.createFolder();
  await run(node, [join(HERE, 'bundle.mjs'), tool, folder, out, ...flags], folder);
  return out;
}

const TEST = `
  import { checkInProcess } from './in-process.js';
  test('the service is right', async () => expect(await checkInProcess()).toEqual([]), 60_000);
`;

function vitest(pool: string, ...flags: readonly string[]): Tool {
  return {
    name: ['vitest', pool, ...flags].join(' '),
    async check({ binary }, place) {
      const folder = place.installService('ts');
      writeFileSync(join(folder, 'service.test.ts'), TEST);
      const deps = flags.includes('inline') ? { inline: ['postern'] } : {};
      const config = { test: { globals: true, pool, server: { deps } } };
      writeFileSync(join(folder, 'vitest.config.js'), `export default ${JSON.stringify(config)};`);
      await run(binary, [fileOf('vitest', 'vitest.mjs'), 'run'], folder);
    },
  };
}

/** Asks an installer for the packed package and, from the registry, the libraries. */
function writeManifest(folder: string, tarball: string): void {
  cpSync(tarball, join(folder, 'postern.tgz'));
  const { dependencies } = JSON.parse(readFileSync(join(HERE, '../package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const wanted = { postern: 'file:./postern.tgz', zod: dependencies['zod'], cors: dependencies['cors'] };
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as object;
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, dependencies: wanted }));
}

/** How a package manager installs the service, and how Node.js runs it then. */
interface Installation {
  readonly form?: Form;
  /** Arguments of Node.js, or of `command`, that install. */
  readonly install: () => readonly string[];
  readonly command?: () => string;
  /** Arguments of Node.js before the file. */
  readonly args?: readonly string[];
  readonly since?: Tool['since'];
}

function installs(name: string, { form = 'esm', install, command, args = [], since }: Installation): Tool {
  return {
    name,
    ...(since === undefined ? {} : { since }),
    async check({ binary }, place) {
      const folder = place.writeService(form);
      writeManifest(folder, place.packed.tarball);
      const registry = (await run(binary, ['config', 'get', 'registry'], folder, {}, 'npm')).trim();
      const env = { NPM_CONFIG_REGISTRY: registry, YARN_NPM_REGISTRY_SERVER: registry };
      const yarn = { YARN_ENABLE_TELEMETRY: '0', YARN_ENABLE_IMMUTABLE_INSTALLS: '0' };
      await run(binary, install(), folder, { ...env, ...yarn }, command?.());
      await checkService(binary, [...args, 'main.js'], folder);
    },
  };
}

/** Plain Node.js, and what can happen to its process. */
const NODE: readonly Tool[] = [
  runs('node import', 'esm'),
  runs('node require', 'cjs'),
  runs('node --no-experimental-require-module', 'esm', { args: () => ['--no-experimental-require-module'] }),
  runs('node with types', 'erasable', { since: [22, 'Node.js 20 does not strip types'] }),
  {
    name: 'node:test',
    async check({ binary }, place) {
      const folder = place.installService('esm');
      const imports = "import { test } from 'node:test'; import { deepEqual } from 'node:assert/strict';";
      const code = TEST.replace(/expect\((.*)\)\.toEqual\(\[\]\), 60_000/, 'deepEqual($1, [])');
      writeFileSync(join(folder, 'service.test.js'), imports + code);
      await run(binary, ['--test', 'service.test.js'], folder);
    },
  },
  {
    name: 'node --permission',
    async check({ binary, major }, place) {
      const folder = place.installService('esm');
      const flags = major < 24 ? ['--experimental-permission'] : ['--permission'];
      // From version 25 on, the network needs a permission, too.
      if (major > 24) flags.push('--allow-net');
      await checkService(binary, [...flags, `--allow-fs-read=${folder}/*`, 'main.js'], folder);
    },
  },
  {
    name: 'single executable',
    async check({ binary }, place) {
      const out = await bundle(binary, place, 'esbuild', ['cjs', 'single']);
      const program = join(out, 'shop');
      const blob = join(out, 'shop.blob');
      const config = { main: join(out, 'main.js'), output: blob, disableExperimentalSEAWarning: true };
      writeFileSync(join(out, 'sea.json'), JSON.stringify(config));
      await run(binary, ['--experimental-sea-config', 'sea.json'], out);
      cpSync(binary, program);
      const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
      const inject = [fileOf('postject', 'dist/cli.js'), program, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', fuse];
      await run(binary, inject, out);
      await checkService(binary, [], place.createFolder(), { command: program });
    },
  },
  {
    name: 'the first nine requests at once, 20 starts',
    async check({ binary }, place) {
      const folder = place.installService('esm');
      cpSync(join(HERE, 'first-requests.mjs'), join(folder, 'first-requests.mjs'));
      const start = async (turn: number): Promise<void> => {
        const output = (await run(binary, ['first-requests.mjs', String(turn)], folder)).trim();
        if (output !== '200 400 200 200 404 200 200 200 200') throw new ToolError(`turn ${turn}: ${output}`);
      };
      for (let turn = 0; turn < 20; turn += 4)
        await Promise.all([turn, turn + 1, turn + 2, turn + 3].map((each) => start(each)));
    },
  },
  {
    name: 'mv node_modules under the process',
    check: async ({ binary }, place) => {
      const folder = place.installService('esm');
      const move = async (): Promise<void> => renameSync(join(folder, 'node_modules'), join(folder, 'moved'));
      await checkService(binary, ['main.js'], folder, { whenListening: move });
    },
  },
  {
    name: 'npm ci under the process',
    check: async ({ binary }, place) => {
      const folder = place.writeService('esm');
      writeManifest(folder, place.packed.tarball);
      await run(binary, ['install', '--no-audit', '--no-fund'], folder, {}, 'npm');
      const reinstall = async (): Promise<void> => void (await run(binary, ['ci', '--no-audit'], folder, {}, 'npm'));
      await checkService(binary, ['main.js'], folder, { whenListening: reinstall });
    },
  },
  {
    name: 'no file descriptor left',
    check: async ({ binary }, place) => {
      const folder = place.installService('esm');
      const command = `ulimit -n 1024; exec ${binary} --require ${join(HERE, 'exhaust.cjs')} main.js`;
      let times = 0;
      await checkService(binary, ['-c', command], folder, {
        command: '/bin/sh',
        async exhaust(running) {
          running.signal('SIGUSR2');
          await running.line(new RegExp(`^EMFILE ${(times += 1)}$`, 'm'));
        },
      });
    },
  },
];

const BUNDLERS: readonly Tool[] = [
  bundles('esbuild', 'esm'),
  bundles('esbuild', 'esm', 'single', 'minify'),
  bundles('esbuild', 'cjs'),
  bundles('esbuild', 'cjs', 'minify'),
  bundles('esbuild', 'esm', 'external'),
  bundles('rollup', 'esm'),
  bundles('rollup', 'esm', 'single'),
  bundles('rollup', 'cjs'),
  bundles('rolldown', 'esm'),
  bundles('rolldown', 'esm', 'single', 'minify'),
  bundles('rolldown', 'cjs'),
  bundles('rolldown', 'cjs', 'minify'),
  bundles('vite', 'esm'),
  bundles('vite', 'esm', 'minify'),
  bundles('vite', 'cjs'),
  {
    name: 'vite development server',
    async check({ binary }, place) {
      const folder = place.installService('esm');
      await checkService(binary, [join(HERE, 'vite-server.mjs'), folder], folder);
    },
  },
  bundles('webpack', 'esm'),
  bundles('webpack', 'cjs'),
  bundles('webpack', 'cjs', 'minify'),
  bundles('webpack', 'esm', 'minify'),
  bundles('webpack', 'esm', 'external'),
  bundles('webpack', 'cjs', 'external'),
  bundles('parcel', 'esm'),
  bundles('parcel', 'cjs'),
  bundles('parcel', 'cjs', 'minify'),
  bundles('ncc', 'esm'),
  bundles('ncc', 'esm', 'minify'),
  bundles('nft', 'esm'),
];

const ES_MODULES = { target: 'ES2022', module: 'NodeNext' };
const COMMON_JS = { target: 'ES2022', module: 'CommonJS', esModuleInterop: true };
const TS_NODE = { installed: ['ts-node', 'typescript'], env: { TS_NODE_TRANSPILE_ONLY: 'true' } };
const SWC = { installed: ['@swc-node/register', '@swc/core'] };

const LOADERS: readonly Tool[] = [
  runs('tsx', 'ts', { args: () => [fileOf('tsx', 'dist/cli.mjs')] }),
  runs('tsx --import', 'ts', { args: () => ['--import', pathToFileURL(fileOf('tsx', 'dist/loader.mjs')).href] }),
  runs('tsx with CommonJS', 'ts-cjs', { args: () => [fileOf('tsx', 'dist/cli.mjs')] }),
  runs('ts-node', 'ts', { ...TS_NODE, compilerOptions: ES_MODULES, args: () => ['--loader', 'ts-node/esm'] }),
  runs('ts-node with CommonJS', 'ts-cjs', {
    ...TS_NODE,
    compilerOptions: COMMON_JS,
    args: () => ['--require', 'ts-node/register'],
  }),
  runs('swc', 'ts', {
    ...SWC,
    compilerOptions: ES_MODULES,
    args: () => ['--import', '@swc-node/register/esm-register'],
  }),
  runs('swc with CommonJS', 'ts-cjs', {
    ...SWC,
    compilerOptions: COMMON_JS,
    args: () => ['--require', '@swc-node/register'],
  }),
];

const JEST = (): string[] => ['--experimental-vm-modules', fileOf('jest', 'bin/jest.js')];

const RUNNERS: readonly Tool[] = [
  ...['threads', 'forks', 'vmThreads', 'vmForks'].flatMap((pool) => [vitest(pool), vitest(pool, 'inline')]),
  {
    name: 'jest with ES modules',
    async check({ binary }, place) {
      const folder = place.installService('esm');
      writeFileSync(join(folder, 'service.test.js'), TEST);
      await run(binary, [...JEST(), '--rootDir', folder], folder);
    },
  },
  {
    name: 'jest require',
    since: [24, 'Jest requires no ES module under Node.js 20 and 22'],
    async check({ binary }, place) {
      const folder = place.installService('cjs');
      const code = TEST.replace(/import (.*) from ('.*');/, 'const $1 = require($2);');
      writeFileSync(join(folder, 'service.test.js'), code);
      await run(binary, [...JEST(), '--rootDir', folder], folder);
    },
  },
];

const PNPM = { install: () => [fileOf('pnpm', 'bin/pnpm.cjs'), 'install'] };
const YARN = { install: () => [fileOf('@yarnpkg/cli-dist', 'bin/yarn.js'), 'install'] };
const PLUG_AND_PLAY = ['--require', './.pnp.cjs', '--experimental-loader', './.pnp.loader.mjs'];

const INSTALLERS: readonly Tool[] = [
  installs('npm', { install: () => ['install'], command: () => 'npm' }),
  installs('pnpm', PNPM),
  installs('pnpm require', { ...PNPM, form: 'cjs' }),
  installs("yarn with Plug'n'Play", { ...YARN, args: PLUG_AND_PLAY }),
  installs("yarn with Plug'n'Play, require", {
    ...YARN,
    form: 'cjs',
    args: ['--require', './.pnp.cjs'],
  }),
  installs('bun', { install: () => ['install'], command: () => fileOf('bun', 'bin/bun.exe') }),
];

export const TOOLS: readonly Tool[] = [...NODE, ...BUNDLERS, ...LOADERS, ...RUNNERS, ...INSTALLERS];
