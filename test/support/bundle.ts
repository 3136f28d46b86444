/** Postern in one file, with another clock. */

import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import type { SimulatedClock } from './simulated-clock.js';

export const SOURCE: string = fileURLToPath(new URL('../../src', import.meta.url));

/** Loads it at once: a file that is read while a world runs takes real time. @param root the folder of the source */
export async function loadWith(clock: SimulatedClock, root = SOURCE): Promise<typeof import('postern')> {
  const outDir = mkdtempSync(join(tmpdir(), 'postern-simulation-'));
  Object.assign(globalThis, { simulatedClock: clock });
  const virtual = `export const { ${Object.keys(clock).join()} } = globalThis.simulatedClock;`;
  const plugin = { name: 'clock', load: (id: string) => (id.endsWith('/base/clock.ts') ? virtual : undefined) };
  const output = { entryFileNames: 'postern.mjs', codeSplitting: false };
  const rolldownOptions = { input: join(root, 'index.ts'), external: /^node:/, output };
  const options = { ssr: true, outDir, minify: false, target: 'node20', rolldownOptions };
  await build({ configFile: false, logLevel: 'error', root, plugins: [plugin], build: options });
  // By Node.js itself: `import` in a program that `run.mjs` runs would have Vite transform all of it again.
  const postern = createRequire(import.meta.url)(join(outDir, 'postern.mjs')) as typeof import('postern');
  rmSync(outDir, { recursive: true });
  return postern;
}
