/** The README is true: its code runs as printed, and its tables say what the code does. */

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FrameworkErrorCodes, Postern, Router } from 'postern';
import * as entry from 'postern';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

const blocks = [...README.matchAll(/^```ts\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?/gms)].map(([, code = '', output], index) => ({ name: `block${index + 1}`, code, output }));

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-readme-'));
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
  symlinkSync(ROOT, join(folder, 'node_modules/postern'));
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
  symlinkSync(join(ROOT, 'node_modules/undici-types'), join(folder, 'node_modules/undici-types'));
  for (const { name, code } of blocks) writeFileSync(join(folder, `${name}.mts`), code);
  const compilerOptions = { strict: true, target: 'ES2022', module: 'NodeNext', types: ['node'], lib: ['ES2023', 'ESNext.Decorators'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mts'] }));
  try {
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    throw new Error(`the code of the README does not compile:\n${(error as { stdout: string }).stdout}`);
  }
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('every block of code has its output beside it', () => {
  expect(blocks.length).toBeGreaterThanOrEqual(7);
  for (const { code, output } of blocks) expect(output, code).toBeDefined();
});

test.for(blocks)('$name runs and prints what the README says', async ({ name, output }) => {
  const child = spawn(process.execPath, [`${name}.mjs`], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  let errors = '';
  child.stdout.on('data', (chunk) => (printed += String(chunk)));
  child.stderr.on('data', (chunk) => (errors += String(chunk)));
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(errors.split('\n').filter((line) => line !== '' && !line.startsWith('{')).join('\n')).toBe('');
  expect(code).toBe(0);
  expect(printed.trim()).toBe(output?.trim());
});

/** The first column of the table under a header, without its backticks. */
function column(header: string): string[] {
  const [, rows = ''] = new RegExp(`^\\| ${header} \\|.*\\n\\| ---.*\\n((?:\\|.*\\n)+)`, 'm').exec(README) ?? [];
  return rows.trim().split('\n').map((row) => row.split(' | ')[0]?.replace(/^\| |`/g, '').trim() ?? '');
}

test('the table of paths shows the patterns that the router makes', () => {
  const rows = [...README.matchAll(/^\| `(\/[^`]*)` \| `(\^[^`]*)` \|/gm)];
  expect(rows.length).toBe(4);
  for (const [, path = '', pattern = ''] of rows) {
    const router = new Router();
    router.add('GET', path.replaceAll('\\\\', '\\'), () => 1);
    expect(router.routes[0]?.pattern).toBe(pattern);
  }
});

test('the table of options is that of PosternOptions, both ways', () => {
  const source = readFileSync(join(ROOT, 'src/app/options.ts'), 'utf8');
  const [, body = ''] = /export interface PosternOptions \{(.*?)^\}/ms.exec(source) ?? [];
  const declared = [...body.matchAll(/^ {2}(\w+)\?:/gm)].map(([, name]) => name);
  expect(column('option').sort()).toEqual(declared.sort());
});

test('the table of error codes is that of FrameworkErrorCodes, both ways', () => {
  expect(column('error code').sort()).toEqual(Object.keys(FrameworkErrorCodes).sort());
  for (const { name, value } of Object.values(FrameworkErrorCodes)) expect(README).toContain(`| \`${name}\` | ${value} |`);
});

test('the table of metrics is that of a fresh application, both ways', async () => {
  const app = new Postern('users', { logger: false });
  const exposed = [...app.metrics.expose().matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);
  await app.close();
  const listed = column('metric').filter((name) => !name.includes('*'));
  const own = exposed.filter((name) => !/^(?:process|nodejs|postern)_/.test(name));
  expect(listed.sort()).toEqual(own.sort());
});

test('every export has its place in the README', () => {
  for (const name of Object.keys(entry)) expect(README).toContain(name);
});
