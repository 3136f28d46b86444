/** Runs a recipe of docs/recipes.md: its block, as a process of its own. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';
import { onTestFinished } from 'vitest';
import * as entry from 'postern';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'docs/recipes.md'), 'utf8');
const SECTIONS = [...PAGE.matchAll(/^## ([^\n]*)$.*?^```(?:ts|nginx)\n(.*?)^```$/gms)];
const RECIPES: ReadonlyMap<string, string> = new Map(SECTIONS.map(([, heading = '', code = '']) => [heading, code]));

/** The headings of the recipes, in their order. */
export const HEADINGS: readonly string[] = [...PAGE.matchAll(/^## (.*)$/gm)].map(([, heading = '']) => heading);

/** A recipe that runs. */
export interface RunningRecipe {
  readonly url: string;
  readonly port: number;
  /** What it has logged; it never changes. */
  readonly log: readonly string[];
  /** Asks it to drain, and resolves to its exit code: 0 unless something had to be cut. */
  stop(): Promise<number | null>;
}

/** The block behind a heading. */
export function recipe(heading: string): string {
  const code = RECIPES.get(heading);
  if (code === undefined) throw new Error(`no recipe ${JSON.stringify(heading)}; there is ${HEADINGS.join(', ')}`);
  return code;
}

/**
 * Starts a recipe; it is killed when the test ends.
 *
 * @param more what the recipe leaves to its reader, and what a test has to see
 */
export async function startRecipe(
  heading: string,
  { more = '', env = {} }: { more?: string; env?: Record<string, string> } = {},
): Promise<RunningRecipe> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-recipe-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules'));
  // The test gives what a reader would put in the place of such a line.
  const own = more === '' ? recipe(heading) : recipe(heading).replace(/^const .* \/\/ yours\n/gm, '');
  // JavaScript for every version of Node.js; `programs.test.ts` checks the types.
  const { code } = await transformWithOxc(`${own}${more}`, 'recipe.ts', { target: 'es2022', tsconfig: false });
  const libraries = [...code.matchAll(/from "((?!postern)[a-z]+)";$/gm)].map(([, name = '']) => name);
  for (const name of libraries) symlinkSync(join(ROOT, 'test/node_modules', name), join(folder, 'node_modules', name));
  symlinkSync(ROOT, join(folder, 'node_modules/postern'));
  const imported = /import \{([^}]*)\} from "postern"/.exec(code)?.[1] ?? '';
  const names = Object.keys(entry)
    .filter((name) => new RegExp(`(?<![.\\w'])${name}\\(`).test(more) && !imported.split(/[ ,]+/).includes(name));
  const begin = names.length === 0 ? '' : `import { ${names.join(', ')} } from 'postern';\n`;
  writeFileSync(join(folder, 'recipe.mjs'), `${begin}${code}\nawait app.run();\n`);

  const variables = { ...process.env, HOST: '127.0.0.1', PORT: '0', DRAIN_DELAY: '0', ...env };
  const child = spawn(process.execPath, ['recipe.mjs'], {
    cwd: folder,
    env: variables,
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const log: string[] = [];
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`it ended before it was listening:\n${log.join('\n')}`)));
    createInterface(child.stderr).on('line', (line) => {
      log.push(line);
      if (line.includes('"msg":"listening"')) resolve((JSON.parse(line) as { port: number }).port);
    });
  });
  return { url: `http://127.0.0.1:${port}`, port, log, stop: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<number | null> {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  const [code] = (await closed) as [number | null];
  return code;
}
