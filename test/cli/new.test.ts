/**
 * `postern new`: a service to start from, which installs, passes its tests and runs as it is written, from the packed
 * package and under a Node.js that runs TypeScript.
 *
 * @module-tag package
 * @module-tag slow
 */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import tested from '../package.json' with { type: 'json' };
import { packageVersion, runCommand } from '../support/command.js';
import { findNode24 } from '../support/node24.js';
import { packPackage } from '../support/packed.js';

interface Manifest {
  readonly scripts: Record<string, string>;
  readonly dependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
}

const node24 = findNode24();
const env = { ...process.env, CI: undefined, PATH: [node24, process.env['PATH']].join(delimiter) };
const inFolder = async (cwd: string, command: string, ...args: string[]): Promise<string> => {
  const { stdout } = await promisify(execFile)(command, args, { cwd, env, encoding: 'utf8' }).catch(
    (error: unknown) => {
      const { stdout: out, stderr: err } = error as { stdout: string; stderr: string };
      throw new Error(`${command} ${args.join(' ')} failed:\n${out}${err}`);
    },
  );
  return stdout;
};

let folder = '';
let printed = '';
let written: Manifest;
const shop = (...path: string[]): string => join(folder, 'shop', ...path);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-new-'));
  const { tarball } = await packPackage();
  printed = await inFolder(folder, 'npx', '--yes', `--package=${tarball}`, 'postern', 'new', 'shop');
  const manifest = readFileSync(shop('package.json'), 'utf8');
  written = JSON.parse(manifest) as Manifest;
  // The package is not published yet.
  writeFileSync(shop('package.json'), manifest.replace(/("postern": ")[^"]*/, `$1file:${tarball}`));
  await inFolder(shop(), 'npm', 'install', '--no-audit', '--no-fund', '--prefer-offline');
}, 180_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('it says what to do next', () => {
  expect(printed).toBe('shop is in shop. Next:\n\n  cd shop\n  npm install\n  npm test\n  npm run dev\n');
});

test('it has what a team keeps, and its own name everywhere', () => {
  const files = readdirSync(shop()).filter((file) => !/^(?:node_modules|package-lock\.json)$/.test(file));
  expect(files.sort()).toEqual([
    '.dockerignore', '.github', '.gitignore', 'Dockerfile', 'README.md', 'node-version.js', 'package.json', 'src', 'test',
    'tsconfig.build.json', 'tsconfig.json',
  ]);
  for (const file of ['package.json', 'README.md', 'Dockerfile', 'src/app.ts']) {
    expect(readFileSync(shop(file), 'utf8'), file).not.toContain('service-name');
  }
  expect(Object.keys(written.scripts).sort()).toEqual(['build', 'dev', 'start', 'test']);
});

test('it depends on this version of Postern, and on what it is tested with', () => {
  expect(written.dependencies).toEqual({ postern: `^${packageVersion()}`, zod: `^${tested.dependencies.zod}` });
  expect(written.devDependencies['@types/node']).toBe(`^${tested.dependencies['node-types'].replace(/.*@/, '')}`);
});

test('its tests pass, and a new one is found by itself', { timeout: 120_000 }, async ({ skip }) => {
  skip(node24 === undefined, 'npm has no Node.js 24 for this system');
  mkdirSync(shop('test/deep'));
  writeFileSync(
    shop('test/deep/more.test.ts'),
    "import { test } from 'node:test';\ntest('found by itself', () => {});\n",
  );
  writeFileSync(shop('vitest.config.ts'), "throw new Error('nobody asked for Vitest');\n");
  onTestFinished(() => {
    rmSync(shop('test/deep'), { recursive: true });
    rmSync(shop('vitest.config.ts'));
  });
  expect(await inFolder(shop(), 'npm', 'test')).toMatch(/found by itself[^]*\bpass 3\n[^]*\bfail 0\n/);
});

test.for(['dev', 'start', 'test'])('npm run %s refuses a Node.js that runs no TypeScript', async (script, { skip }) => {
  skip(node24 === dirname(process.execPath), 'there is no older Node.js here');
  const PATH = [dirname(process.execPath), process.env['PATH']].join(delimiter);
  const stdio = ['ignore', 'ignore', 'pipe'] as ['ignore', 'ignore', 'pipe'];
  const child = spawn('npm', ['run', script], { cwd: shop(), env: { ...env, PATH }, stdio });
  onTestFinished(() => void child.kill('SIGKILL'));
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += String(chunk)));
  const [code] = (await once(child, 'close')) as [number];
  expect(code).not.toBe(0);
  expect(errors).toContain(`This is Node.js ${process.versions.node}; the service needs 22.18 or later.`);
});

test('in production it starts with a connection only, not with the stand-in', { timeout: 60_000 }, async ({ skip }) => {
  skip(node24 === undefined, 'npm has no Node.js 24 for this system');
  const production = { NODE_ENV: 'production' };
  const stdio = ['ignore', 'ignore', 'pipe'] as ['ignore', 'ignore', 'pipe'];
  const child = spawn('npm', ['start'], { cwd: shop(), env: { ...env, ...production }, stdio });
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += String(chunk)));
  expect((await once(child, 'close'))[0]).toBe(1);
  expect(errors).toContain('SERVICE_CONNECTIONS is not set; set it, for example to stock=http://stock:8000');
  const { url } = await start({ ...production, SERVICE_CONNECTIONS: 'stock=http://127.0.0.1:1' }, 'npm', 'start');
  expect((await order(url)).status).toBe(503);
});

test('it installs beside ESLint and typescript-eslint', { timeout: 120_000 }, async () => {
  await inFolder(
    shop(), 'npm', 'install', '--dry-run', '--no-audit', '--no-fund', '--save-dev', 'eslint', 'typescript-eslint',
  );
});

/** Starts a script; it is killed when the test ends. */
async function start(
  more: Readonly<Record<string, string>>,
  ...command: readonly [string, ...string[]]
): Promise<{ url: string; nextStart: () => Promise<number>; logged: string[] }> {
  const variables = { ...env, HOST: '127.0.0.1', PORT: '0', DRAIN_DELAY: '0', LOG_FORMAT: 'json', ...more };
  const child = spawn(command[0], command.slice(1), {
    cwd: shop(),
    env: variables,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  onTestFinished(() => void process.kill(-(child.pid ?? 0), 'SIGKILL'));
  const logged: string[] = [];
  const waiting: ((port: number) => void)[] = [];
  createInterface(child.stderr).on('line', (line) => {
    logged.push(line);
    if (line.includes('"msg":"listening"')) waiting.shift()?.((JSON.parse(line) as { port: number }).port);
  });
  const nextStart = (): Promise<number> => new Promise((resolve) => waiting.push(resolve));
  return { url: `http://127.0.0.1:${await nextStart()}`, nextStart, logged };
}

const order = (url: string): Promise<Response> =>
  fetch(`${url}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"item":"tea","quantity":2}',
  });

test(
  'npm start serves an order, without a build and without another service',
  { timeout: 60_000 },
  async ({ skip }) => {
    skip(node24 === undefined, 'npm has no Node.js 24 for this system');
    const { url } = await start({}, 'npm', 'start');
    const made = await order(url);
    expect([made.status, await made.json()])
      .toEqual([201, { id: expect.any(String), item: 'tea', quantity: 2, total: 8 }]);
    expect((await fetch(url + made.headers.get('location'))).status).toBe(200);
    expect((await fetch(`${url}/shop/health/`)).status).toBe(200);
  },
);

test('npm run dev starts again after a saved change', { timeout: 60_000 }, async ({ skip }) => {
  skip(node24 === undefined, 'npm has no Node.js 24 for this system');
  const { nextStart } = await start({}, 'npm', 'run', 'dev');
  const again = nextStart();
  const source = readFileSync(shop('src/orders.ts'), 'utf8');
  onTestFinished(() => writeFileSync(shop('src/orders.ts'), source));
  writeFileSync(shop('src/orders.ts'), `${source}\nexport const changed = true;\n`);
  expect((await order(`http://127.0.0.1:${await again}`)).status).toBe(201);
});

test('the commands of its Dockerfile make what its image runs, on this Node.js too', { timeout: 120_000 }, async () => {
  const dockerfile = readFileSync(shop('Dockerfile'), 'utf8');
  for (const [, sources = ''] of dockerfile.matchAll(/^COPY (?!--)(.*) \S+$/gm)) {
    for (const source of sources.split(' ')) expect(existsSync(shop(source)), source).toBe(true);
  }
  expect(dockerfile).toMatch(/^USER 1000:1000$/m);
  const commands = [...dockerfile.matchAll(/^RUN (.*)$/gm)].flatMap(([, line = '']) => line.split(' && '));
  expect(commands).toEqual(['npm ci', 'npm run build', 'npm prune --omit=dev']);
  for (const command of commands)
    await inFolder(
      shop(),
      'sh',
      '-c',
      `${command} --no-audit --no-fund --prefer-offline`.replace(/(run build) .*/, '$1'),
    );
  const [, main = ''] = /^CMD \["node", "(.*)"\]$/m.exec(dockerfile) ?? [];
  const { url } = await start({}, process.execPath, main);
  expect((await order(url)).status).toBe(201);
});

test('it writes into a fresh git repository, whose own files stay as they are', async () => {
  const cwd = join(folder, 'orders');
  mkdirSync(join(cwd, '.git'), { recursive: true });
  writeFileSync(join(cwd, '.git/config'), 'service-name');
  expect(await runCommand(['new', '.'], { cwd })).toMatchObject({ code: 0, stderr: '' });
  const isTheirs = (file: string): boolean => !/^(?:node_modules|dist|package-lock\.json)$/.test(file);
  expect(readdirSync(cwd).sort()).toEqual([...readdirSync(shop()).filter(isTheirs), '.git'].sort());
  expect(readFileSync(join(cwd, '.git/config'), 'utf8')).toBe('service-name');
});

const refused: readonly { name: string; args: string[]; says: string }[] = [
  { name: 'a folder that is not empty', args: ['.'], says: 'DIR is ".", which is not empty; give a new folder' },
  { name: 'no folder', args: [], says: 'DIR is missing' },
  { name: 'a name that no URL path has', args: ['x', '--name', 'My Shop'],
    says: '"My Shop" cannot be the name of a service; use lower-case letters, digits and . _ ~ -' },
  { name: 'a folder whose name cannot be the name', args: ['My Shop'],
    says: '"My Shop" cannot be the name of a service; give one with --name' },
];
test.for(refused)('$name is refused, and nothing is written', async ({ args, says }) => {
  const before = readdirSync(shop());
  const { code, stdout, stderr } = await runCommand(['new', ...args], { cwd: shop() });
  expect([code, stdout, stderr]).toEqual([2, '', `postern: ${says}; see postern new --help\n`]);
  expect(readdirSync(shop())).toEqual(before);
});
