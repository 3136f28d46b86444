/**
 * Look-ups and registration of Postern's router beside others: no server, no requests.
 */

import { fileURLToPath } from 'node:url';
import { select } from '../harness/contender.mjs';
import { onMeasuredCore } from '../harness/cores.mjs';
import { output, start } from '../harness/processes.mjs';
import { formatSpread, printTable, progress } from '../harness/report.mjs';
import { median, quartiles, shuffled } from '../harness/statistics.mjs';

/**
 * What `router-process.mjs` prints.
 *
 * @typedef {{ registrationMs: number, nanos: Record<string, number> }} Measured
 */

const PROCESS = fileURLToPath(new URL('router-process.mjs', import.meta.url));
const ROUTES = [10, 200, 10_000];
const PEERS = ['memoirist', 'trek-router', 'rou3', 'find-my-way'].map((name) => ({ name, library: name, env: {} }));

/** @param {import('../harness/options.mjs').Options} options */
export async function router(options) {
  const { random, quick, node } = options;
  const builds = [{ name: 'postern', env: {} }, ...select([], options)].map(({ name, env }) => ({
    name,
    library: 'postern',
    env,
  }));
  const libraries = [...builds, ...PEERS];
  /** @type {Record<number, object>} */
  const figures = {};
  for (const routes of ROUTES) {
    /** @type {Map<string, Measured[]>} */
    const measured = new Map(libraries.map(({ name }) => [name, []]));
    for (let round = 0; round < (quick ? 2 : 7); round++) {
      for (const { name, library, env } of shuffled(libraries, random)) {
        progress(`router, ${routes} routes, round ${round + 1}: ${name}`);
        const child = start(onMeasuredCore([node, PROCESS, library, String(routes)]), {
          stdio: ['ignore', 'pipe', 'inherit'],
          env: { ...process.env, ...env },
        });
        measured.get(name)?.push(JSON.parse(await output(child)));
      }
    }
    progress('');
    figures[routes] = report(routes, measured);
  }
  return figures;
}

/**
 * @param {number} routes
 * @param {Map<string, Measured[]>} measured
 */
function report(routes, measured) {
  const results = [...measured].map(([name, rounds]) => ({
    name,
    registrationMs: rounds.map(({ registrationMs }) => registrationMs),
    nanos: Object.keys(rounds[0]?.nanos ?? {}).map(
      (kind) => /** @type {const} */ ([kind, rounds.map(({ nanos }) => nanos[kind])]),
    ),
  }));
  printTable(
    `router, ${routes} routes: ns for a look-up, ms to register all`,
    ['', ...results[0].nanos.map(([kind]) => kind), 'register'],
    results.map(({ name, nanos, registrationMs }) => [
      name,
      ...nanos.map(([, values]) => formatSpread(values, 0)),
      formatSpread(registrationMs, 1),
    ]),
  );
  return results.map(({ name, nanos, registrationMs }) => ({
    name,
    registrationMs: quartiles(registrationMs),
    nanos: Object.fromEntries(nanos.map(([kind, values]) => [kind, median(values)])),
  }));
}
