/** Deliberate faults, to measure tests: each is made in a copy of the repository, where a test has to find it. */

import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Mutant {
  readonly name: string;
  /** Below `src/`. */
  readonly file: string;
  /** Occurs once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Which test or invariant catches it. */
  readonly caughtBy: string;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COPIED = ['src', 'test', 'vitest.config.ts', 'package.json', 'tsconfig.json'];
const LINKED = ['node_modules', 'test/node_modules', 'dist'];

/**
 * Makes each fault in a copy of its own, and prints whether it is caught.
 *
 * @param only part of a name: the other mutants are left out. Default: all
 * @param search runs the tests of a copy; the result is what they found, `caughtBy` if they found the fault
 * @returns how many were not caught
 * @throws {Error} for a mutant that no longer applies
 */
export function measureMutants<M extends Mutant>(
  all: readonly M[],
  only: string | undefined,
  search: (mutant: M, root: string) => readonly string[],
): number {
  const mutants = all.filter(({ name }) => only === undefined || name.includes(only));
  let missed = 0;
  for (const mutant of mutants) {
    const root = copyWithFault(mutant);
    const found = search(mutant, root);
    rmSync(root, { recursive: true });
    const isCaught = found.includes(mutant.caughtBy);
    if (!isCaught) missed += 1;
    console.log(
      `${isCaught ? 'caught' : 'MISSED'}: ${mutant.name}${isCaught ? ` (${mutant.caughtBy})` : `; found instead: ${found[0] ?? 'nothing'}`}`,
    );
  }
  console.log(`${mutants.length - missed} of ${mutants.length} caught`);
  return missed;
}

function copyWithFault({ name, file, find, replace }: Mutant): string {
  const root = mkdtempSync(join(tmpdir(), 'postern-mutant-'));
  for (const path of COPIED)
    cpSync(join(ROOT, path), join(root, path), {
      recursive: true,
      filter: (from) => basename(from) !== 'node_modules',
    });
  for (const path of LINKED) symlinkSync(join(ROOT, path), join(root, path));
  const path = join(root, 'src', file);
  const source = readFileSync(path, 'utf8');
  if (source.split(find).length !== 2)
    throw new Error(`"${name}" no longer applies: ${file} must have this once: ${find}`);
  writeFileSync(path, source.replace(find, () => replace));
  return root;
}
