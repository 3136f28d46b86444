import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { readCgroupLimits, type CgroupLimits } from '../../src/process/linux.js';

const roots: string[] = [];

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

const NO_LIMITS = { memoryBytes: Infinity, cpus: Infinity };

interface Recorded {
  readonly where: string;
  readonly files: Readonly<Record<string, string>>;
  readonly limits: CgroupLimits;
}

const TREES: readonly Recorded[] = [
  { where: 'nowhere', files: {}, limits: NO_LIMITS },
  {
    where: 'a container of version 2 with its own namespace',
    files: {
      'proc/self/cgroup': '0::/\n',
      'sys/fs/cgroup/memory.max': '536870912\n',
      'sys/fs/cgroup/cpu.max': '50000 100000\n',
    },
    limits: {
      memoryBytes: 536_870_912,
      cpus: 0.5,
    },
  },
  {
    where: 'a nested group of version 2 whose ancestors are tighter',
    files: {
      'proc/self/cgroup': '0::/kubepods.slice/pod7.slice/app.scope\n',
      'sys/fs/cgroup/kubepods.slice/memory.max': '8589934592\n',
      'sys/fs/cgroup/kubepods.slice/cpu.max': '150000 100000\n',
      'sys/fs/cgroup/kubepods.slice/pod7.slice/memory.max': '268435456\n',
      'sys/fs/cgroup/kubepods.slice/pod7.slice/cpu.max': 'max 100000\n',
      'sys/fs/cgroup/kubepods.slice/pod7.slice/app.scope/memory.max': 'max\n',
      'sys/fs/cgroup/kubepods.slice/pod7.slice/app.scope/cpu.max': '400000 100000\n',
    },
    limits: {
      memoryBytes: 268_435_456,
      cpus: 1.5,
    },
  },
  {
    where: 'a nested group of version 2 that is tighter than its ancestors',
    files: {
      'proc/self/cgroup': '0::/a/b\n',
      'sys/fs/cgroup/a/memory.max': '8192\n',
      'sys/fs/cgroup/a/cpu.max': '300000 100000\n',
      'sys/fs/cgroup/a/b/memory.max': '4096\n',
      'sys/fs/cgroup/a/b/cpu.max': '100000 100000\n',
    },
    limits: { memoryBytes: 4096, cpus: 1 },
  },
  {
    where: 'version 2 without limits',
    files: {
      'proc/self/cgroup': '0::/user.slice/a.scope\n',
      'sys/fs/cgroup/user.slice/memory.max': 'max\n',
      'sys/fs/cgroup/user.slice/a.scope/memory.max': 'max\n',
      'sys/fs/cgroup/user.slice/a.scope/cpu.max': 'max 100000\n',
    },
    limits: NO_LIMITS,
  },
  {
    where: 'a container of version 1 whose mount shows its own group',
    files: {
      'proc/self/cgroup': '4:memory:/docker/1f\n1:cpu,cpuacct:/docker/1f\n0::/docker/1f\n',
      'sys/fs/cgroup/memory/memory.limit_in_bytes': '134217728\n',
      'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '200000\n',
      'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
    },
    limits: {
      memoryBytes: 134_217_728,
      cpus: 2,
    },
  },
  {
    where: 'version 1 without limits, which it reports as numbers near 2^63 and 2^64',
    files: {
      'proc/self/cgroup': '4:memory:/user/a\n1:cpu,cpuacct:/\n0::/\n',
      'sys/fs/cgroup/memory/memory.limit_in_bytes': '18446744073709551615\n',
      'sys/fs/cgroup/memory/user/memory.limit_in_bytes': '9223372036854771712\n',
      'sys/fs/cgroup/memory/user/a/memory.limit_in_bytes': '9223372036854771712\n',
      'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
      'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
    },
    limits: NO_LIMITS,
  },
  {
    where: 'a group outside of the namespace',
    files: {
      'proc/self/cgroup': '0::/../other\n',
      'sys/fs/cgroup/memory.max': '4096\n',
      'sys/fs/other/memory.max': '1024\n',
      'sys/fs/cgroup/cpu.max': 'nonsense\n',
    },
    limits: { memoryBytes: 4096, cpus: Infinity },
  },
  {
    where: 'files that say nothing of use',
    files: {
      'proc/self/cgroup': 'nonsense\n::\n',
      'sys/fs/cgroup/memory.max': '1\n',
    },
    limits: NO_LIMITS,
  },
];

test.for(TREES)('limits are found in $where', ({ files, limits }) => {
  expect(readCgroupLimits(record(files))).toEqual(limits);
});

test('a limit that changes is read anew', () => {
  const root = record({
    'proc/self/cgroup': '0::/\n',
    'sys/fs/cgroup/memory.max': '4096\n',
  });
  expect(readCgroupLimits(root).memoryBytes).toBe(4096);
  writeFileSync(join(root, 'sys/fs/cgroup/memory.max'), '8192\n');
  expect(readCgroupLimits(root).memoryBytes).toBe(8192);
});

function record(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'postern-'));
  roots.push(root);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}
