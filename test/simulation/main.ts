/**
 * `npm run simulate`: the mesh in one process, in virtual time, with faults. Prints the seed, and last the hash of its
 * log; a failure is printed with its seed and with the smallest plan that still fails.
 */

import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'vite';
import { check } from './invariants.js';
import { Mesh, type Plan } from './mesh.js';
import { drawPlan, SCENARIOS } from './scenarios.js';
import { loadInWorld } from './world.js';

const names = Object.keys(SCENARIOS);
const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    hours: { type: 'string', default: '1' },
    scenario: { type: 'string', multiple: true, default: names },
    source: { type: 'string', default: fileURLToPath(new URL('../../src', import.meta.url)) },
    log: { type: 'boolean', default: false },
    whole: { type: 'boolean', default: false },
    repeat: { type: 'string', default: '1' },
  },
});

/** One file, so that nothing is loaded while a world runs: a file that is read takes real time. */
async function load(source: string): Promise<typeof import('postern')> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-simulation-'));
  await build({
    configFile: false,
    logLevel: 'error',
    root: source,
    build: {
      ssr: true,
      outDir: folder,
      minify: false,
      target: 'node20',
      rolldownOptions: {
        input: join(source, 'index.ts'),
        external: /^node:/,
        output: { entryFileNames: 'postern.mjs', codeSplitting: false },
      },
    },
  });
  try {
    return loadInWorld(() => createRequire(import.meta.url)(join(folder, 'postern.mjs')) as typeof import('postern'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Result {
  readonly violations: readonly string[];
  readonly hash: string;
  readonly hours: number;
  readonly requests: number;
}

const postern = await load(values.source);

async function simulate(plan: Plan): Promise<Result> {
  const mesh = new Mesh(postern, plan);
  await mesh.run();
  if (values.log) for (const entry of mesh.world.log) console.log(JSON.stringify(entry));
  const requests = mesh.world.log.filter(({ what }) => what === 'run').length;
  return { violations: check(plan, mesh), hash: mesh.world.hash, hours: mesh.world.now / 3_600_000, requests };
}

/** The smallest plan that still fails in one of the same ways: fewer requests, then fewer faults, then fewer hosts. */
async function shrink(plan: Plan, violations: readonly string[]): Promise<Plan> {
  const kinds = violations.map((text) => text.split(':')[0]);
  const fails = async (smaller: Plan): Promise<boolean> =>
    (await simulate(smaller)).violations.some((text) => kinds.includes(text.split(':')[0]));
  let best = plan;
  for (const part of ['requests', 'faults'] as const) {
    for (
      let size = Math.ceil(best[part].length / 2);
      size >= 1 && best[part].length > 0;
      size = size === 1 ? 0 : Math.ceil(size / 2)
    ) {
      for (let from = 0; from < best[part].length; ) {
        const smaller: Plan = { ...best, [part]: [...best[part].slice(0, from), ...best[part].slice(from + size)] };
        if (await fails(smaller)) best = smaller;
        else from += size;
      }
    }
  }
  for (const { name } of best.services) {
    const fewer: Plan = {
      ...best,
      services: best.services.map((service) => (service.name === name ? { ...service, instances: 1 } : service)),
    };
    if (await fails(fewer)) best = fewer;
  }
  return best;
}

const first = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const last =
  values.seeds === undefined ? (values.seed === undefined ? Infinity : first) : first + Number(values.seeds) - 1;
console.log(`seed ${first}`);
const whole = createHash('sha256');
let [hours, requests, runs, failed] = [0, 0, 0, 0];
let told = Date.now();
for (let seed = first; seed <= last && (last !== Infinity || hours < Number(values.hours)); seed += 1) {
  for (const scenario of values.scenario) {
    const plan = drawPlan(scenario, seed);
    const result = await simulate(plan);
    for (let again = 1; again < Number(values.repeat); again += 1) {
      const { hash } = await simulate(plan);
      if (hash !== result.hash) throw new Error(`${scenario}, seed ${seed}: run ${again + 1} has another log`);
    }
    whole.update(result.hash);
    hours += result.hours;
    requests += result.requests;
    runs += 1;
    if (result.violations.length > 0) {
      failed += 1;
      console.log(
        `FAILED: ${scenario}, seed ${seed}\n  ${result.violations.join('\n  ')}\n  again: npm run simulate -- --seed ${seed} --scenario '${scenario}'`,
      );
      if (failed === 1 && !values.log && !values.whole) {
        const { requests: sent, faults, services } = await shrink(plan, result.violations);
        console.log(`  smallest: ${JSON.stringify({ services, requests: sent, faults })}`);
      }
    }
    if (Date.now() - told > 10_000) {
      told = Date.now();
      console.log(`${runs} runs, ${hours.toFixed(1)} mesh hours, ${requests} requests`);
    }
  }
}
console.log(`${runs} runs, ${hours.toFixed(1)} mesh hours, ${requests} requests, ${failed} failed`);
console.log(`hash ${whole.digest('hex')}`);
process.exit(failed > 0 ? 1 : 0);
