/** The shape of `src`: one folder stands on one floor, imports lead down, and no file holds state of a process. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

/** From the ground up. A file imports from its own folder and from lower floors. */
const FLOORS = [
  'base', 'metrics', 'payload', 'propagation', 'story', 'endpoint', 'routing', 'process', 'wire', 'mesh', 'overload', 'answer',
  'job', 'gateway', 'openapi', 'otlp', 'monitor', 'app', 'live', 'cli', 'doors',
];
/** What users import or run: nothing but named re-exports, or the call of `main`. */
const DOORS = ['index', 'metrics', 'gateway', 'openapi', 'cli'];

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replaceAll('\\', '/').slice(0, -3));
const sourceOf = (file: string): string => readFileSync(join(SRC, `${file}.ts`), 'utf8');
const imports = new Map(files.map((file) => [file, importsOf(file)]));

function importsOf(file: string): string[] {
  return [...sourceOf(file).matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, target = '']) =>
    normalize(join(dirname(file), target))
      .replaceAll('\\', '/')
      .replace(/\.js$/, ''),
  );
}

function floorOf(file: string): number {
  return FLOORS.indexOf(DOORS.includes(file) ? 'doors' : dirname(file));
}

test.for(files)('%s stands on a floor and imports from its folder or from below', (file) => {
  expect(floorOf(file), 'a floor').toBeGreaterThanOrEqual(0);
  for (const target of imports.get(file) ?? []) {
    expect(files, `${file} imports ${target}`).toContain(target);
    if (DOORS.includes(file) || dirname(target) !== dirname(file))
      expect(floorOf(target), `${file} imports ${target}`).toBeLessThan(floorOf(file));
  }
});

test('there are no cycles', () => {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    expect(path, `${[...path, file].join(' → ')}`).not.toContain(file);
    if (done.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
});

test('every file is imported by its literal path, so that bundlers, loaders and test runners find it', () => {
  for (const file of files) {
    const code = sourceOf(file).replace(/\/\*[^]*?\*\/|^ *\/\/.*$/gm, '');
    // `cli/module.ts` imports the module of the user's that a command names.
    if (file !== 'cli/module') expect(code, file).not.toMatch(/\bimport\((?!')/);
    expect(code, file).not.toMatch(/\bcreateRequire\b|\brequire\(/);
  }
});

test('only the export of telemetry, the watcher of the event loop and commands are loaded after the start', () => {
  const loaders = files.filter((file) => !file.startsWith('cli/') && /\bimport\('\./.test(sourceOf(file)));
  expect(loaders).toEqual(['app/app']);
  expect(sourceOf('app/app').match(/\bimport\('[^']+'\)/g)).toEqual([
    "import('../process/blocked-loop.js')",
    "import('../otlp/export.js')",
  ]);
});

test('docs/architecture.md has every floor in order, files that exist, and at most 30 words', () => {
  const page = readFileSync(join(SRC, '../docs/architecture.md'), 'utf8');
  const column = (heading: string): string[] => {
    const [, table = ''] = new RegExp(`^## ${heading}$(.*?)(?=^## |$(?![^]))`, 'ms').exec(page) ?? [];
    return [...table.matchAll(/^\| (.*?) \|/gm)].map(([, cell = '']) => cell.replaceAll('`', '')).slice(2);
  };
  expect(column('Floors')).toEqual(FLOORS);
  expect(column('Words').length).toBeGreaterThan(10);
  expect(column('Words').length).toBeLessThanOrEqual(30);
  expect(column('Words')).toEqual(column('Words').sort());
  const named = [...page.matchAll(/`(?:src\/)?([a-z-]+(?:\/[a-z-]+)?)\.ts`/g)].map(([, file = '']) => file)
    .filter((file) => file.includes('/') || DOORS.includes(file));
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((file) => !files.includes(file))).toEqual([]);
});

test.for(DOORS)('the door %s defines nothing', (file) => {
  const code = sourceOf(file).replace(/^(?:#!|\/\/\/).*\n/, '').replace(/\/\*[^]*?\*\/\n?/g, '')
    .replace(/^export (?:type )?(?:\*|\{[^}]*\}) from '[^']+';\n/gm, '');
  expect(code.trim()).toMatch(
    file === 'cli' ? /^import \{ main \} from '[^']+';\n+void main\(process\.argv\.slice\(2\)\);$/ : /^$/,
  );
});

test('nothing is imported but files of ours and modules of Node.js', () => {
  for (const file of files) {
    for (const [, target = ''] of sourceOf(file).matchAll(/^(?:import|export)\b[^'"]*\bfrom '([^']+)'/gm))
      expect(target, file).toMatch(/^(?:\.|node:)/);
  }
});

test('node:http is not imported, which would load undici, TLS and HTTP/2 into each service from Node.js 22 on', () => {
  for (const file of files) expect(sourceOf(file), file).not.toMatch(/^(?:import|export) (?!type )[^'";(]*'node:https?'/m);
});

test('the script of the live page imports only files of the page, so the build makes one file of it', () => {
  const script = new Set(['live/live-script']);
  for (const file of script) {
    for (const target of imports.get(file) ?? []) script.add(target);
    expect(sourceOf(file), file).not.toMatch(/\bfrom '(?!\.\/[\w-]+\.js')/);
  }
  expect(script.size).toBeGreaterThan(3);
  expect([...script]).not.toContain('live/live-server');
});

test('lines have at most 120 columns, but for a text or a pattern that is longer by itself', () => {
  for (const folder of ['src', 'test', 'bench']) {
    for (const { name, parentPath } of readdirSync(join(SRC, '..', folder), { recursive: true, withFileTypes: true })) {
      if (parentPath.includes('node_modules') || !/\.m?[jt]s$/.test(name)) continue;
      for (const line of readFileSync(join(parentPath, name), 'utf8').split('\n'))
        if (!/(['"`/]).{40,}\1/.test(line)) expect(line.length, `${name}: ${line}`).toBeLessThanOrEqual(120);
    }
  }
});

test('no file holds mutable state of a process, and none is a folder of leftovers', () => {
  for (const file of files) {
    expect(sourceOf(file), file).not.toMatch(/^(?:export )?let /m);
    expect(relative('.', file), file).not.toMatch(/(?:^|\/)(?:utils?|helpers?|types|constants|index)$(?<!^index)/);
  }
});

/** Modules of the live page run in a browser. */
const PAGE = new Set(files.filter((file) => file.startsWith('live/') && file !== 'live/live-server'));
const TIME_AND_CHANCE =
  /(?<![.\w'-])(?:(?:set|clear)(?:Timeout|Interval|Immediate)|queueMicrotask|nextTick|performance|Date|random\w*|getRandomValues)(?=[.(),;]|\b(?! *[?:|]))|process\.nextTick|Math\.random|'node:timers[^']*'/g;

test.for(files.filter((file) => file !== 'base/clock' && !PAGE.has(file)))(
  '%s takes time and chance from base/clock',
  (file) => {
    const source = sourceOf(file);
    const [, imported = ''] = /import \{([^}]*)\} from '[^']*\/clock\.js';/.exec(source) ?? [];
    const code = source.replace(/\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm, '')
      .replace(/^import [^]*?;$/gm, (line) => (line.includes("'node:") ? line : ''));
    const taken = new Set(imported.match(/\w+/g));
    expect([...code.matchAll(TIME_AND_CHANCE)].map(([name]) => name).filter((name) => !taken.has(name))).toEqual([]);
  },
);
