/**
 * Runs a program in TypeScript on every version of Node.js, with `postern` from `src`: `node test/support/run.mjs FILE
 * [OPTION]...`
 */

import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfigFromFile, runnerImport } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { config } = await loadConfigFromFile({ command: 'serve', mode: 'test' }, resolve(root, 'vitest.config.ts'));
await runnerImport(resolve(process.argv[2]), { root, resolve: config.resolve, logLevel: 'warn' });
