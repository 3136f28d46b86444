/**
 * Installs the peers when they are not there, or not those of the lock file.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('..', import.meta.url));

/** @throws {Error} when npm fails */
export function installPeers() {
  const installed = `${FOLDER}node_modules/.package-lock.json`;
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(`${FOLDER}package-lock.json`).mtimeMs) return;
  console.log('Installing the peers of bench/package-lock.json.');
  // Two peers ask for a later Node.js than 20 and run there all the same: their warnings would tell nothing.
  const { status } = spawnSync('npm', ['ci', '--prefix', FOLDER, '--no-audit', '--no-fund', '--loglevel', 'error'], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the peers could not be installed');
}

/** Builds Postern unless it is built. */
export function buildPostern() {
  const root = `${FOLDER}..`;
  if (existsSync(`${root}/dist/index.js`)) return;
  console.log('Building Postern.');
  const { status } = spawnSync('npm', ['run', 'build', '--prefix', root], { stdio: 'inherit' });
  if (status !== 0) throw new Error('Postern could not be built');
}
