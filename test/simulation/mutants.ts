/**
 * Deliberate faults, to measure the invariants: `npm run simulate:mutants`. Each is made in a copy of `src/`, and the
 * simulation has to find it. At least 14 of 15 must be caught; one that no longer applies is an error.
 */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { measureMutants, type Mutant } from '../support/mutants.js';

interface SimulationMutant extends Mutant {
  readonly scenario: string;
}

const MUTANTS: readonly SimulationMutant[] = [
  { name: 'a POST is repeated', file: 'mesh/request.ts', find: "new Set(['DELETE', ",
    replace: "new Set(['POST', 'DELETE', ", scenario: 'crash',
    caughtBy: 'a request that is not idempotent runs at most once' },
  { name: 'Retry-After is lost', file: 'mesh/retry.ts', find: 'if (retryAfter !== undefined && /',
    replace: 'if (attempt > 9 && retryAfter !== undefined && /', scenario: 'retries',
    caughtBy: 'a repeated attempt waits as long as Retry-After says' },
  { name: 'a deadline grows', file: 'mesh/call.ts', find: 'const timeoutMs = Math.min(call.timeoutMs, timeLeft(call));',
    replace: 'const timeoutMs = call.timeoutMs;', scenario: 'deadlines', caughtBy: 'deadlines only shrink' },
  { name: 'a drain closes first', file: 'app/app.ts', find: 'if (delay > 0) await', replace: 'if (delay > 1e9) await',
    scenario: 'rolling update', caughtBy: 'an update loses no request that can be repeated' },
  { name: 'a drain does not wait', file: 'app/listener.ts', find: 'await within(Math.min(timeoutMs, MAX_TIMEOUT_MS), ',
    replace: 'await within(0, ', scenario: 'rolling update',
    caughtBy: 'what a service has begun before its drain is not lost' },
  { name: 'a budget refills too fast', file: 'mesh/retry.ts', find: 'const RETRIES_PER_SECOND = 10;',
    replace: 'const RETRIES_PER_SECOND = 100;', scenario: 'retries', caughtBy: 'retries stay in their budget' },
  { name: 'a signal is not forwarded', file: 'mesh/call.ts', find: 'signals.push(by.signal);',
    replace: 'signals.push();', scenario: 'deadlines', caughtBy: 'the calls of a request end when its client leaves' },
  { name: 'a call is sent without time', file: 'mesh/call.ts', find: 'if (timeLeft(call) < 1)',
    replace: 'if (timeLeft(call) < -1e9)', scenario: 'deadlines', caughtBy: 'deadlines only shrink' },
  { name: 'a pool reuses a connection for ever', file: 'mesh/http-transport.ts',
    find: 'monotonicNow() + maxAgeMs * spread', replace: 'Infinity * spread', scenario: 'ages',
    caughtBy: 'a connection is not used beyond its age' },
  { name: 'the budget is not asked', file: 'mesh/call.ts', find: ' && budget.take() ?',
    replace: ' && (budget.take() || true) ?', scenario: 'retries', caughtBy: 'retries stay in their budget' },
  { name: 'an error loses its code', file: 'mesh/answer.ts', find: 'adoptErrorCode(code.name, code.value)',
    replace: 'adoptErrorCode(code.name, 1)', scenario: 'retries',
    caughtBy: 'an error has the code that a service gave it' },
  { name: 'every hop repeats', file: 'mesh/call.ts', find: 'headers[NO_RETRY_HEADER] === undefined',
    replace: 'headers !== undefined', scenario: 'retries', caughtBy: 'retries of several hops do not multiply' },
  { name: 'a call is repeated once too often', file: 'mesh/call.ts', find: 'attempts: isRepeated ? retry + 1 : 1',
    replace: 'attempts: isRepeated ? retry + 2 : 1', scenario: 'retries',
    caughtBy: 'retries of several hops do not multiply' },
  { name: 'a ping goes one level further', file: 'monitor/ping.ts', find: '(await loading)(depth - 1)',
    replace: '(await loading)(depth)', scenario: 'pings', caughtBy: 'a ping goes as deep as it was told' },
  { name: 'connections stay open after close', file: 'app/app.ts', find: 'this.#services.close();', replace: '',
    scenario: 'rolling update', caughtBy: 'after the last client nothing is left' },
];

const SEEDS = 5;
const RUN = fileURLToPath(new URL('../support/run.mjs', import.meta.url));
const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

const missed = measureMutants(MUTANTS, process.argv[3], ({ scenario }, root) => {
  const args = [
    RUN, MAIN, '--source', join(root, 'src'), '--seed', '1', '--seeds', String(SEEDS), '--scenario', scenario,
    '--whole',
  ];
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return [...stdout.matchAll(/^ {2}(.*?): /gm)].map(([, invariant = '']) => invariant);
});
process.exit(missed > (process.argv[3] === undefined ? 1 : 0) ? 1 : 0);
