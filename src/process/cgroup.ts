/**
 * Reads the limits that control groups set to this process, version 1 and 2.
 *
 * A group's limit holds for every group below it, so the tightest one on the way up counts.
 * Spec: Linux, "Control Group v2" (memory.max, cpu.max, cpu.stat); "CFS Bandwidth Control" for version 1.
 */
import { readText } from './proc-files.js';

/** How often the CPU quota stopped the group, since the group was made. */
export interface CpuThrottling {
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledSeconds: number;
}

/** A limit that isn't there is `undefined`. */
export interface CgroupLimits {
  readonly memoryBytes: number | undefined;
  /** The CPU quota in CPUs: 0.5 is half of one. */
  readonly cpus: number | undefined;
  /** Of the group whose quota is the tightest. */
  readonly throttling: CpuThrottling | undefined;
}

/** The groups of this process for one controller. */
export interface CgroupPath {
  readonly version: 1 | 2;
  /** From the process's own group up to the top that can be seen. */
  readonly directories: readonly string[];
}

/** Where a controller isn't to be found it is `undefined`. */
export interface CgroupPaths {
  readonly memory: CgroupPath | undefined;
  readonly cpu: CgroupPath | undefined;
}

/** @param root what stands in front of `/proc` and `/sys`, empty for the real ones */
export function findCgroups(root: string): CgroupPaths {
  const memberships = (readText(`${root}/proc/self/cgroup`) ?? '').split('\n').flatMap(parseMembership);
  const mounts = (readText(`${root}/proc/self/mountinfo`) ?? '').split('\n').flatMap(parseMount);
  const locate = (controller: string): CgroupPath | undefined => {
    const own =
      memberships.find(({ controllers }) => controllers.includes(controller)) ??
      memberships.find(({ controllers }) => controllers.length === 0);
    if (own === undefined) return undefined;
    const version = own.controllers.length === 0 ? 2 : 1;
    const mount = mounts.find(({ controllers }) =>
      version === 2 ? controllers.length === 0 : controllers.includes(controller),
    );
    return mount && { version, directories: ancestry(`${root}${mount.point}`, relativePath(own.path, mount.root)) };
  };
  return { memory: locate('memory'), cpu: locate('cpu') };
}

/** Limits may change while the process runs, so this reads the files anew each time. */
export function readCgroupLimits({ memory, cpu }: CgroupPaths): CgroupLimits {
  let memoryBytes: number | undefined;
  for (const directory of memory?.directories ?? []) {
    const bytes = readMemoryLimit(directory, memory?.version);
    if (bytes !== undefined && bytes < (memoryBytes ?? Infinity)) memoryBytes = bytes;
  }
  let cpus: number | undefined;
  let throttled: string | undefined;
  for (const directory of cpu?.directories ?? []) {
    const quota = readCpuQuota(directory, cpu?.version);
    if (quota === undefined || quota >= (cpus ?? Infinity)) continue;
    cpus = quota;
    throttled = directory;
  }
  return { memoryBytes, cpus, throttling: throttled === undefined ? undefined : readThrottling(throttled) };
}

interface Membership {
  /** Empty for version 2. */
  readonly controllers: readonly string[];
  readonly path: string;
}

interface Mount {
  /** The group that the mount shows as its top. */
  readonly root: string;
  readonly point: string;
  /** Empty for version 2. */
  readonly controllers: readonly string[];
}

/** Version 1 reports the largest multiple of the page size below 2^63 for "no limit", and some kernels 2^64. */
const UNLIMITED_BYTES = 2 ** 60;

/** // "4:memory:/docker/1f" → memory, /docker/1f; "0::/app" → version 2, /app */
function parseMembership(line: string): Membership[] {
  const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
  if (controllers === undefined || path === undefined) return [];
  return [{ controllers: controllers === '' ? [] : controllers.split(','), path }];
}

function parseMount(line: string): Mount[] {
  const [left = '', right = ''] = line.split(' - ');
  const [, , , root, point] = left.split(' ');
  const [type, , options = ''] = right.split(' ');
  if (root === undefined || point === undefined || (type !== 'cgroup' && type !== 'cgroup2')) return [];
  return [{ root: unescape(root), point: unescape(point), controllers: type === 'cgroup2' ? [] : options.split(',') }];
}

/** mountinfo writes blanks and the like as `\040`. */
function unescape(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** A container sees its own group mounted as the top, while its path may still be told from the host's top. */
function relativePath(path: string, mountRoot: string): string {
  const prefix = mountRoot === '/' ? '' : mountRoot;
  if (path.includes('/..') || (path !== prefix && !path.startsWith(`${prefix}/`))) return '';
  return path.slice(prefix.length).replace(/\/$/, '');
}

/** // "/sys/fs/cgroup", "/a/b" → /sys/fs/cgroup/a/b, /sys/fs/cgroup/a, /sys/fs/cgroup */
function ancestry(top: string, path: string): readonly string[] {
  const directories: string[] = [];
  for (let rest = path; rest !== ''; rest = rest.slice(0, rest.lastIndexOf('/'))) directories.push(top + rest);
  return [...directories, top];
}

function readMemoryLimit(directory: string, version: 1 | 2 | undefined): number | undefined {
  const bytes = Number(readText(`${directory}/${version === 2 ? 'memory.max' : 'memory.limit_in_bytes'}`) ?? NaN);
  return bytes > 0 && bytes < UNLIMITED_BYTES ? bytes : undefined;
}

function readCpuQuota(directory: string, version: 1 | 2 | undefined): number | undefined {
  const text =
    version === 2
      ? readText(`${directory}/cpu.max`)
      : `${readText(`${directory}/cpu.cfs_quota_us`)} ${readText(`${directory}/cpu.cfs_period_us`)}`;
  const [quota = NaN, period = NaN] = (text ?? '').trim().split(/\s+/).map(Number);
  return quota > 0 && period > 0 ? quota / period : undefined;
}

function readThrottling(directory: string): CpuThrottling | undefined {
  const text = readText(`${directory}/cpu.stat`);
  if (text === undefined) return undefined;
  const numbers = new Map(text.split('\n').map((line) => [line.split(' ')[0], Number(line.split(' ')[1])]));
  const seconds = (numbers.get('throttled_usec') ?? 0) / 1e6 + (numbers.get('throttled_time') ?? 0) / 1e9;
  return {
    periods: numbers.get('nr_periods') ?? 0,
    throttledPeriods: numbers.get('nr_throttled') ?? 0,
    throttledSeconds: seconds,
  };
}
