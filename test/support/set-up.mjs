/**
 * Prepares a machine for `npm test`: the programs that tests run, where they can be installed without a question (as
 * root on Debian or Ubuntu), and the libraries of test/package.json.
 *
 * With `CI` in the environment, a missing program is an error. Without it, tests that need the program are skipped.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findPrograms } from './programs.mjs';

const missing = () => findPrograms().flatMap((tag) => tag.missing);
const packages = [...new Set(missing().map(({ debianPackage }) => debianPackage))];

if (packages.length > 0 && process.getuid?.() === 0 && run('apt-get', ['--version'], 'ignore')) {
  console.log(`installing Debian packages: ${packages.join(' ')}`);
  const quiet = ['-y', '-qq', '--no-install-recommends'];
  const isInstalled = run('apt-get', ['update', '-qq']) && run('apt-get', ['install', ...quiet, ...packages]);
  if (!isInstalled) console.error('apt-get failed; tests that need these packages are skipped');
}
if (process.env.CI && missing().length > 0) {
  const lines = missing().map(({ program, debianPackage }) => `${program} (Debian package ${debianPackage})`);
  console.error(
    `programs that the tests need are missing: ${lines.join(', ')}; install them, or unset CI to skip their tests`,
  );
  process.exit(1);
}
const folder = fileURLToPath(new URL('..', import.meta.url));
const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8');
// What was installed last: `npm ci` would install it anew.
const installed = join(folder, 'node_modules/.installed-lock.json');
if (!existsSync(installed) || readFileSync(installed, 'utf8') !== lock) {
  if (!run('npm', ['ci', '--prefix', folder, '--no-audit', '--no-fund', '--loglevel', 'error'])) process.exit(1);
  writeFileSync(installed, lock);
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {'inherit' | 'ignore'} stdio
 */
function run(command, args, stdio = 'inherit') {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const stdout = command === 'apt-get' ? 'ignore' : stdio;
  return spawnSync(command, args, { env, stdio: ['ignore', stdout, stdio] }).status === 0;
}
