/**
 * Deliberate faults, to measure the invariants: `npm run simulate:mutants`. Each is made in a copy of `src/`, and the
 * simulation has to find it. At most one may escape; one that no longer applies is an error.
 */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { measureMutants } from '../support/mutants.js';

/** Name, scenario and invariant that catch it; file, what is replaced there, and by what. */
const MUTANTS: readonly (readonly [string, string, string, string, string, string])[] = [
  ['a POST is repeated', 'crash', 'a POST runs at most once',
    'mesh/request.ts', "new Set(['DELETE', ", "new Set(['POST', 'DELETE', "],
  ['Retry-After is lost', 'retries', 'a repeated attempt waits as long as Retry-After says',
    'mesh/retry.ts', 'if (retryAfter !== undefined && /', 'if (attempt > 9 && retryAfter !== undefined && /'],
  ['a deadline grows', 'deadlines', 'deadlines only shrink',
    'mesh/call.ts', 'callHeaders(call, timeoutMs, trace)', 'callHeaders(call, call.timeoutMs, trace)'],
  ['a deadline grows when a request is sent again', 'crash', 'deadlines only shrink',
    'mesh/http-transport.ts', 'begin(after(monotonicNow() - startedAtMs, request), true)', 'begin(request, true)'],
  ['a drain closes first', 'rolling update', 'an update loses no request that can be repeated',
    'app/app.ts', 'if (delay > 0) await', 'if (delay > 1e9) await'],
  ['a drain does not wait', 'rolling update', 'a drain loses nothing that it can finish',
    'wire/server.ts', 'await within(timeoutMs, ', 'await within(0, '],
  ['a budget refills too fast', 'retries', 'retries stay in their budget',
    'mesh/retry.ts', 'const RETRIES_PER_SECOND = 10;', 'const RETRIES_PER_SECOND = 100;'],
  ['a signal is not forwarded', 'deadlines', 'a call ends when its caller leaves or has no time left',
    'mesh/call.ts', 'signals.push(by.signal);', 'signals.push();'],
  ['a call is sent without time', 'deadlines', 'deadlines only shrink',
    'mesh/call.ts', 'if (timeLeft(call) < 1)', 'if (timeLeft(call) < -1e9)'],
  ['a pool reuses a connection for ever', 'ages', 'a connection is not used beyond its age',
    'mesh/http-transport.ts', 'monotonicNow() + maxAgeMs * spread', 'Infinity * spread'],
  ['the budget is not asked', 'retries', 'retries stay in their budget',
    'mesh/call.ts', ' && budget.take() ?', ' && (budget.take() || true) ?'],
  ['an error loses its code', 'retries', 'an error has the code that a service gave it',
    'mesh/answer.ts', 'adoptErrorCode(code.name, code.value)', 'adoptErrorCode(code.name, 1)'],
  ['every hop repeats', 'retries', 'retries of several hops do not multiply',
    'mesh/call.ts', "headers[NO_RETRY_HEADER] === 'true'", 'headers === undefined'],
  ['a call is repeated once too often', 'retries', 'retries of several hops do not multiply',
    'mesh/call.ts', 'isRepeatable({ method, body }) ? retry + 1 : 1', 'isRepeatable({ method, body }) ? retry + 2 : 1'],
  ['a ping goes one level further', 'pings', 'a ping goes as deep as asked',
    'monitor/ping.ts', 'pingMesh(depth - 1)', 'pingMesh(depth)'],
  ['connections stay open after close', 'rolling update', 'nothing is left at the end',
    'app/app.ts', 'services.close();', ''],
];

const only = process.argv[3];
const run = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const mutants = MUTANTS.map(([name, scenario, caughtBy, file, find, replace]) => {
  return { name, scenario, caughtBy, file, find, replace };
});
const missed = measureMutants(mutants, only, ({ name, scenario }, root) => {
  const args = ['--source', join(root, 'src'), '--seed', '1', '--seeds', '3', '--scenario', scenario];
  const all = [run('../support/run.mjs'), run('main.ts'), ...args];
  const { stdout } = spawnSync(process.execPath, all, { encoding: 'utf8' });
  const found = [...stdout.matchAll(/^ {2}(?!again|smallest)(\w.*?): /gm)].map(([, invariant = '']) => invariant);
  console.log(`${name}: ${[...new Set(found)].join('; ')}${/ {2}smallest: .*/.exec(stdout)?.[0] ?? ''}`);
  return found;
});
process.exit(missed > (only === undefined ? 1 : 0) ? 1 : 0);
