/**
 * Runs the service with every tool, on each version of Node.js: `npm run tools`, some 15 minutes, on Linux with x64.
 *
 *   npm run tools -- node22 node24    these versions only
 *   npm run tools -- esbuild vitest   the tools whose names contain one of these only
 *
 * Writes a line for each tool as it ends, then what failed, then a table. Exits with 1 if anything failed.
 */

import { availableParallelism } from 'node:os';
import { installNode } from '../support/runtimes.mjs';
import { Package } from './harness.js';
import { TOOLS, type Runtime, type Tool } from './tools.js';

const VERSIONS = [20, 22, 24, 26];

interface Task {
  readonly tool: Tool;
  readonly runtime: Runtime;
  /** Undefined until it ends. */
  outcome?: string;
}

const args = process.argv.slice(3);
const chosen = VERSIONS.filter((major) => args.includes(`node${major}`));
const names = args.filter((arg) => !/^node\d+$/.test(arg));
const tools = TOOLS.filter(({ name }) => names.length === 0 || names.some((part) => name.includes(part)));
const runtimes = (chosen.length === 0 ? VERSIONS : chosen).map((major): Runtime & { readonly version: string } => {
  const { path, version } = installNode(major);
  return { binary: path, major, version };
});
const tasks = runtimes.flatMap((runtime) => tools.map((tool): Task => ({ tool, runtime })));
const failures: string[] = [];
const packed = new Package();
let ended = 0;

async function perform(task: Task): Promise<void> {
  const { tool, runtime } = task;
  const title = `node${runtime.major}  ${tool.name}`;
  const startedAt = performance.now();
  const place = packed.createPlace();
  try {
    const [major, reason] = tool.since ?? [0, ''];
    if (major > runtime.major) task.outcome = `– (${reason})`;
    else await tool.check(runtime, place);
    task.outcome ??= 'passes';
  } catch (error) {
    task.outcome = 'FAILS';
    failures.push(`${title}\n${error instanceof Error ? error.message : String(error)}`);
  }
  await place.remove();
  ended += 1;
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${ended}/${tasks.length}  ${title}: ${task.outcome}, ${seconds} s`);
}

const waiting = [...tasks];
const worker = async (): Promise<void> => {
  for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) await perform(task);
};
try {
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, worker));
} finally {
  await packed.close();
}
for (const failure of failures) console.log(`\n${failure.slice(0, 5000)}`);
console.log(`\n| tool | ${runtimes.map(({ version }) => `Node.js ${version}`).join(' | ')} |`);
console.log(`| --- |${' --- |'.repeat(runtimes.length)}`);
for (const tool of tools) {
  const outcomes = tasks.filter((task) => task.tool === tool).map(({ outcome }) => outcome);
  console.log(`| ${tool.name} | ${outcomes.join(' | ')} |`);
}
console.log(`\n${tasks.length - failures.length} passed, ${failures.length} failed`);
process.exitCode = failures.length > 0 ? 1 : 0;
