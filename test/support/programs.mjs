/**
 * Programs that tests run, by the tag of those tests, each with the Debian package that has it: `test/programs.json`.
 */

import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** @type {Record<string, Record<string, string>>} */
const PROGRAMS = JSON.parse(readFileSync(new URL('../programs.json', import.meta.url), 'utf8'));
// Debian keeps servers out of the PATH of ordinary users.
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];

/**
 * @returns {{ tag: string, missing: { program: string, debianPackage: string }[] }[]} each tag, with what it lacks here
 */
export function findPrograms() {
  return Object.entries(PROGRAMS).map(([tag, programs]) => ({
    tag,
    missing: Object.entries(programs)
      .filter(([program]) => !FOLDERS.some((folder) => isExecutable(join(folder, program))))
      .map(([program, debianPackage]) => ({ program, debianPackage })),
  }));
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
