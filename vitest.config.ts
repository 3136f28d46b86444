import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { ALIASES } from './test/support/aliases.mjs';
import { MissingPrograms } from './test/support/missing-programs.js';
import { PATIENCE_MS } from './test/support/patience.js';
import { findPrograms } from './test/support/programs.mjs';

/** All test files. `readdirSync` with `recursive` would go through the libraries, too. */
const TESTS = ['.', ...readdirSync('test').filter((name) => !name.includes('.') && name !== 'node_modules')]
  .flatMap((folder) => readdirSync(`test/${folder}`).map((name) => join('test', folder, name)))
  .filter((file) => file.endsWith('.test.ts'));

/** A test file with a tag needs more than `src`: a program, the build, libraries of test/package.json, or seconds. */
function findFilesWith(tag: string): string[] {
  return TESTS.filter((file) => readFileSync(file, 'utf8').includes(`@module-tag${tag}`));
}

/**
 * What changes a process for the tests after it: replaced modules and clocks, hooks, flags. Spies, variables, globals
 * and listeners are taken back when their test ends. A process may emit a warning only once. Its profiles and snapshots
 * (`diagnostics`) have all that was loaded in it before.
 */
const CHANGE = new RegExp(
  [
    String.raw`\bvi\.(?!(?:fn|spyOn|restoreAllMocks|(?:un)?stub\w+)\b)`,
    String.raw`process\.(?:emit|chdir|on\('warning')`, String.raw`process\.env\S* =`,
    "node:(?:async_hooks|diagnostics_channel|v8)'", 'support/growth', String.raw`/explore\.js`, 'diagnostics: true',
  ].join('|'),
);
/**
 * Files whose tests leave their process as it was. They run in it one after the other: its start would take most of
 * their time.
 */
const SHARING: ReadonlySet<string> = new Set(TESTS.filter((file) => !CHANGE.test(readFileSync(file, 'utf8'))));
const isSharing = (file: string): boolean => SHARING.has(file);

/** The test files that run. */
function filesOf(mode: string): string[] {
  const tagged = new Set(mode === 'fast' ? findFilesWith('') : []);
  return TESTS.filter((file) => !tagged.has(file));
}

/**
 * Starts slow files first, so that no worker is alone with one at the end. Files that share a process follow each other:
 * it ends when another file is next.
 */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const pathsOf = (names: Iterable<string>): Set<string> => new Set([...names].map((name) => resolve(name)));
    const [slow, sharing] = [pathsOf(findFilesWith(' slow')), pathsOf(SHARING)];
    const rank = ({ moduleId: file }: TestSpecification): number =>
      sharing.has(file) ? (slow.has(file) ? 1 : 2) : slow.has(file) ? 0 : 3;
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig(({ mode }) => ({
  resolve: { alias: ALIASES },
  test: {
    // A project that extends this configuration does not know the mode.
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: filesOf(mode).filter(isSharing),
          isolate: false,
          restoreMocks: true,
          unstubEnvs: true,
          unstubGlobals: true,
        },
      },
      { extends: true, test: { name: 'alone', include: filesOf(mode).filter((file) => !isSharing(file)) } },
    ],
    // Tests make many objects that live for one request: to collect them would take a tenth of the CPU time.
    execArgv: ['--max-semi-space-size=64'],
    globalSetup: ['test/support/packed-folder.ts'],
    setupFiles: ['test/support/setup.ts'],
    testTimeout: PATIENCE_MS + 10_000,
    hookTimeout: PATIENCE_MS + 10_000,
    expect: { poll: { timeout: PATIENCE_MS, interval: 10 } },
    // Vitest leaves one core to itself, which on two cores is half of them; and many tests wait rather than compute.
    maxWorkers: Math.max(4, availableParallelism() - 1),
    sequence: { sequencer: SlowFirst },
    reporters: ['default', new MissingPrograms()],
    tags: [
      { name: 'package', description: 'needs the built package, or libraries of test/package.json' },
      { name: 'slow', description: 'takes seconds' },
      ...findPrograms().map(({ tag, missing }) => ({
        name: tag,
        description: `runs ${tag}`,
        skip: missing.length > 0 && !process.env['CI'],
      })),
    ],
  },
}));
