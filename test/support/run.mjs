/**
 * Runs a program in TypeScript on every version of Node.js, with `postern` from `src`: `node test/support/run.mjs FILE
 * [OPTION]...`
 */

import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { ALIASES } from './aliases.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const config = { configFile: false, root, resolve: { alias: ALIASES }, logLevel: 'warn' };
await runnerImport(resolve(process.argv[2]), config);
