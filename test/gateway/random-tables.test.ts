/**
 * Random route tables behind real gateways: each request reaches what the router would give it to, if that is public.
 *
 * @module-tag gateways
 */

import { describe, expect, test } from 'vitest';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router } from '../../src/routing/router.js';
import { GatewayError, toCaddy, toHAProxy, toNginx, type GatewayOptions, type GatewayService, type ListenerOptions, type RouteTable } from '../../src/gateway.js';
import { freePorts, startGateway, type GatewayName } from '../support/gateway-process.js';
import { ask, expectedRoute, inParallel, startUpstream } from '../support/gateway-upstream.js';
import { createRandom, type Random } from '../support/random.js';

const closed = (): string => 'private';
const open = publicFacing(() => 'public');

const STATICS = ['a', 'b', 'me', 'A', 'v1.0', 'é', 'a b', '@me', 'x;y', '~u', '😀', '(', 'a', 'b'];
const CONSTRAINTS = ['\\d+', '[a-z]+', '[a-z]{2}', 'a|b', '[^a]+', '.{1,3}', '\\w+', '[a-z ]+', '[à-ü]+', '😀|a', '\\d*', '.+', '[ab]+', '(?:ab?)+', '[a-z]+(?:-[a-z]+)*', '[@a]', '\\S{2}', 'm.', '[^/]{2,}', '(?:é|e)\\w?', '.', '.+a', '[^b]*a', '[^2]*2[^b]*'];
const VALUES = [...STATICS, '7', '42', 'ab', 'abc', 'aa', 'a-a', 'a-b', '@@', '@a', 'é', 'éé', 'ü', 'eé', '😀😀', '+', '%', 'a%41', '€', 'x', 'mé', ' ', 'a\nb', 'ABC', '{a}', '"', "'", '...'];
const METHODS = ['GET', 'GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE'];

interface Table {
  readonly host: string;
  readonly router: Router;
  readonly text: string;
  readonly requests: readonly { readonly method: string; readonly target: string; readonly odd: boolean }[];
}

/** Up to twelve routes, so that some lie inside of others. */
function createTable(random: Random, constraints: readonly string[]): Router {
  const router = new Router();
  const segment = (last: boolean, index: number): string => {
    const kind = random.int(last ? 11 : 9);
    if (kind < 4) return random.pick(STATICS);
    if (kind < 6) return `:p${index}`;
    if (kind < 9) return `:p${index}(${random.pick(constraints)})`;
    return kind === 9 ? '*rest' : '';
  };
  for (let i = 3 + random.int(10); i > 0; i -= 1) {
    const length = 1 + random.int(3);
    const path = Array.from({ length }, (_, index) => `/${segment(index === length - 1, index)}`).join('');
    try {
      router.add(random.pick(METHODS), path, random.int(2) === 0 ? open : closed);
    } catch (error) {
      if (!/registered already/.test(String(error))) throw error;
    }
  }
  return router;
}

function createRequests(random: Random, router: Router, count: number): Table['requests'] {
  const value = (segment: string): string => {
    if (segment.startsWith('*')) return Array.from({ length: 1 + random.int(2) }, () => random.pick(VALUES)).join('/');
    return segment.startsWith(':') || random.int(5) === 0 ? random.pick(VALUES) : segment;
  };
  return Array.from({ length: count }, () => {
    const { path } = random.pick(router.routes);
    const segments = path.slice(1).split(/\/(?![^(]*\))/).flatMap((segment) => value(segment).split('/'));
    if (random.int(8) === 0) segments.push('');
    const encode = random.pick([encodeURIComponent, encodeURIComponent, encodeURI]);
    const plain = segments.map((text) => encode(text).replace(/[?#]/g, encodeURIComponent));
    const odd = random.int(4) === 0;
    const target = `/${(odd ? plain.map((text) => distort(random, text)) : plain).join(odd && random.int(8) === 0 ? '//' : '/')}`;
    return { method: random.pick(['GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE', 'PUT']), target: random.int(6) === 0 ? `${target}?a=/b` : target, odd };
  });
}

function distort(random: Random, text: string): string {
  switch (random.int(6)) {
    case 0:
      return text.replace(/[A-Za-z0-9]/, (char) => `%${char.charCodeAt(0).toString(16)}`);
    case 1:
      return `${text}${random.pick(['%00', '%0a', '%2f', '%5c', '%', ';', '.', '%80', '%C3', '\\', '#', '/..', '/.', '%20', '%2a', '%2A', '%3a'])}`;
    case 2:
      return `${random.pick(['x/../', './', '%2e%2e/', '..%2f'])}${text}`;
    case 3:
      return text.toUpperCase();
    case 4:
      return text.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase());
    default:
      return text;
  }
}

/** Segments whose exact translation would need what a gateway does not have: such requests may be refused. */
function isDoubtful(router: Router, target: string): boolean {
  const paths = router.routes.map((route) => route.path);
  return /%F0/i.test(target) || (target.includes('%') && paths.some((path) => path.includes('\\1'))) || /\/\.{1,2}(?:\/|\?|$)|\/\//.test(target);
}

async function findDifferences(name: GatewayName, exporter: (router: RouteTable, options: GatewayOptions) => string, seed: number, count: number, constraints: readonly string[]): Promise<{ differences: string[]; reached: number; refused: number; unsaid: number }> {
  const random = createRandom(seed);
  const routers = new Map<string, Router>();
  const upstream = await startUpstream(routers);
  // Where one port can't be shared by name, each table has its own.
  const ports = await freePorts(name === 'haproxy' ? count : 1);
  const tables: (Table & { readonly port: number })[] = [];
  let unsaid = 0;
  while (tables.length < count) {
    const router = createTable(random, constraints);
    const host = `t${tables.length}`;
    const port = ports[name === 'haproxy' ? tables.length : 0] ?? 0;
    try {
      const text = exporter(router, { service: `s${tables.length}`, upstream: upstream.url, listen: `127.0.0.1:${port}`, hosts: [host] });
      tables.push({ host, router, text, port, requests: createRequests(random, router, 30) });
      routers.set(host, router);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      unsaid += 1;
    }
  }
  const gateway = await startGateway(name, tables.map((table) => table.text).join('\n'), [...new Set(tables.map((table) => table.port))]);
  const differences: string[] = [];
  let [reachedCount, refusedCount] = [0, 0];
  try {
    await inParallel(
      tables.flatMap((table) => table.requests.map((request) => ({ ...table, ...request }))),
      async ({ host, router, port, method, target, odd }) => {
        const expected = expectedRoute(router, method, target.replace(/\?.*$/s, ''));
        const { reached } = await ask(port, method, target, host);
        if (reached === null) refusedCount += 1;
        else reachedCount += 1;
        const mayBeRefused = odd || isDoubtful(router, target);
        if (reached === expected || (reached === null && mayBeRefused)) return;
        const table = router.routes.map((route) => `${route.public ? '+' : '-'}${route.method} ${route.path}`).join(', ');
        differences.push(`${method} ${target}: ${String(reached)}, not ${String(expected)}; seed ${seed}, ${host}: ${table}`);
      },
    );
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
  return { differences, reached: reachedCount, refused: refusedCount, unsaid };
}

const cases = [
  { name: 'nginx', exporter: toNginx, seed: 20_261_121, count: 80, constraints: CONSTRAINTS },
  { name: 'haproxy', exporter: toHAProxy, seed: 42, count: 30, constraints: CONSTRAINTS },
  { name: 'caddy', exporter: toCaddy, seed: 7, count: 30, constraints: CONSTRAINTS },
] as const;

describe.each(cases)('$count random tables behind $name (seed $seed)', ({ name, exporter, seed, count, constraints }) => {
  test('let through what is public, and nothing else', async () => {
    const { differences, reached, refused, unsaid } = await findDifferences(name, exporter, seed, count, constraints);
    expect(differences).toEqual([]);
    // Both outcomes are really met, and few tables are beyond the gateway.
    expect(reached).toBeGreaterThan(count * 2);
    expect(refused).toBeGreaterThan(count * 2);
    expect(unsaid).toBeLessThan(count / 4);
  });
});

interface Half {
  readonly router: Router;
  readonly prefix: string;
}

/** The prefixes of two services: none, or one that the other's paths know nothing of, or one inside the other. */
const PREFIXES = [['', ''], ['', '/b'], ['/a', ''], ['/a', '/b'], ['/a', '/a/b'], ['/me/v1.0', '/me']] as const;

/** What may be reached by a path, with the index of its service in front. */
function expectedOfPair(halves: readonly Half[], method: string, path: string): string | null {
  const below = halves.map(({ prefix }) => prefix).filter((prefix) => prefix !== '' && (path === prefix || path.startsWith(`${prefix}/`)));
  const longest = below.sort((a, b) => b.length - a.length)[0] ?? '';
  for (const [i, { router, prefix }] of halves.entries()) {
    const route = prefix === longest ? expectedRoute(router, method, path.slice(prefix.length)) : null;
    if (route !== null) return `${i} ${route}`;
  }
  return null;
}

type ListExporter = (services: readonly GatewayService[], options: ListenerOptions) => string;

async function findDifferencesOfPairs(name: GatewayName, exporter: ListExporter, seed: number, count: number): Promise<{ differences: string[]; reached: number[]; clashes: number }> {
  const random = createRandom(seed);
  const routers = [new Map<string, Router>(), new Map<string, Router>()] as const;
  const upstreams = await Promise.all(routers.map((map, i) => startUpstream(map, `${i} `)));
  const ports = await freePorts(name === 'haproxy' ? count : 1);
  const pairs: { host: string; port: number; text: string; halves: readonly Half[]; requests: Table['requests'] }[] = [];
  let clashes = 0;
  while (pairs.length < count) {
    const i = pairs.length;
    const halves = random.pick(PREFIXES).map((prefix) => ({ prefix, router: createTable(random, CONSTRAINTS) }));
    const [host, port] = [`t${i}`, ports[name === 'haproxy' ? i : 0] ?? 0];
    try {
      const services = halves.map(({ router, prefix }, j) => ({ router, service: `s${i}-${j}`, upstream: upstreams[j]?.url ?? '', ...(prefix === '' ? {} : { prefix }) }));
      const text = exporter(services, { listen: `127.0.0.1:${port}`, hosts: [host] });
      // Each service's paths are asked for below either prefix.
      const requests = halves.flatMap(({ router }) => createRequests(random, router, 8).flatMap((request) => halves.map(({ prefix }) => ({ ...request, target: prefix + request.target }))));
      pairs.push({ host, port, text, halves, requests });
      halves.forEach(({ router }, j) => routers[j]?.set(host, router));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      clashes += 1;
    }
  }
  const gateway = await startGateway(name, pairs.map(({ text }) => text).join('\n'), [...new Set(pairs.map(({ port }) => port))]);
  const differences: string[] = [];
  const reachedCounts = [0, 0];
  try {
    await inParallel(
      pairs.flatMap((pair) => pair.requests.map((request) => ({ ...pair, ...request }))),
      async ({ host, halves, port, method, target, odd }) => {
        const expected = expectedOfPair(halves, method, target.replace(/\?.*$/s, ''));
        const { reached, status } = await ask(port, method, target, host);
        if (reached !== null) reachedCounts[Number(reached[0])] = (reachedCounts[Number(reached[0])] ?? 0) + 1;
        if (reached === expected || (reached === null && (odd || halves.some(({ router }) => isDoubtful(router, target))))) return;
        const tables = halves.map(({ router, prefix }) => `${prefix || 'no prefix'}: ${router.routes.map((route) => `${route.public ? '+' : '-'}${route.method} ${route.path}`).join(', ')}`);
        differences.push(`${method} ${target}: ${String(reached)} with ${status}, not ${String(expected)}; seed ${seed}, ${host}: ${tables.join(' | ')}`);
      },
    );
  } finally {
    await gateway.stop();
    for (const upstream of upstreams) await upstream.stop();
  }
  return { differences, reached: reachedCounts, clashes };
}

const pairs = [
  { name: 'nginx', exporter: toNginx, count: 200 },
  { name: 'haproxy', exporter: toHAProxy, count: 40 },
  { name: 'caddy', exporter: toCaddy, count: 40 },
] as const;
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));

describe.each(pairs)(`$count random pairs of tables behind $name (seed ${SEED})`, ({ name, exporter, count }) => {
  test('let through what is public of either service, to that service, and nothing else', { timeout: 90_000 }, async () => {
    const { differences, reached, clashes } = await findDifferencesOfPairs(name, exporter, SEED, count);
    expect(differences).toEqual([]);
    for (const each of reached) expect(each).toBeGreaterThan(count / 2);
    expect(clashes).toBeGreaterThan(0);
  });
});
