/*
 * Reads the files of this process under /proc, on Linux; on other systems nothing is found.
 *
 * Spec: proc(5).
 */

import { builtin } from '../base/builtin.js';

/** A text file's content, or `undefined` where it can't be read. */
export function readText(path: string): string | undefined {
  try {
    return builtin('node:fs').readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Values of /proc/self/status. */
export interface ProcStatus {
  readonly virtualBytes: number | undefined;
  /** Data, heap and private mappings. */
  readonly dataBytes: number | undefined;
  /** CPUs that the process may be scheduled on. */
  readonly cpus: number | undefined;
}

/** @param root prefix of `/proc`; empty for the real directory */
export function readStatus(root: string): ProcStatus {
  const text = readText(`${root}/proc/self/status`) ?? '';
  const list = /^Cpus_allowed_list:\s*([\d,-]+)/m.exec(text)?.[1];
  return {
    virtualBytes: kibibytes(text, 'VmSize'),
    dataBytes: kibibytes(text, 'VmData'),
    cpus: list === undefined ? undefined : countCpus(list),
  };
}

/** File descriptors that are open, without the one that counting them takes. */
export function countOpenFiles(root: string): number | undefined {
  try {
    return Math.max(0, builtin('node:fs').readdirSync(`${root}/proc/self/fd`).length - 1);
  } catch {
    return undefined;
  }
}

/** The soft limit of open file descriptors; infinite where there is none. */
export function readMaxFiles(root: string): number | undefined {
  const limit = /^Max open files\s+(\d+|unlimited)/m.exec(readText(`${root}/proc/self/limits`) ?? '')?.[1];
  if (limit === undefined) return undefined;
  return limit === 'unlimited' ? Infinity : Number(limit);
}

function kibibytes(text: string, name: string): number | undefined {
  const value = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1];
  return value === undefined ? undefined : Number(value) * 1024;
}

/** // "0-3,8" → 5 */
function countCpus(list: string): number {
  return list.split(',').reduce((count, range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return count + last - first + 1;
  }, 0);
}
