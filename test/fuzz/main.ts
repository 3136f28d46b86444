/**
 * `npm run fuzz`: random input for the parsers, the router, the metrics and the server, compared with independent
 * oracles.
 *
 * A failure says with which options it happens again; the exit status is 1 then.
 */

import { parseArgs } from 'node:util';
import { FuzzThread } from './thread.js';
import { TARGETS } from './worker.js';

const NAMES = TARGETS.map(({ name }) => name);

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
    seconds: { type: 'string', default: '60' },
    target: { type: 'string', multiple: true, default: NAMES },
    iterations: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) {
  console.log(
    `npm run fuzz -- [--seed N] [--seconds S] [--target NAME]... [--iterations N or FROM-TO]\ntargets: ${NAMES.join(', ')}`,
  );
  process.exit(0);
}
const [seed, seconds] = [numberOf('seed', values.seed), numberOf('seconds', values.seconds)];
for (const name of values.target) if (!NAMES.includes(name)) fail(`--target ${name} is none of ${NAMES.join(', ')}`);
const range = /^(\d+)(?:-(\d+))?$/.exec(values.iterations ?? '0');
if (range === null) fail(`--iterations ${values.iterations} is neither a number nor FROM-TO`);
const from = Number(range[1]);
const to = values.iterations === undefined ? null : Number(range[2] ?? range[1]);

console.log(`seed ${seed}`);
const thread = new FuzzThread();
let failed = false;
for (const target of values.target) {
  const start = performance.now();
  const report = await thread.run({ seed, target, from, to, seconds: seconds / values.target.length });
  const elapsed = ((performance.now() - start) / 1000).toFixed(1);
  const outcomes = Object.entries(report.outcomes).map(([outcome, count]) => `${outcome} ${count}`);
  console.log(
    `${target.padEnd(8)} ${report.iterations} iterations in ${elapsed} s${outcomes.length === 0 ? '' : `: ${outcomes.join(', ')}`}`,
  );
  if (report.failure === null) continue;
  failed = true;
  const { iteration, error } = report.failure;
  console.log(`FAILED: target ${target}, seed ${seed}, iteration ${iteration}\n${error}`);
  const alone = await thread.run({ seed, target, from: iteration, to: iteration, seconds: 0 });
  const iterations = alone.failure === null ? `${from}-${iteration}` : iteration;
  console.log(
    `again: npm run fuzz -- --seed ${seed} --target ${target} --iterations ${iterations}${alone.failure === null ? ' (it did not fail alone)' : ''}`,
  );
}
thread.stop();
process.exitCode = failed ? 1 : 0;

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (text === '' || !(number >= 0)) fail(`--${name} is ${JSON.stringify(text)}; give a number`);
  return number;
}

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}
