/**
 * `npm run simulate`: the mesh in one process, in virtual time, with faults. Prints the seed, and last the hash of each
 * scenario's logs and of all; a failure is printed with its seed and with the smallest plan that still fails.
 */

import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { loadWith, SOURCE } from '../support/bundle.js';
import { check } from './invariants.js';
import { Mesh } from './mesh.js';
import { drawPlan, SCENARIOS, type Plan } from './scenarios.js';
import { clock, world } from './world.js';

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    hours: { type: 'string', default: '1' },
    scenario: { type: 'string', multiple: true, default: Object.keys(SCENARIOS) },
    source: { type: 'string', default: SOURCE },
    log: { type: 'boolean', default: false },
    repeat: { type: 'string', default: '1' },
  },
});

/** A failure that needs hundreds of requests is not worth more runs. */
const MAX_SHRINKS = 80;

const postern = await loadWith(clock, values.source);

async function violationsOf(plan: Plan): Promise<string[]> {
  await new Mesh(postern, plan).run();
  return check(plan, world.log);
}

/** Leaves out faults, instances and requests as long as one of these invariants is violated. */
async function shrink(plan: Plan, violations: readonly string[]): Promise<Plan> {
  const nameOf = (text: string): string => text.slice(0, text.indexOf(':'));
  const names = new Set(violations.map(nameOf));
  let [best, attempts] = [plan, 0];
  const accept = async (change: Partial<Plan>): Promise<boolean> => {
    if ((attempts += 1) > MAX_SHRINKS) return false;
    const smaller = { ...best, ...change };
    const fails = (await violationsOf(smaller)).some((text) => names.has(nameOf(text)));
    if (fails) best = smaller;
    return fails;
  };
  const leaveOut = async (part: 'faults' | 'requests'): Promise<void> => {
    for (let size = plan[part].length; size >= 1; size = Math.floor(size / 2)) {
      for (let from = 0; from < best[part].length; ) {
        if (!(await accept({ [part]: best[part].toSpliced(from, size) }))) from += size;
      }
    }
  };
  await leaveOut('faults');
  for (const [i, service] of plan.services.entries()) {
    if (service.instances > 1) await accept({ services: best.services.with(i, { ...service, instances: 1 }) });
  }
  await leaveOut('requests');
  return best;
}

async function report({ scenario, seed, ...plan }: Plan, violations: readonly string[]): Promise<void> {
  console.log(`FAILED: ${scenario}, seed ${seed}\n  ${violations.join('\n  ')}`);
  console.log(`  again: npm run simulate -- --seed ${seed} --scenario '${scenario}'`);
  if (failed > 1 || values.log) return;
  const { services, requests: sent, faults } = await shrink({ scenario, seed, ...plan }, violations);
  const hosts = services.reduce((sum, { instances }) => sum + instances, 0);
  console.log(`  smallest: ${sent.length} requests, ${hosts} hosts, ${faults.length} faults`);
  console.log(`  ${JSON.stringify({ services, requests: sent, faults })}`);
}

const first = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const last = first + Number(values.seeds ?? (values.seed === undefined ? Infinity : 1)) - 1;
console.log(`seed ${first}`);
const hash = createHash('sha256');
const hashes = new Map(values.scenario.map((scenario) => [scenario, createHash('sha256')]));
let [runs, hours, requests, failed, printedAt] = [0, 0, 0, 0, Date.now()];
const progress = (): string => `${runs} runs, ${hours.toFixed(1)} mesh hours, ${requests} requests, ${failed} failed`;
for (let seed = first; seed <= last && (last !== Infinity || hours < Number(values.hours)); seed += 1) {
  for (const scenario of values.scenario) {
    const plan = drawPlan(scenario, seed);
    const violations = await violationsOf(plan);
    const { log, now, hash: own } = world;
    if (values.log) console.log(log.map((entry) => JSON.stringify(entry)).join('\n'));
    for (let again = 2; again <= Number(values.repeat); again += 1) {
      await violationsOf(plan);
      if (world.hash !== own) throw new Error(`${scenario}, seed ${seed}: run ${again} has another log`);
    }
    hash.update(own);
    hashes.get(scenario)?.update(own);
    hours += now / 3_600_000;
    requests += log.filter(({ what }) => what === 'run').length;
    runs += 1;
    if (violations.length > 0) {
      failed += 1;
      await report(plan, violations);
    }
    if (Date.now() < printedAt + 10_000) continue;
    printedAt = Date.now();
    console.log(progress());
  }
}
console.log(progress());
for (const [scenario, own] of hashes) console.log(`hash of ${scenario} ${own.digest('hex')}`);
console.log(`hash ${hash.digest('hex')}`);
process.exit(failed > 0 ? 1 : 0);
