/** The shape of `src`: imports form floors without cycles, and no file holds state of a process. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

/** From the ground up; a file imports from lower floors, or from its own folder on its own floor. */
const FLOORS: readonly (readonly RegExp[])[] = [
  [/^errors$/, /^version$/, /^log$/, /^deadline$/],
  [/^metrics\//, /^payload\//],
  [/^routing\//, /^process\//, /^http\/(reply|error-mapper|request|body|client-address|in-memory)$/],
  [/^mesh\//, /^gateway\//],
  [/^http\/context$/],
  [/^http\/(connection|server)$/, /^pipeline\/tracing$/],
  [/^monitor\//],
  [/^pipeline\/(endpoint|exchange|failure-log)$/],
  [/^pipeline\/pipeline$/, /^app\/(options|route-group)$/],
  [/^app\/app$/],
  [/^index$/, /^metrics$/, /^gateway$/, /^cli\/demo-mesh$/],
  [/^cli\//],
  [/^cli$/],
];

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replaceAll('\\', '/').slice(0, -3));
const imports = new Map(files.map((file) => [file, importsOf(file)]));

function importsOf(file: string): string[] {
  const text = readFileSync(join(SRC, `${file}.ts`), 'utf8');
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, target = '']) => normalize(join(dirname(file), target)).replaceAll('\\', '/').replace(/\.js$/, ''));
}

function floorOf(file: string): number {
  return FLOORS.findIndex((patterns) => patterns.some((pattern) => pattern.test(file)));
}

test.for(files)('%s stands on a floor and imports from below', (file) => {
  expect(floorOf(file), 'a floor').toBeGreaterThanOrEqual(0);
  for (const target of imports.get(file) ?? []) {
    expect(files, `${file} imports ${target}`).toContain(target);
    const sameFolder = dirname(target) === dirname(file) && dirname(file) !== '.';
    if (!(sameFolder && floorOf(target) === floorOf(file))) expect(floorOf(target), `${file} imports ${target}`).toBeLessThan(floorOf(file));
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

test('nothing is imported but files of ours and modules of Node.js', () => {
  for (const file of files) {
    const text = readFileSync(join(SRC, `${file}.ts`), 'utf8');
    for (const [, target = ''] of text.matchAll(/^(?:import|export)\b[^'"]*\bfrom '([^']+)'/gm)) expect(target, file).toMatch(/^(?:\.|node:)/);
  }
});

test('no file holds mutable state of a process, and none is a folder of leftovers', () => {
  for (const file of files) {
    expect(readFileSync(join(SRC, `${file}.ts`), 'utf8'), file).not.toMatch(/^(?:export )?let /m);
    expect(relative('.', file), file).not.toMatch(/(?:^|\/)(?:utils?|helpers?|types|constants|index)$(?<!^index)/);
  }
});
