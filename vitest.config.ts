import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { MissingPrograms } from './test/support/missing-programs.js';
import { findPrograms } from './test/support/programs.mjs';

const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

/** A test file with a tag needs more than `src`: a program, the build, libraries of test/package.json, or a minute. */
function findTaggedFiles(): string[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((file) => /(?<!node_modules.*)\.test\.ts$/.test(file));
  return files.map((file) => `test/${file}`).filter((file) => readFileSync(file, 'utf8').includes('@module-tag'));
}

export default defineConfig(({ mode }) => ({
  resolve: {
    alias: [
      { find: /^postern$/, replacement: source('index.ts') },
      { find: /^postern\/metrics$/, replacement: source('entry/metrics.ts') },
      { find: /^postern\/gateway$/, replacement: source('entry/gateway.ts') },
      { find: /^postern\/openapi$/, replacement: source('entry/openapi.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/starter/**', ...(mode === 'fast' ? findTaggedFiles() : [])],
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 30_000,
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
