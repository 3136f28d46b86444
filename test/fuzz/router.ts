/** Random route tables and paths: the router against the anchored patterns and the documented precedence. */

import { HttpError, Router } from 'postern';
import { randomSource, randomWord } from '../support/random-constraint.js';
import { oneIn, several, type Random } from '../support/random.js';
import { assert, assertLinear, assertSame, type Target } from './target.js';

type Segment =
  | { readonly kind: 'static'; readonly text: string }
  | { readonly kind: 'param'; readonly name: string; readonly source: string | null }
  | { readonly kind: 'wildcard'; readonly name: string };

interface ModelRoute {
  readonly method: string;
  readonly path: string;
  readonly segments: readonly Segment[];
}

const STATICS = [
  'a', 'b', 'ab', 'a.b', 'A', '(', 'x:y', 'a*', 'é', 'a b', '100%', '%', '?', '#', '+', '{a}', '^$', '\\', '|', '😀',
  '__proto__', 'constructor', '~', "'", '"', '\n',
];
const SOURCES = [
  '\\d+', '[ab]+', '.+', 'a|7', '\\w*', '[^a]', '(?!a).+', '(a|b)\\1', '[+-9]+', '\\d{1,3}', '[^/]+', '(?=a)[ab]{2}',
  '[à-ü]', '^a$', 'a?',
];
const NAMES = ['x', 'y', 'id', '__proto__', 'constructor', 'toString', '_1'];
const METHODS = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'QUERY'];
const VALUES = [
  'a', 'b', 'ab', '7', '77', 'a7', '-', '.', '..', 'ü', ' ', '\n', 'a/b', '/', '%', '%41', '😀', '?', '\u0000', '+',
  'A', '*', ':x',
];
const JUNK = [
  '/', '/', '/', ':', '*', '(', ')', '\\', '[', ']', 'a', 'id', '%41', '%', '?', '+', '{', '}', '|', '^', '$', ' ', 'é',
  '\n', '1', '_', '<', '-', ',', '.', '\ud83d',
];
const MALFORMED = ['%', '%4', '%zz', '%C3', '%FF', '%C3%28', '%ED%A0%80', '%F5%80%80%80'];
const PUMPS = ['a', '-', 'ab', '%61', '%2F', '/', 'a/', '7', '%C3%BC', '.', '\n', '%'];

export const router: Target = {
  name: 'router',
  outcomes: [
    'found', 'found by HEAD of GET', 'found behind a better route', 'nothing', 'malformed', 'refused', 'junk refused',
    'junk taken',
  ],
  async run(random, met) {
    const table = new Router<ModelRoute>();
    const routes: ModelRoute[] = [];
    /** Routes of one place: `:a(.+)` and `:b` have one pattern, but differ for `%2F`. */
    const places = new Map<string, readonly [pattern: string, routes: readonly ModelRoute[]]>();
    const taken = new Set<string>();
    for (let count = 1 + random.int(10); count > 0; count -= 1) {
      const route = randomRoute(random);
      const before = table.routes.length;
      try {
        table.add(route.method, route.path, route);
      } catch (error) {
        assert(error instanceof TypeError, `registering ${JSON.stringify(route.path)} threw ${String(error)}`);
        assertSame(table.routes.length, before, 'the number of routes after a refusal');
        met('refused');
        continue;
      }
      const info = table.routes.at(-1);
      assert(info !== undefined && table.routes.length === before + 1, 'a route was added and not listed');
      const { pattern } = info;
      assertPattern(pattern, route.path);
      assertSame(
        [info.method, info.path, info.public, info.params],
        [route.method, route.path, false, null],
        'the listed route',
      );
      assert(!taken.has(`${route.method} ${pattern}`), `${route.method} ${pattern} was taken twice`);
      taken.add(`${route.method} ${pattern}`);
      const place = shapeOf(route.segments);
      places.set(place, [pattern, [...(places.get(place)?.[1] ?? []), route]]);
      routes.push(route);
      // Routes may be added at any time.
      for (let tries = 0; tries < 8; tries += 1) checkLookUp(random, table, [...places.values()], met);
    }
    checkJunk(random, met);
    const [pump, head, tail] = [
      random.pick(PUMPS),
      randomTarget(random, routes),
      random.pick(['', '/', 'a', '%', '/a']),
    ];
    await assertLinear(
      8_000,
      (n) => lookUp(table, 'GET', `${head}${pump.repeat(n)}${tail}`),
      `looking up ${JSON.stringify([head, pump, tail])} in ${JSON.stringify(routes.map(({ path }) => path))}`,
    );
  },
};

function randomRoute(random: Random): ModelRoute {
  const segments = several(random, 1, 4, (): Segment => {
    const kind = random.int(10);
    if (kind < 4) return { kind: 'static', text: random.pick(STATICS) };
    const name = `${random.pick(NAMES)}${random.int(8)}`;
    if (kind < 6) return { kind: 'param', name, source: null };
    return { kind: 'param', name, source: oneIn(random, 3) ? randomSource(random, 2) : random.pick(SOURCES) };
  });
  const end = random.int(8);
  if (end === 0) segments.push({ kind: 'wildcard', name: random.pick(['rest', '*', '__proto__']) });
  else if (end === 1) segments.push({ kind: 'static', text: '' });
  return { method: random.pick(METHODS), path: segments.map((segment) => `/${print(segment)}`).join(''), segments };
}

function print(segment: Segment): string {
  if (segment.kind === 'static') return segment.text;
  if (segment.kind === 'wildcard') return segment.name === '*' ? '*' : `*${segment.name}`;
  return `:${segment.name}${segment.source === null ? '' : `(${segment.source})`}`;
}

/** A path that some route matches more often than not, percent-encoded one way or the other. */
function randomTarget(random: Random, routes: readonly ModelRoute[]): string {
  const model =
    routes.length > 0 && !oneIn(random, 6)
      ? random.pick(routes).segments
      : several(random, 1, 3, (): Segment => ({ kind: 'wildcard', name: '*' }));
  const values = model.map((segment) => {
    if (oneIn(random, 20)) return random.pick(['', ...VALUES]);
    if (segment.kind === 'static') return segment.text;
    const candidates = several(random, 6, 6, () =>
      oneIn(random, 2) ? randomWord(random, 'ab-7', 4) : random.pick(VALUES),
    );
    return candidates.find((value) => matches([segment], [value])) ?? candidates[0] ?? '';
  });
  if (oneIn(random, 10)) values.push(random.pick(['', 'a', 'b']));
  const raw = values.map((value) => encode(random, value));
  if (oneIn(random, 12)) raw[random.int(raw.length)] += random.pick(MALFORMED);
  return `/${raw.join('/')}`;
}

function encode(random: Random, value: string): string {
  const all = oneIn(random, 8);
  return [...value]
    .map((char) => {
      const escaped = encodeURIComponent(char);
      if (escaped === char && all) return `%${char.charCodeAt(0).toString(16)}`;
      return oneIn(random, 4) ? escaped.toLowerCase() : escaped;
    })
    .join('');
}

function checkLookUp(
  random: Random,
  table: Router<ModelRoute>,
  patterns: readonly (readonly [string, readonly ModelRoute[]])[],
  met: (outcome: string) => void,
): void {
  const routes = patterns.flatMap(([, all]) => all);
  const method = oneIn(random, 3) ? random.pick(METHODS) : random.pick(routes).method;
  const target = oneIn(random, 40) ? random.pick(['', 'a', '*', '%', '?']) : randomTarget(random, routes);
  const details = { routes: routes.map((route) => `${route.method} ${route.path}`), method, target };
  const found = lookUp(table, method, target);
  const values = decode(target);
  if (values === 'malformed') {
    assertSame(found === 'malformed', true, 'whether a malformed escape is refused', details);
    met('malformed');
    return;
  }
  assert(found !== 'malformed', 'a path without a malformed escape was refused', details);
  const matching =
    values === null ? [] : patterns.filter(([, [first]]) => first !== undefined && matches(first.segments, values));
  if (values !== null && !values.some((value) => value.includes('/'))) {
    const path = `/${values.join('/')}`;
    const byPattern = patterns.filter(([pattern]) => new RegExp(pattern, 's').test(path));
    assertSame(
      byPattern.map(([pattern]) => pattern),
      matching.map(([pattern]) => pattern),
      'what the patterns match',
      details,
    );
  }
  const ranked = matching.map(([, all]) => ({ all, rank: rankOf(all[0]?.segments ?? [], routes) }))
    .sort((a, b) => compareRanks(a.rank, b.rank));
  const answering = ranked.map(
    ({ all }) =>
      all.find((route) => route.method === method) ??
      (method === 'HEAD' ? all.find((route) => route.method === 'GET') : undefined),
  );
  const expected = answering.find((route) => route !== undefined);
  const allowed = new Set(matching.flatMap(([, all]) => all.map((route) => route.method)));
  if (allowed.has('GET')) allowed.add('HEAD');
  if (allowed.size > 0) allowed.add('OPTIONS');
  assertSame(table.allowedMethods(target), [...allowed].sort(), 'Allow', details);
  if (expected === undefined || values === null) {
    assertSame(found === null, true, 'whether nothing is found', { ...details, found: found?.handler.path });
    met('nothing');
    return;
  }
  assertSame(found?.handler.path, expected.path, 'the route found', details);
  assertSame(found?.handler.method, expected.method, 'the method found', details);
  assert(
    Object.getPrototypeOf(Object.getPrototypeOf(found?.params ?? {}) ?? null) === null,
    'parameters with a prototype',
    details,
  );
  assertSame(Object.entries(found?.params ?? {}), paramsOf(expected.segments, values), 'the parameters', details);
  met(
    answering[0] === undefined
      ? 'found behind a better route'
      : expected.method === method
        ? 'found'
        : 'found by HEAD of GET',
  );
}

/** The decoded segments; null for what is no path. */
function decode(target: string): string[] | 'malformed' | null {
  if (!target.startsWith('/')) return null;
  try {
    return target.slice(1).split('/').map((segment) => decodeURIComponent(segment));
  } catch {
    return 'malformed';
  }
}

function lookUp(
  table: Router<ModelRoute>,
  method: string,
  target: string,
): ReturnType<Router<ModelRoute>['find']> | 'malformed' {
  try {
    return table.find(method, target);
  } catch (error) {
    if (error instanceof HttpError && error.statusCode === 400) return 'malformed';
    throw error;
  }
}

function matches(segments: readonly Segment[], values: readonly string[]): boolean {
  const last = segments.at(-1);
  if (last?.kind === 'wildcard') {
    if (values.length < segments.length || values.slice(segments.length - 1).join('/') === '') return false;
  } else if (values.length !== segments.length) return false;
  return segments.every((segment, index) => {
    const value = values[index] ?? '';
    if (segment.kind === 'wildcard') return true;
    if (segment.kind === 'static') return segment.text === value;
    return value !== '' && (segment.source === null || new RegExp(`^(?:${segment.source})$`, 's').test(value));
  });
}

/** Segments without the names of their parameters. */
function shapeOf(all: readonly Segment[]): string {
  return JSON.stringify(all.map((segment) => ('name' in segment ? { ...segment, name: '' } : segment)));
}

/** 0 static, 1 and more constrained, in order of registration at this place, then plain, then wildcard. */
function rankOf(segments: readonly Segment[], routes: readonly ModelRoute[]): number[] {
  return segments.map((segment, index) => {
    if (segment.kind === 'static') return 0;
    if (segment.kind === 'wildcard') return Infinity;
    if (segment.source === null) return Number.MAX_SAFE_INTEGER;
    const place = shapeOf(segments.slice(0, index));
    const rivals = routes.filter((route) => shapeOf(route.segments.slice(0, index)) === place)
      .map((route) => route.segments[index]);
    const sources = rivals.flatMap((rival) => (rival?.kind === 'param' && rival.source !== null ? [rival.source] : []));
    return 1 + sources.indexOf(segment.source);
  });
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, rank] of a.entries()) {
    const other = b[index] ?? -1;
    if (rank !== other) return rank - other;
  }
  return 0;
}

function paramsOf(segments: readonly Segment[], values: readonly string[]): [string, string][] {
  return segments.flatMap((segment, index): [string, string][] => {
    if (segment.kind === 'static') return [];
    return [[segment.name, segment.kind === 'wildcard' ? values.slice(index).join('/') : (values[index] ?? '')]];
  });
}

/** What is no path, and what looks like one. */
function checkJunk(random: Random, met: (outcome: string) => void): void {
  const strange: readonly unknown[] = [undefined, null, 7, {}, [], Symbol('path'), true];
  const path = oneIn(random, 20)
    ? strange[random.int(strange.length)]
    : `${oneIn(random, 10) ? '' : '/'}${several(random, 0, 9, () => random.pick(JUNK)).join('')}`;
  const method = oneIn(random, 10) ? random.pick(['get', 'BREW', '', 'GET ', '__proto__']) : 'GET';
  const table = new Router<string>();
  try {
    // @ts-expect-error a path that is no string
    table.add(method, path, '');
  } catch (error) {
    assert(error instanceof TypeError, `registering ${method} ${String(path)} threw ${String(error)}`);
    met('junk refused');
    return;
  }
  const [info] = table.routes;
  assert(info !== undefined && typeof path === 'string' && method === 'GET', `${method} ${String(path)} was taken`);
  met('junk taken');
  assertPattern(info.pattern, path);
  const expression = new RegExp(info.pattern, 's');
  for (const value of [
    '/',
    path,
    ...several(
      random,
      4,
      4,
      () => `/${several(random, 1, 3, () => random.pick(VALUES).replaceAll('/', '')).join('/')}`,
    ),
  ]) {
    // A lone surrogate can't be in a target.
    if (/\p{Surrogate}/u.test(value)) continue;
    const target = value.split('/').map((segment) => encodeURIComponent(segment)).join('/');
    assertSame(
      table.find('GET', target) !== null,
      expression.test(value),
      `whether ${info.pattern} finds ${JSON.stringify(value)}`,
    );
  }
}

function assertPattern(pattern: string, path: string): void {
  assert(
    pattern.startsWith('^/') && pattern.endsWith('$') && !/\(\?<[A-Za-z_]/.test(pattern),
    `the pattern of ${JSON.stringify(path)} is ${pattern}`,
  );
  void new RegExp(pattern, 's');
}
