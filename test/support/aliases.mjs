/** `postern` and its other entry points are those of `src`, for Vitest and for programs in TypeScript. */

import { fileURLToPath } from 'node:url';

const FILES = ['index', 'metrics', 'gateway', 'openapi'];

export const ALIASES = FILES.map((file) => ({
  find: new RegExp(`^postern${file === 'index' ? '' : `/${file}`}$`),
  replacement: fileURLToPath(new URL(`../../src/${file}.ts`, import.meta.url)),
}));
