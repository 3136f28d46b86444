/**
 * What an installation of each framework adds to a service: packages, files and bytes; and Postern's own tarball.
 */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { printTable } from '../harness/report.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PEERS = fileURLToPath(new URL('..', import.meta.url));

/** What a service installs, by name. */
const INSTALLS = {
  polka: ['polka'],
  restana: ['restana'],
  h3: ['h3'],
  hono: ['hono', '@hono/node-server'],
  koa: ['koa', '@koa/router', '@koa/bodyparser'],
  express: ['express'],
  fastify: ['fastify'],
  'prom-client': ['prom-client'],
  'express + prom-client': ['express', 'prom-client'],
  'fastify + fastify-metrics': ['fastify', 'fastify-metrics'],
};

export async function size() {
  const results = [
    tarball(),
    ...Object.entries(INSTALLS).map(([name, packages]) => ({ name, ...installed(packages) })),
  ];
  results.sort((a, b) => a.bytes - b.bytes);
  printTable(
    'size of an installation',
    ['', 'packages', 'files', 'kB'],
    results.map(({ name, packages, files, bytes }) => [
      name,
      String(packages),
      String(files),
      (bytes / 1000).toFixed(1),
    ]),
  );
  return results;
}

/** Postern as it would be packed now; `dist` and `docs/llms.txt` are taken as they are. */
function tarball() {
  const [{ unpackedSize, entryCount }] = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  );
  return { name: 'postern', packages: 1, files: entryCount, bytes: unpackedSize };
}

/**
 * The closure of some packages, as installed beside this file.
 *
 * @param {readonly string[]} names
 */
function installed(names) {
  const { packages } = JSON.parse(readFileSync(join(PEERS, 'package-lock.json'), 'utf8'));
  /** @type {Set<string>} */
  const closure = new Set();
  const visit = (place) => {
    if (place === undefined || closure.has(place)) return;
    closure.add(place);
    const {
      dependencies = {},
      optionalDependencies = {},
      peerDependencies = {},
      peerDependenciesMeta = {},
    } = packages[place];
    const required = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
    for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...required])
      visit(resolveFrom(place, name, packages));
  };
  for (const name of names) visit(`node_modules/${name}`);
  let files = 0;
  let bytes = 0;
  for (const place of closure) {
    for (const file of filesOf(join(PEERS, place))) {
      files += 1;
      bytes += statSync(file).size;
    }
  }
  return { packages: closure.size, files, bytes };
}

/** Where Node.js finds a package that another one asks for. */
function resolveFrom(place, name, packages) {
  for (let folder = place; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const candidate = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (candidate in packages) return candidate;
    if (folder === '') return undefined;
  }
}

/** The files of one package, without those of packages inside it. */
function filesOf(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === 'node_modules') return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesOf(path) : [path];
  });
}
