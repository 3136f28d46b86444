/*
 * Reads what Linux reports of this process: files under /proc, and the limits of its control groups, version 1 and 2.
 * On other systems nothing is found.
 *
 * A group's limit holds for every group below it, so the tightest one on the way up counts.
 * Spec: proc(5); "Control Group v2" (memory.max, cpu.max); "CFS Bandwidth Control" for version 1.
 */

import { builtin } from '../base/builtin.js';

/** A limit that isn't there is infinite. */
export interface CgroupLimits {
  readonly memoryBytes: number;
  /** The CPU quota in CPUs: 0.5 is half of one. */
  readonly cpus: number;
}

/**
 * Limits may change while the process runs, so this reads the files anew each time.
 *
 * @param root prefix of `/proc` and `/sys`; empty for the real directories
 */
export function readCgroupLimits(root: string): CgroupLimits {
  return {
    memoryBytes: Math.min(...findCgroups(root, 'memory').map(readMemoryLimit)),
    cpus: Math.min(...findCgroups(root, 'cpu').map(readCpuQuota)),
  };
}

/**
 * Directories of the groups that this process is in, from its own up to the topmost that can be seen; or none. A
 * container sees its own group as the topmost, but its path may be the path on the host: those directories are missing.
 */
function findCgroups(root: string, controller: 'memory' | 'cpu'): readonly string[] {
  const text = readText(`${root}/proc/self/cgroup`) ?? '';
  // Version 1: "4:memory:/docker/1f" or "1:cpu,cpuacct:/docker/1f". Version 2: "0::/app".
  const first = new RegExp(`^\\d+:(?:[^:]+,)?${controller}(?:,[^:]+)?:(.*)$`, 'm').exec(text);
  const [, path] = first ?? /^0::(.*)$/m.exec(text) ?? [];
  if (path === undefined) return [];
  const top = `${root}/sys/fs/cgroup${first === null ? '' : `/${controller}`}`;
  const directories: string[] = [];
  // A group outside of the namespace: "/../other".
  let rest = path.includes('/..') ? '' : path.replace(/\/$/, '');
  for (; rest !== ''; rest = rest.slice(0, rest.lastIndexOf('/'))) directories.push(top + rest);
  return [...directories, top];
}

/** Version 1 reports the largest multiple of the page size below 2^63 for "no limit", and some kernels 2^64. */
const UNLIMITED_BYTES = 2 ** 60;

/** Infinite without a limit. */
function readMemoryLimit(directory: string): number {
  const bytes = Number(readText(`${directory}/memory.max`) ?? readText(`${directory}/memory.limit_in_bytes`));
  return bytes > 0 && bytes < UNLIMITED_BYTES ? bytes : Infinity;
}

/** Infinite without a quota. */
function readCpuQuota(directory: string): number {
  const text =
    readText(`${directory}/cpu.max`) ??
    `${readText(`${directory}/cpu.cfs_quota_us`)} ${readText(`${directory}/cpu.cfs_period_us`)}`;
  const [quota = NaN, period = NaN] = text.split(' ').map(Number);
  return quota > 0 && period > 0 ? quota / period : Infinity;
}

/** A text file's content, or `undefined` where it can't be read. */
function readText(path: string): string | undefined {
  try {
    return builtin('node:fs').readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Values of /proc/self/status: virtual memory; data, heap and private mappings; number of CPUs that the process may be
 * scheduled on.
 *
 * @param root prefix of `/proc`; empty for the real directory
 */
export function readStatus(root: string): Readonly<Record<'virtualBytes' | 'dataBytes' | 'cpus', number | undefined>> {
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
