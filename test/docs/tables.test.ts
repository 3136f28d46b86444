/**
 * The tables of the documents say what the code does, both ways.
 *
 * @module-tag package
 */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FrameworkErrorCodes, Postern, Router } from 'postern';
import * as entry from 'postern';
import { resolveOptions } from '../../src/app/options.js';
import { Context } from '../../src/http/context.js';
import { findPages, readPage, ROOT } from '../support/markdown.js';

const PAGES = findPages().filter((page) => page !== 'docs/reference/api.md').map(readPage).join('\n');

const SOURCES = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'));
const SOURCE = SOURCES.map((file) => readFileSync(join(ROOT, 'src', file), 'utf8')).join('\n');

/**
 * A column of the table whose header begins with `header` (and `next`): the first one without its backticks, others as
 * they are.
 */
function column(header: string, index = 0, next = ''): string[] {
  const [, rows = ''] = new RegExp(`^\\| ${header} \\| ${next}.*\\n\\| ---.*\\n((?:\\|.*\\n)+)`, 'm').exec(PAGES) ?? [];
  const cells = rows.trim().split('\n').map((row) => row.slice(2).split(' | ')[index]?.trim() ?? '');
  return index === 0 ? cells.map((cell) => cell.replaceAll('`', '')) : cells;
}

test('the table of paths shows the patterns that the router makes', () => {
  const rows = [...PAGES.matchAll(/^\| `(\/[^`]*)` \| `(\^[^`]*)` \|/gm)];
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
  expect(column('option', 0, 'default').sort()).toEqual(declared.sort());
});

/** Numbers with their unit: `60,000 ms`, `1,000`. */
const withUnit = (value: number, unit: string): string => [value.toLocaleString('en'), unit].join(' ').trim();

test('the defaults in the table of options are those of the code, with their units', () => {
  const resolved = Object.entries(resolveOptions('users', {}, {}));
  const defaults = new Map(resolved.flatMap(([name, value]): [string, string][] => {
    if (typeof value === 'boolean') return [[name, `\`${value}\``]];
    const unit = /(?:Timeout|Age)$/.test(name) ? 'ms' : /^(?:bodyLimit|maxHeaderSize)$/.test(name) ? 'bytes' : '';
    return typeof value === 'number' ? [[name, withUnit(value, unit)]] : [];
  }));
  defaults.set('durationBuckets', `${resolveOptions('users', {}, {}).durationBuckets.join(', ')} s`);
  const rows = new Map(column('option', 0, 'default').map((name, i) => [name, column('option', 1, 'default')[i]]));
  expect(defaults.size).toBeGreaterThan(10);
  for (const [name, value] of defaults) expect([name, rows.get(name)]).toEqual([name, value]);
  const numbers = [...rows].filter(([, value = '']) => /^[\d`]/.test(value) && !/^`(?:\[\]|\{\}|[A-Z_]+)`/.test(value))
    .map(([name]) => name);
  expect(numbers.sort()).toEqual([...defaults.keys()].sort());
  const { maxEventLoopDelay, maxMemoryPercent, retryAfter, observe } =
    resolveOptions('users', { loadShedding: {} }, {}).loadShedding ?? {};
  expect(column('member', 1, 'default'))
    .toEqual([`${maxEventLoopDelay} ms`, String(maxMemoryPercent), `${retryAfter} s`, `\`${observe}\``]);
});

test('the table of variables is that of what the code reads, both ways', () => {
  const read = new Set(
    [
      ...SOURCE.matchAll(
        /env\['([A-Z_]+)'\]|\{ ([A-Z_]+):[^}]*\}: NodeJS\.ProcessEnv|\benv, '([A-Z_]+)'|\b(OTEL_[A-Z_]+)\b(?!=)/g,
      ),
    ].map((match) => match.slice(1).find((name) => name !== undefined) ?? ''),
  );
  read.delete('NO_COLOR');
  expect(column('variable').flatMap((cell) => cell.split(', ')).sort()).toEqual([...read].sort());
});

test('the table of the context is that of its members, both ways', () => {
  const source = readFileSync(join(ROOT, 'src/http/context.ts'), 'utf8');
  const internal = [
    'constructor',
    ...[...source.matchAll(/@internal\s*\*\/\n {2}(?:static |readonly |get )*(\w+)/g)].map(([, name]) => name),
  ];
  const members = ['method', 'params', ...Object.getOwnPropertyNames(Context.prototype)].filter(
    (name) => !internal.includes(name),
  );
  const listed = column('member', 0, 'what it is')
    .flatMap((cell) => cell.split(', ').map((name) => name.replace(/^ctx\.|\(.*$/g, '')));
  expect(listed.sort()).toEqual(members.sort());
});

test('the table of error codes is that of FrameworkErrorCodes, both ways', () => {
  expect(column('error code').sort()).toEqual(Object.keys(FrameworkErrorCodes).sort());
  for (const { name, value } of Object.values(FrameworkErrorCodes))
    expect(PAGES).toContain(`| \`${name}\` | ${value} |`);
});

test('the tables of metrics are those of a fresh application, both ways', async () => {
  const app = new Postern('users', { logger: false });
  const exposed = [...app.metrics.expose().matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);
  await app.close();
  const isOfProcess = (name: string): boolean => /^(?:process|nodejs)_/.test(name);
  expect(column('metric').sort()).toEqual(exposed.filter((name) => !isOfProcess(name)).sort());
  expect(column('metric of the process').sort()).toEqual(exposed.filter(isOfProcess).sort());
});

test.for([
  ['health', 'HealthDocument'],
  ['metrics', 'MetricsDocument'],
  ['ping', 'PingDocument'],
  ['access log', 'AccessEntry'],
  ['`postern.request`', 'RequestTraceMessage'],
  ['`postern.call`', 'CallTraceMessage'],
] as const)('the table "%s" has the members of the type, both ways', ([header, name]) => {
  const [, body = ''] = new RegExp(`interface ${name} \{(.*?)^\}`, 'ms').exec(SOURCE) ?? [];
  const declared = [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, member]) => member);
  expect(declared.length).toBeGreaterThan(1);
  expect(column(header).filter((member) => !member.includes('.')).sort()).toEqual(declared.sort());
});

test('every command of the command line has a row', () => {
  const help = execFileSync(process.execPath, [join(ROOT, 'dist/cli.js'), '--help'], { encoding: 'utf8' });
  const [, list = ''] = /^Commands:\n(.*?)^$/ms.exec(help) ?? [];
  const commands = [...list.matchAll(/^ {2}(\w+)/gm)].map(([, command]) => command);
  expect(commands.length).toBeGreaterThan(5);
  const listed = column('`npx postern …`').flatMap((cell) => cell.split(', ').map((each) => each.split(' ')[0]));
  expect(listed.sort()).toEqual(commands.sort());
});

test('every export has its place in the documents', () => {
  expect(Object.keys(entry).filter((name) => !PAGES.includes(name))).toEqual([]);
});

test('the command of the README is what continuous integration runs', () => {
  const command = 'npm install && npm test';
  expect(readPage('README.md')).toMatch(new RegExp(`^${command} +#`, 'm'));
  expect(readFileSync(join(ROOT, '.ci/run'), 'utf8').trimEnd().split('\n').at(-1)).toBe(command);
});
