/** The packed package: the first file of a run that needs it packs it, for all. */

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writePagesInOneFile } from './generated-pages.js';
import { ROOT } from './markdown.js';
import { packedFolder } from './packed-folder.js';

export interface Packed {
  /** Its path. */
  readonly tarball: string;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/** Packs the package, or waits until another file has. */
export async function packPackage(): Promise<Packed> {
  const folder = packedFolder(process.ppid);
  const report = join(folder, 'packed.json');
  if (mkdirSync(folder, { recursive: true }) !== undefined) await pack(folder, report);
  while (!existsSync(report)) await new Promise((resolve) => setTimeout(resolve, 20));
  return JSON.parse(readFileSync(report, 'utf8')) as Packed;
}

async function pack(folder: string, report: string): Promise<void> {
  // `prepack` would build anew below the tests that run beside this one.
  writePagesInOneFile();
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { stdout } = await promisify(execFile)('npm', args, { cwd: ROOT, encoding: 'utf8' });
  // npm 10 prints a list, npm 11 an object by name.
  const packages = JSON.parse(stdout) as Record<string, Packed & { readonly filename: string }>;
  const [{ filename, ...packed }] = Object.values(packages) as [(typeof packages)[string]];
  writeFileSync(`${report}.new`, JSON.stringify({ ...packed, tarball: join(folder, filename) }));
  renameSync(`${report}.new`, report);
}
