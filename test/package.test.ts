/**
 * The package as its users get it: packed, installed into an empty folder, imported, required and compiled.
 *
 * @module-tag package
 */

import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { packPackage, type Packed } from './support/packed.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ENTRIES = Object.keys(packageJson.exports).filter((name) => name !== './package.json')
  .map((name) => `postern${name.slice(1)}`);

let folder = '';
let installed = '';
let packed: Packed;

const run = (command: string, args: string[]): string =>
  execFileSync(command, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const node = (code: string, type: 'module' | 'commonjs'): string =>
  run(process.execPath, [`--input-type=${type}`, '--eval', code]).trim();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-'));
  packed = await packPackage();
  writeFileSync(join(folder, 'package.json'), '{"name":"consumer","private":true}');
  const { stderr } = spawnSync(
    'npm',
    ['install', '--offline', '--no-audit', '--no-fund', packed.tarball],
    { cwd: folder, encoding: 'utf8' },
  );
  installed = stderr;
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The built JavaScript, without what `postern new` writes. */
const builtFiles = (): string[] =>
  readdirSync(join(ROOT, 'dist'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.js') && !file.startsWith('starter'))
    .map((file) => join(ROOT, 'dist', file));

/** What `postern new` writes. */
const STARTER = [
  '.dockerignore',
  '.github/workflows/test.yml',
  'Dockerfile',
  'README.md',
  'gitignore',
  'node-version.js',
  'package.json',
  'src/app.ts',
  'src/main.ts',
  'src/orders.ts',
  'src/stock.ts',
  'test/app.test.ts',
  'tsconfig.build.json',
  'tsconfig.json',
].map((file) => `dist/starter/${file}`);

test('ships only what a user needs', () => {
  const [starter, others] = [true, false].map((kept) =>
    packed.files.filter(({ path }) => path.startsWith('dist/starter/') === kept),
  );
  expect(starter?.map(({ path }) => path).sort()).toEqual(STARTER);
  for (const { path } of others ?? [])
    expect(path).toMatch(
      /^(?:dist\/.+\.(?:js|d\.ts)|(?:(?:metrics|gateway|openapi)\/)?package\.json|docs\/(?:llms\.txt|SKILL\.md)|(?:README|CHANGELOG|SECURITY)\.md|LICENSE)$/,
    );
  for (const path of [
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
    'SECURITY.md',
    'docs/llms.txt',
    'docs/SKILL.md',
    'dist/index.js',
    'dist/index.d.ts',
  ])
    expect(packed.files.map((file) => file.path)).toContain(path);
});

test('in at most 900 kB without docs/llms.txt, with types that are indented as the compiler writes them', () => {
  const pages = packed.files.find(({ path }) => path === 'docs/llms.txt')?.size ?? 0;
  expect(packed.unpackedSize - pages).toBeLessThanOrEqual(900_000);
  expect(readFileSync(join(ROOT, 'dist/answer/context.d.ts'), 'utf8')).toMatch(/^ {4}readonly method/m);
});

test('no file of the library loads the command', () => {
  const imports = (file: string): boolean => /["']\.\.?\/cli\.js["']/.test(readFileSync(file, 'utf8'));
  expect(builtFiles().filter(imports)).toEqual([]);
});

test('functions and classes have the names of the source', () => {
  for (const file of builtFiles())
    expect(readFileSync(file, 'utf8').match(/\b(?:function\*?|class) \w+\$\d+/g), file).toBe(null);
});

test('dist has no empty folder', () => {
  const folders = readdirSync(join(ROOT, 'dist'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory());
  expect(
    folders.filter(({ parentPath, name }) => readdirSync(join(parentPath, name)).length === 0).map(({ name }) => name),
  ).toEqual([]);
});

test('says where it is to tools that do not read exports, and runs no script where it is installed', () => {
  for (const path of [packageJson.main, packageJson.types])
    expect(packed.files.map((file) => file.path)).toContain(path.replace('./', ''));
  expect(packageJson.repository.url).toMatch(/^git\+https:/);
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish'])
    expect(packageJson.scripts).not.toHaveProperty(name);
  expect(installed).not.toMatch(/npm warn(?!.*npmrc)/i);
});

test('a stack trace through it names its functions and methods', () => {
  const code = `
    import { Postern } from 'postern';
    const logger = { debug() {}, info() {}, warn() {}, error({ err }) { console.log(err.stack); } };
    const app = new Postern('users', { logger });
    app.use((ctx, next) => next()).get('/fails', function failingHandler() { throw new Error('by the handler'); });
    await app.request('/fails');
    try { app.get('/users/:id/:id', () => 1); } catch (error) { console.log(error.stack); }
  `;
  const trace = node(code, 'module');
  expect(trace).toMatch(/by the handler\n +at failingHandler/);
  for (const name of ['innermost', 'compilePath', 'Router.prepare', 'Postern.get'])
    expect(trace).toMatch(new RegExp(`at (?:async )?${name} `));
  expect(trace).not.toMatch(/at (?:#?\w{1,2}|\w+\.#?\w{1,2}) /);
});

test('a stack trace through the exporter for one gateway names no other gateway', () => {
  const trace = node(
    `import { toKong } from 'postern/gateway'; try { toKong(); } catch (error) { console.log(error.stack); }`,
    'module',
  );
  expect(trace).toMatch(/at toKong /);
  expect(trace).not.toMatch(/nginx|haproxy|caddy/i);
});

test('installs without any dependency', () => {
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, unknown>;
  };
  expect(Object.keys(lock.packages)).toEqual(['', 'node_modules/postern']);
  expect(packageJson).not.toHaveProperty('dependencies');
  expect(Object.keys(packageJson.devDependencies).sort()).toEqual(['@types/node', 'typescript', 'vitest']);
});

test.for(ENTRIES)('%s can be imported and required, with the same exports', (entry) => {
  const imported = node(`import * as entry from '${entry}'; console.log(Object.keys(entry).sort().join())`, 'module');
  const required = node(
    `console.log(Object.keys(require('${entry}')).filter((name) => name !== '__esModule').sort().join())`,
    'commonjs',
  );
  expect(imported).not.toBe('');
  expect(required).toBe(imported);
});

test('a process that imports every entry and makes an application exits by itself', () => {
  const code = `${ENTRIES.map((entry) => `import '${entry}';`).join('')} import { Postern } from 'postern'; const app = new Postern('users'); console.log((await app.request('/users/ping/')).status)`;
  expect(node(code, 'module')).toBe('200');
});

test('importing postern loads no module of Node.js but those of node:http and of the clock', () => {
  writeFileSync(join(folder, 'empty.mjs'), '');
  const code = `await import('node:http'); void performance.now(); await import('./empty.mjs'); const before = new Set(process.moduleLoadList); await import('postern'); console.log(JSON.stringify(process.moduleLoadList.filter((name) => !before.has(name))))`;
  expect(JSON.parse(node(code, 'module'))).toEqual([]);
});

test('the metrics library alone loads neither the application nor node:http', () => {
  const code = `import 'postern/metrics'; const loaded = process.moduleLoadList.filter((name) => name === 'NativeModule http' || name === 'NativeModule _http_server'); console.log(JSON.stringify(loaded))`;
  expect(node(code, 'module')).toBe('[]');
});

test('a strict consumer compiles, decorators included, and runs', () => {
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@types'), { recursive: true });
  for (const name of ['typescript', '@types/node', '@typescript', 'undici-types']) {
    if (!existsSync(join(modules, name))) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  writeFileSync(join(folder, 'consumer.mts'), `
    import { Postern, publicFacing, defineErrorCodes, ApiError, type Context } from 'postern';
    import { Registry } from 'postern/metrics';
    import { toNginx, type GatewayOptions } from 'postern/gateway';
    const gatewayOptions: GatewayOptions = { service: 'users', upstream: 'http://users:8000' };
    void (() => toNginx(app.router, gatewayOptions));
    const Codes = defineErrorCodes({ too_slow: 10002 });
    class TooSlow extends ApiError { static override statusCode = 408; static override errorCode = Codes.too_slow; }
    class FastView {
      #calls = 0;
      @publicFacing get(ctx: Context<{ readonly id: string }>): { id: string; calls: number } {
        return { id: ctx.params.id, calls: ++this.#calls };
      }
      @publicFacing({ params: [] }) delete(): never { throw new TooSlow(); }
      put(_ctx: Context): string { return 'private'; }
    }
    const app = new Postern('users', { logger: false }).view('/fast/:id', FastView);
    app.get('/users/:id', (ctx) => ({ id: ctx.params.id satisfies string }));
    const registry = new Registry();
    registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue'] }).inc({ queue: 'mail' });
    const answers = await Promise.all(['/fast/7', '/users/8'].map(async (path) => (await app.request(path)).text()));
    const refused = await app.request('/fast/7', { method: 'DELETE' });
    console.log(JSON.stringify([answers, refused.status, (await app.request('/fast/7?x=1', { method: 'DELETE' })).status, app.router.routesPublic, registry.expose().includes('jobs_total{queue="mail"} 1.0')]));
  `,
  );
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        target: 'ES2022',
        module: 'NodeNext',
        lib: ['ES2023', 'ESNext.Decorators'],
      },
      files: ['consumer.mts'],
    }),
  );
  try {
    run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder]);
  } catch (error) {
    throw new Error(String((error as { stdout: string }).stdout));
  }
  expect(JSON.parse(run(process.execPath, ['consumer.mjs']))).toEqual([
    ['{"id":"7","calls":1}', '{"id":"8"}'],
    408,
    400,
    { '^/fast/([^/]+)$': { public_methods: ['DELETE', 'GET'] } },
    true,
  ]);
});
