import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^postern$/, replacement: source('index.ts') },
      { find: /^postern\/metrics$/, replacement: source('metrics.ts') },
      { find: /^postern\/gateway$/, replacement: source('gateway.ts') },
      { find: /^postern\/openapi$/, replacement: source('openapi.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/example/**'],
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 30_000,
  },
});
