/**
 * Measures one router with one number of routes, in a process of its own; prints JSON.
 *
 * A router sees each path once: as in a server, where every path is a new string without a hash.
 *
 * Run as `node router-process.mjs postern|memoirist|trek-router|rou3|find-my-way <routes>`.
 */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createRandom, median } from '../harness/statistics.mjs';

/**
 * A router; `find` is as the library has it, and what it gives is read by the other two.
 *
 * @typedef {object} Adapter
 * @property {(path: string, handler: () => void) => void} add
 * @property {(path: string) => any} find
 * @property {(found: any) => Function | undefined} handlerOf
 * @property {(found: any) => Record<string, string>} paramsOf
 * @property {string} [rest] its name for what a wildcard stands for, where it has no other
 */

/** @type {Record<string, () => Promise<Adapter>>} */
const LIBRARIES = {
  async postern() {
    const dist = process.env['POSTERN_DIST'] ?? resolve(import.meta.dirname, '../../dist');
    const { Router } = await import(pathToFileURL(resolve(dist, 'index.js')).href);
    const router = new Router();
    return {
      add: (path, handler) => router.add('GET', path, handler),
      find: (path) => router.find('GET', path),
      handlerOf: (found) => found?.handler,
      paramsOf: ({ params }) => params,
    };
  },
  async memoirist() {
    const { Memoirist } = await import('memoirist');
    const router = new Memoirist();
    return {
      add: (path, handler) => router.add('GET', path.replace('*rest', '*'), handler),
      find: (path) => router.find('GET', path),
      handlerOf: (found) => found?.store,
      paramsOf: ({ params }) => params,
      rest: '*',
    };
  },
  async 'trek-router'() {
    const { default: Router } = await import('trek-router');
    const router = new Router();
    return {
      add: (path, handler) => router.add('GET', path.replace('*rest', '*'), handler),
      find: (path) => router.find('GET', path),
      handlerOf: ([handler]) => handler,
      paramsOf: ([, params]) => Object.fromEntries(params.map(({ name, value }) => [name, value])),
      rest: '*',
    };
  },
  async rou3() {
    const { addRoute, createRouter, findRoute } = await import('rou3');
    const router = createRouter();
    return {
      add: (path, handler) => addRoute(router, 'GET', path.replace('*rest', '**:rest'), handler),
      find: (path) => findRoute(router, 'GET', path),
      handlerOf: (found) => found?.data,
      paramsOf: ({ params }) => params ?? {},
    };
  },
  async 'find-my-way'() {
    const { default: createRouter } = await import('find-my-way');
    const router = createRouter();
    return {
      add: (path, handler) => router.on('GET', path.replace('*rest', '*'), handler),
      find: (path) => router.find('GET', path),
      handlerOf: (found) => found?.handler,
      paramsOf: ({ params }) => params,
      rest: '*',
    };
  },
};

const BATCH = 1000;
const BATCHES = 300;
const WARM_UP = 100;

const [library, count] = process.argv.slice(2);
const random = createRandom(1);
const groups = Math.ceil(Number(count) / 10);
const routes = Array.from({ length: groups }, (_, group) => routesOf(group)).flat();

/** By kind, a path that some route has, or none. */
const KINDS = {
  static: (group) => [`/v1/resource-${group}/search`, `/v1/resource-${group}/search`, {}],
  '1 param': (group, id) => [`/v1/resource-${group}/${id}`, `/v1/resource-${group}/:id`, { id }],
  '2 params': (group, id) => [
    `/v1/resource-${group}/${id}/parts/p${id}`,
    `/v1/resource-${group}/:id/parts/:part`,
    { id, part: `p${id}` },
  ],
  wildcard: (group, id) => [`/files-${group}/a/${id}.txt`, `/files-${group}/*rest`, { [rest]: `a/${id}.txt` }],
  miss: (group, id) => [`/v1/resource-${group}/${id}/nothing`, null, {}],
};

const { add, find, handlerOf, paramsOf, rest = 'rest' } = await LIBRARIES[library]();
const handlers = new Map(routes.map((path) => [path, () => path]));
const startedAt = performance.now();
for (const [path, handler] of handlers) add(path, handler);
const registrationMs = performance.now() - startedAt;

for (const make of Object.values(KINDS)) verify(make);
/** @type {Record<string, number[]>} */
const batches = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, []]));
let found = 0;
// Kept, so that no result can be left out as one that nobody looks at.
let last;
for (let batch = 0; batch < WARM_UP + BATCHES; batch++) {
  for (const [kind, make] of Object.entries(KINDS)) {
    const paths = Array.from({ length: BATCH }, () => fresh(make(...choose())[0]));
    const before = process.hrtime.bigint();
    for (const path of paths) {
      last = find(path);
      if (handlerOf(last) !== undefined) found += 1;
    }
    if (batch >= WARM_UP) batches[kind].push(Number(process.hrtime.bigint() - before) / BATCH);
  }
}
if (found !== (WARM_UP + BATCHES) * BATCH * 4) throw new Error(`${found} look-ups found a route`);
const nanos = Object.fromEntries(Object.entries(batches).map(([kind, values]) => [kind, median(values)]));
console.log(JSON.stringify({ registrationMs, nanos }));

function routesOf(group) {
  const resource = `/v1/resource-${group}`;
  return [
    resource,
    `${resource}/search`,
    `${resource}/stats`,
    `/health-${group}`,
    `${resource}/:id`,
    `${resource}/:id/parts`,
    `${resource}/:id/notes`,
    `${resource}/:id/parts/:part`,
    `${resource}/:id/notes/:note`,
    `/files-${group}/*rest`,
  ];
}

/** @returns {[number, string]} a group and an id */
function choose() {
  return [Math.floor(random() * groups), String(Math.floor(random() * 1e6))];
}

/** A copy that shares neither characters nor a hash with any other string. */
function fresh(path) {
  return Buffer.from(path, 'latin1').toString('latin1');
}

function verify(make) {
  const [path, route, params] = make(...choose());
  const match = find(path);
  if (handlerOf(match) !== handlers.get(route))
    throw new Error(`${library} answers ${path} with another route than ${route}`);
  for (const [name, value] of Object.entries(params)) {
    const actual = paramsOf(match)[name];
    if (actual !== value) throw new Error(`${library} finds ${actual} as ${name} in ${path}`);
  }
}
