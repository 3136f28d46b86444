/* `postern new`: writes a service to start from. */

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FRAMEWORK_VERSION } from '../base/version.js';
import { defineCommand, text, UsageError, type Command } from './command.js';
import { toVisible } from './output.js';

const usage = `Usage: postern new DIR [--name NAME]

Writes a service to start from into a new or empty folder, which may be a git
repository: TypeScript that Node.js 22.18 or later runs directly, with tests, a
Dockerfile and a workflow.

  --name NAME  the name of the service. Default: the name of the folder
`;

/** The name that the service has in the files of `starter`. */
const PLACEHOLDER = /\bservice-name\b/g;

export const newService: Command = defineCommand(usage, 'DIR', { name: text }, async (values, folder) => {
  const target = resolve(folder);
  const name = values.name ?? basename(target);
  if (!/^[a-z0-9][a-z0-9._~-]{0,213}$/.test(name)) {
    const remedy = values.name === undefined ? 'give one with --name' : 'use lower-case letters, digits and . _ ~ -';
    throw new UsageError(`${JSON.stringify(name)} cannot be the name of a service; ${remedy}`);
  }
  if (existsSync(target) && readdirSync(target).some((entry) => entry !== '.git'))
    throw new UsageError(`DIR is ${JSON.stringify(folder)}, which is not empty; give a new folder`);
  write(target, name);
  return { text: `${toVisible(name)} is in ${toVisible(folder)}. Next:\n\n  cd ${toVisible(folder)}\n  npm install\n  npm test\n  npm run dev\n` };
});

function write(target: string, name: string): void {
  // The build copies the folder next to the bundle.
  const starter = fileURLToPath(new URL('starter', import.meta.url));
  for (const file of readdirSync(starter, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const source = join(file.parentPath, file.name);
    // npm leaves a file of this name out of every package.
    const path = join(target, relative(starter, source).replace(/^gitignore$/, '.gitignore'));
    const text = readFileSync(source, 'utf8').replace(PLACEHOLDER, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text.replace(/("postern": ")[^"]*/, `$1^${FRAMEWORK_VERSION}`));
  }
}
