/**
 * `postern demo --source`: a service to start from, which compiles, passes its own tests, and does what it says.
 *
 * @module-tag package
 */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { PersistentVolumeClaim } from 'kubernetes-models/v1/PersistentVolumeClaim';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { NotFound } from 'postern';
import tested from '../package.json' with { type: 'json' };
import { COMMAND, packageVersion, runCommand } from '../support/command.js';
import { createApp, serve } from '../support/serve.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest { readonly scripts: Record<string, string>; readonly dependencies: Record<string, string>; readonly devDependencies: Record<string, string> }
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
const manifest = (): Manifest => JSON.parse(read('package.json')) as Manifest;
const npm = (...args: string[]): string =>
  execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe', env: { ...process.env, npm_config_update_notifier: 'false', PATH: dirname(process.execPath) + delimiter + process.env['PATH'] } });

let folder = '';
beforeAll(async () => {
  folder = join(mkdtempSync(join(tmpdir(), 'postern-example-')), 'shop/orders');
  expect(execFileSync(process.execPath, [COMMAND, 'demo', '--source', folder], { encoding: 'utf8' })).toBe(`Written. In ${folder}: npm install, npm test, npm start.\n`);
  // What npm install does, without a network.
  const modules = join(folder, 'node_modules');
  for (const name of ['.bin', '@types']) mkdirSync(join(modules, name), { recursive: true });
  for (const [name, path] of [['postern', '.'], ['zod', 'test/node_modules/zod'], ['typescript', 'node_modules/typescript'], ['@types/node', 'test/node_modules/node-types']] as const) symlinkSync(join(ROOT, path), join(modules, name));
  for (const [name, script] of [['postern', COMMAND], ['tsc', join(ROOT, 'node_modules/typescript/bin/tsc')]] as const) writeFileSync(join(modules, '.bin', name), `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`, { mode: 0o755 });
  try {
    npm('test');
  } catch (error) {
    throw new Error(`the example's own tests fail:\n${(error as { stdout: string }).stdout}`);
  }
}, 120_000);
afterAll(() => rmSync(dirname(dirname(folder)), { recursive: true, force: true }));

test('it depends on this version of Postern, and on what it was tested with', () => {
  const { dependencies, devDependencies } = manifest();
  expect(dependencies).toEqual({ postern: `^${packageVersion()}`, zod: `^${tested.dependencies.zod}` });
  expect(Object.keys(devDependencies)).toEqual(['@types/node', 'typescript']);
  expect(devDependencies['@types/node']).toBe(`^${tested.dependencies['node-types'].replace(/.*@/, '')}`);
});

test('a folder that is not empty is refused, and stays as it is', async () => {
  for (const where of [folder, '']) {
    const before = readdirSync(folder);
    const { code, stdout, stderr } = await runCommand(['demo', '--source', where], { cwd: folder });
    expect([code, stdout, stderr]).toEqual([2, '', `postern: --source is ${JSON.stringify(where)}, which isn't empty; give a new folder; see postern demo --help\n`]);
    expect(readdirSync(folder)).toEqual(before);
  }
});

/** The example as a process of its own, until `stop` tells how it ended. */
async function start(stockUrl: string): Promise<{ url: string; stop: () => Promise<unknown> }> {
  const env = { ...process.env, HOST: '127.0.0.1', PORT: '0', DRAIN_DELAY: '0', DATABASE: join(folder, 'orders.db'), STOCK_URL: stockUrl };
  const child = spawn(process.execPath, ['dist/main.js'], { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  for await (const line of createInterface(child.stderr)) {
    if (!line.includes('"listening"')) continue;
    const { port } = JSON.parse(line) as { port: number };
    const stop = async (): Promise<unknown> => {
      const closed = once(child, 'close');
      child.stderr.resume();
      child.kill('SIGTERM');
      return closed;
    };
    return { url: `http://127.0.0.1:${port}`, stop };
  }
  throw new Error('it ended before it was listening');
}

test('it asks the other service, refuses what is wrong, and finds its orders after a restart', async () => {
  const stock = createApp().get('/items/:id', (ctx) => (ctx.params.id === 'tea' ? { price: 4 } : new NotFound('There is no such item.')));
  const { url: stockUrl } = await serve(stock);
  const first = await start(stockUrl);
  const send = (body: object): Promise<Response> => fetch(`${first.url}/orders`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const made = await send({ item: 'tea', quantity: 2 });
  expect(made.status).toBe(201);
  const order = await made.json() as unknown;
  expect(order).toEqual({ id: expect.any(String), item: 'tea', quantity: 2, total: 8 });
  expect((await send({ item: 'tea', quantity: 0 })).status).toBe(400);
  expect(await (await send({ item: 'gold', quantity: 1 })).json()).toMatchObject({ description: 'There is no such item.' });
  expect((await fetch(`${first.url}/orders/health/`)).status).toBe(200);
  expect(await first.stop()).toEqual([0, null]);

  const second = await start(stockUrl);
  const found = await fetch(second.url + made.headers.get('location'));
  expect([found.status, await found.json()]).toEqual([200, order]);
  expect(await second.stop()).toEqual([0, null]);
});

interface Patch { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }

/** RFC 6902, as far as kustomize needs it here. */
function apply(document: object, { op, path, value }: Patch): void {
  const keys = path.slice(1).split('/');
  const last = keys.pop() ?? '';
  let target = document as Record<string, unknown>;
  for (const key of keys) {
    target = target[key] as Record<string, unknown>;
    expect(target, `${key} in ${path}`).toBeTypeOf('object');
  }
  expect(last in target, path).toBe(op === 'replace');
  target[last] = value;
}

test('its manifests are what Postern writes, with a volume where the image keeps the database', () => {
  npm('run', 'manifests');
  const { resources, patches } = parse(read('k8s/kustomization.yaml')) as { resources: string[]; patches: { target: { kind: string }; patch: string }[] };
  const documents = resources.flatMap((name) => parseAllDocuments(read(`k8s/${name}`)).map((document) => document.toJS() as { kind: string }));
  for (const { target, patch } of patches) {
    const [found, ...more] = documents.filter(({ kind }) => kind === target.kind);
    expect(more).toEqual([]);
    for (const each of parse(patch) as Patch[]) apply(found ?? {}, each);
  }
  const of = (kind: string): object => documents.find((document) => document.kind === kind) ?? {};
  const deployment = new Deployment(of('Deployment') as ConstructorParameters<typeof Deployment>[0]);
  const claim = new PersistentVolumeClaim(of('PersistentVolumeClaim') as ConstructorParameters<typeof PersistentVolumeClaim>[0]);
  for (const each of [deployment, claim]) each.validate();
  expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  const pod = deployment.spec?.template.spec;
  const [volume] = pod?.volumes ?? [];
  const [mount] = pod?.containers[0]?.volumeMounts ?? [];
  expect(volume?.persistentVolumeClaim?.claimName).toBe(claim.metadata?.name);
  expect(mount?.name).toBe(volume?.name);
  expect(read('Dockerfile')).toContain(`DATABASE=${mount?.mountPath}/`);
});

test('its Dockerfile copies what there is, and runs what was built as a user who is not root', () => {
  const dockerfile = read('Dockerfile');
  for (const [, sources = ''] of dockerfile.matchAll(/^COPY (?!--)(.*) \S+$/gm)) {
    for (const source of sources.split(' ')) expect(source === 'package-lock.json' || existsSync(join(folder, source)), source).toBe(true);
  }
  for (const [, script = ''] of dockerfile.matchAll(/npm run (\w+)/g)) expect(manifest().scripts).toHaveProperty(script);
  expect(dockerfile).toMatch(/^USER 1000:1000$/m);
  const [, main = ''] = /^CMD \["node", "(.*)"\]$/m.exec(dockerfile) ?? [];
  expect(existsSync(join(folder, main)), main).toBe(true);
});
