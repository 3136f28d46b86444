/**
 * The tables of the documents say what the code does, both ways.
 *
 * @module-tag package
 */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FrameworkErrorCodes, Postern, Router, type StandardSchemaV1 } from 'postern';
import * as entry from 'postern';
import * as gateways from 'postern/gateway';
import { Registry } from 'postern/metrics';
import { OPTIONS, resolveOptions } from '../../src/app/options.js';
import { readVariables } from '../../src/otlp/variables.js';
import { Context } from '../../src/answer/context.js';
import { MONITORING_ENDPOINTS } from '../../src/monitor/endpoints.js';
import { findPages, isAsPrinted, readPage, ROOT } from '../support/markdown.js';

const PAGES = findPages().filter((page) => !page.startsWith('docs/reference/api')).map(readPage).join('\n');

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

test('the table of monitoring endpoints is that of the code, both ways', () => {
  const cells = (index: number): string[] => column('monitoring endpoint', index).map((cell) => cell.replace(' |', ''));
  expect(cells(0)).toEqual(Object.keys(MONITORING_ENDPOINTS));
  const endpoints = Object.values(MONITORING_ENDPOINTS);
  expect(cells(1)).toEqual(endpoints.map(({ method = 'GET' }) => method));
  expect(cells(2)).toEqual(endpoints.map(({ listener }) => listener));
});

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
  expect(column('option', 0, 'default').sort()).toEqual(Object.keys(OPTIONS).sort());
});

/** Numbers with their unit: `60,000 ms`, `1,000`. */
const withUnit = (value: number, unit: string): string => [value.toLocaleString('en'), unit].join(' ').trim();

test('the numbers that the docstrings of options give as defaults are those of the code', () => {
  const numbers = Object.entries(resolveOptions('users', {}, {}))
    .flatMap(([name, value]) => (typeof value === 'number' ? [{ name, value }] : []));
  expect(numbers.length).toBeGreaterThan(10);
  for (const { name, value } of numbers) {
    const [, docstring = ''] = new RegExp(`/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n  ${name}\\?: `).exec(SOURCE) ?? [];
    const [, stated] = /Default:[\s*]+([\d,]*\d)/.exec(docstring) ?? [];
    expect([name, stated]).toEqual([name, value.toLocaleString('en')]);
  }
});

test('the defaults in the table of options are those of the code, with their units', () => {
  const resolved = Object.entries(resolveOptions('users', {}, {})).filter(([name]) => name !== 'accessLog');
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
        /(?:env\[|\benv, |\blistOf\()'([A-Z_]+)'|\{ ([A-Z_]+):[^}]*\}: NodeJS\.ProcessEnv/g,
      ),
    ].map((match) => match.slice(1).find((name) => name !== undefined) ?? ''),
  );
  read.delete('NO_COLOR');
  // What the export reads depends on what it finds.
  const endpoint: NodeJS.ProcessEnv = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector' };
  const get = (env: NodeJS.ProcessEnv, name: string): unknown => read.add(name) && Reflect.get(env, name);
  readVariables(new Proxy(endpoint, { get }), () => undefined);
  expect(column('variable').flatMap((cell) => cell.split(', ')).sort()).toEqual([...read].sort());
});

test('the table of the context is that of its members, both ways', () => {
  const source = readFileSync(join(ROOT, 'src/answer/context.ts'), 'utf8');
  const internal = [
    'constructor',
    ...[...source.matchAll(/@internal\s*\*\/\n {2}(?:static |readonly |get )*(\w+)/g)].map(([, name]) => name),
  ];
  const members = ['method', 'params', 'scope', ...Object.getOwnPropertyNames(Context.prototype)].filter(
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

test('the tables of the error body have the members of a reply in each form, both ways', async () => {
  const app = new Postern('users', { logger: false });
  const name = { '~standard': { version: 1, vendor: 'own', validate: () => ({ issues: [{ message: 'wrong' }] }) } };
  app.get('/', { query: name as StandardSchemaV1 }, () => 'never');
  for (const [header, accept] of [
    ['error body', 'application/json'],
    ['problem details', 'application/problem+json'],
  ] as const) {
    const body = (await (await app.request('/', { headers: { accept } })).json()) as object;
    const listed = column(header).flatMap((cell) => cell.split(', ').map((member) => member.replace(/\..*/, '')));
    expect([...new Set(listed)].sort(), header).toEqual(Object.keys(body).sort());
  }
});

test('the tables of metrics are those of a fresh application, both ways', async () => {
  const app = new Postern('users', { logger: false });
  const types = new Map(
    [...app.metrics.expose().matchAll(/^# TYPE (\S+) (\S+)/gm)].map(([, name = '', type = '']) => [name, type]),
  );
  const exposed = [...types.keys()];
  await app.close();
  const isOfProcess = (name: string): boolean => /^(?:process|nodejs)_/.test(name);
  expect(column('metric').sort()).toEqual(exposed.filter((name) => !isOfProcess(name)).sort());
  expect(column('metric of the process').sort()).toEqual(exposed.filter(isOfProcess).sort());
  const rows = readPage('docs/reference/metrics.md').split('\n');
  for (const [name, type] of types) {
    const row = rows.find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
    const [, , typeOfRow, labels] = row.split('|').map((cell) => cell.trim());
    expect([name, typeOfRow, labels]).toEqual([name, type, app.metrics.get(name)?.labelNames.join(', ')]);
  }
});

test('the page of metrics has those that every registry counts for itself', () => {
  const registry = new Registry({ maxSeries: 1 });
  const jobs = registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue'] });
  for (const queue of ['mail', 'print']) jobs.inc({ queue });
  registry.gauge({ name: 'broken', help: 'Throws.', collect() { throw new Error('no'); } });
  registry.expose();
  const own = [...registry.expose().matchAll(/^# TYPE (metrics_\S+)/gm)].map(([, name]) => name);
  expect(own).toHaveLength(2);
  for (const name of own) expect(readPage('docs/reference/metrics.md')).toContain(`- \`${name}\`, a counter`);
});

function membersOf(types: readonly string[]): (string | undefined)[] {
  const bodies = types.map((name) => new RegExp(`interface ${name}\\b[^{]*\{(.*?)^\}`, 'ms').exec(SOURCE)?.[1] ?? '');
  return bodies.flatMap((body) => [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, member]) => member));
}

test.for([
  ['health', ['HealthDocument']],
  ['metrics', ['MetricsDocument', 'ProcessUsage']],
  ['ping', ['PingDocument']],
  ['requests', ['RequestsDocument']],
  ['`postern.request`', ['RequestTraceMessage']],
  ['`postern.call`', ['CallTraceMessage']],
] as const)('the table "%s" has the members of the type, both ways', ([header, names]) => {
  const declared = membersOf(names);
  expect(declared.length).toBeGreaterThan(1);
  expect(column(header).filter((member) => !member.includes('.')).sort()).toEqual(declared.sort());
});

test('the table "access log" has the fields of its lines, both ways', async () => {
  const lines: object[] = [];
  const ignore = (): void => undefined;
  const info = (entry: object, msg?: string): void => void (msg === 'request' && lines.push(entry));
  const app = new Postern('users', { accessLog: true, logger: { debug: ignore, info, warn: ignore, error: ignore } });
  const arrived = new Promise<void>((resolve) => app.get('/', () => new Promise(() => resolve())));
  const { url } = await app.listen({ host: '127.0.0.1', port: 0 });
  // A request of another service, which a drain cuts off, has all of them.
  const asked = fetch(url, { headers: { 'user-agent': 'shop/1.0.0 postern/1.0.0' } }).catch(() => undefined);
  await arrived;
  await app.close({ timeout: 1 });
  await asked;
  expect(lines.map((line) => Object.keys(line).sort())).toEqual([column('access log').sort()]);
});

test.for([
  ['option of a route', ['GroupOptions', 'DeclaredOptions'], []],
  ['option of a call', ['ServiceRequestOptions'], []],
  ['option of an exporter', ['ListenerOptions', 'GatewayOptions'], []],
] as const)('the table "%s" has every option that is declared, both ways', ([header, types, others]) => {
  const declared = membersOf(types);
  const listed = column(header).flatMap((cell) => cell.split(', '));
  expect(listed.sort()).toEqual([...declared, ...others].sort());
});

test('the table of exporters is that of postern/gateway, both ways', () => {
  expect(column('exporter').sort()).toEqual(Object.keys(gateways).filter((name) => name.startsWith('to')).sort());
});

test('the table of log lines has each message in the code, both ways', () => {
  const calls = SOURCE.replace(/\$\{[^{}]*\}/g, '…').matchAll(/\b(?:logSafely|warn)\(((?:[^()]|\([^()]*\))*)\)/g);
  const texts = [...calls].flatMap(([, code = '']) =>
    [...code.replace(/\{[^{}]*\}/g, '').matchAll(/'([^'\n]+)'|`([^`\n]+)`/g)].map(
      ([, plain, text = '']) => plain ?? text,
    ),
  );
  const messages = [...new Set(texts)].filter((text) => !/^(?:debug|info|warn|error)$/.test(text));
  const rows = column('message', 0, 'level');
  expect(messages.filter((message) => !rows.some((row) => isAsPrinted(row, message)))).toEqual([]);
  const isLogged = (row: string): boolean => messages.some((message) => isAsPrinted(row, message));
  // A message that is not written where it is logged, but before.
  expect(rows.filter((row) => !isLogged(row) && !SOURCE.includes(row.replace(/…$/, '')))).toEqual([]);
});

test('every command of the command line has a row', () => {
  const help = execFileSync(process.execPath, [join(ROOT, 'dist/cli.js'), '--help'], { encoding: 'utf8' });
  const [, list = ''] = /^Commands:\n(.*?)^$/ms.exec(help) ?? [];
  const commands = [...list.matchAll(/^ {2}([\w-]+)/gm)].map(([, command]) => command);
  expect(commands.length).toBeGreaterThan(5);
  const listed = column('`npx postern …`').flatMap((cell) => cell.split(', ').map((each) => each.split(' ')[0]));
  expect(listed.sort()).toEqual(commands.sort());
});

test('every export has its place in the documents', () => {
  expect(Object.keys(entry).filter((name) => !PAGES.includes(name))).toEqual([]);
});

test('the command of the README is what continuous integration runs', () => {
  const command = 'npm install && npm test';
  expect(readPage('README.md')).toMatch(new RegExp(`^${command}$`, 'm'));
  expect(readFileSync(join(ROOT, '.ci/run'), 'utf8').trimEnd().split('\n').at(-1)).toBe(command);
});
