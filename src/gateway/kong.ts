/**
 * Writes the public surface as a declarative file of Kong 3, for decK (https://developer.konghq.com/deck).
 *
 * Kong matches and sends on a normalized path: reserved characters as they were sent, all others decoded, dot segments and
 * double slashes resolved. Of the routes that match, the one with the highest `regex_priority` is taken, given that all of
 * them have methods and hosts alike; so a private route inside a public one is a route as well, which ends in 404.
 * Both of Kong's engines are served, PCRE (router flavour `traditional`) and Rust's (all others).
 */

import { GatewayError } from './error.js';
import { checkOptions, type GatewayOptions, type Settings } from './options.js';
import { pathsOverlap } from './overlap.js';
import { compilePathPattern, repeatsGroup, type Dialect } from './path-pattern.js';
import { NORMALIZED } from './spelling.js';
import { createSurface, type Leaf, type RouteTable, type Surface } from './surface.js';

/**
 * A decK file with one service, as JSON.
 *
 * Query parameters that a route allows are its tags: `query:q`, `query-any` or `query-none`. What matches no route is 404.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a route that Kong can't be told
 */
export function toKong(router: RouteTable, options: GatewayOptions): string {
  const settings = checkOptions(options);
  const surface = createSurface(router);
  const { service, upstream } = settings;
  const routes = [...createGuard(surface), ...createEntries(surface), ...createOptions(surface)].map((entry, i) => formatRoute(entry, i + 1, settings));
  const { protocol, host, port } = upstream;
  return `${JSON.stringify({ _format_version: '3.0', services: [{ name: service, protocol, host, port, tags: ['postern'], routes }] }, null, 2)}\n`;
}

/** One route of Kong. */
interface Entry {
  readonly path: string;
  readonly pattern: string;
  readonly methods: readonly string[];
  readonly priority: number;
  readonly public: boolean;
  readonly tags: readonly string[];
}

const DIALECT: Dialect = { gateway: 'Kong', spelling: NORMALIZED, pcre: false, end: '$', unroll: false };

/** In PCRE, `$` also matches before a last line feed; and an encoded slash is none, but hides one. */
const UNCLEAN = '^/[^?]*(?:[\\x00-\\x1F\\x5C\\x7F]|%2F)';

const IMPLIED = 'OPTIONS';

function createGuard({ leaves, methods }: Surface): Entry[] {
  if (methods.size === 0) return [];
  const guarded = new Set([...leaves.flatMap(({ opens }) => [...opens]), IMPLIED]);
  return [{ path: 'unclean', pattern: UNCLEAN, methods: [...guarded].sort(), priority: 2 * leaves.length + 1, public: false, tags: ['unclean-path'] }];
}

function createEntries({ leaves }: Surface): Entry[] {
  return leaves.flatMap((leaf, i): Entry[] => {
    const { routes, opens, closes } = leaf;
    const test = compile(leaf);
    if (test === null) return [];
    const priority = 2 * leaves.length - i;
    const ownHead = routes.some((route) => route.method === 'HEAD');
    const answers = (method: string, scope: ReadonlySet<string>): string[] => (method === 'GET' && !ownHead ? ['GET', 'HEAD'] : [method]).filter((name) => scope.has(name));
    return routes.flatMap(({ method, path: own, public: open, params }): Entry[] => {
      const methods = answers(method, open ? opens : closes);
      if (methods.length === 0) return [];
      for (const name of methods) {
        if (open && (name === 'TRACE' || !/^[A-Z]+$/.test(name))) throw new GatewayError(own, `Kong passes on no ${name}; make it private`);
      }
      const tags = open ? (params === null ? ['query-any'] : params.length === 0 ? ['query-none'] : params.map((param) => `query:${encodeURIComponent(param)}`)) : [];
      return [{ path: own, pattern: test, methods, priority, public: open, tags }];
    });
  });
}

/** OPTIONS without a route of its own: public where any other method is, which the best pattern of a path decides. */
function createOptions({ leaves }: Surface): Entry[] {
  const skipped: Leaf[] = [];
  return leaves.flatMap((leaf, i): Entry[] => {
    const test = compile(leaf);
    if (test === null) return [];
    const [open, closed] = [others(leaf.opens), others(leaf.closes)];
    const entry = { path: leaf.path, methods: [IMPLIED], priority: leaves.length - i, tags: ['options'] };
    if (open.length > 0) {
      const hidden = new Set(skipped.filter((other) => pathsOverlap(other.segments, leaf.segments)).flatMap((other) => others(other.closes)));
      if (open.every((method) => hidden.has(method))) throw new GatewayError(leaf.path, 'private routes inside of it close its methods one by one, and Kong can\'t be told where OPTIONS is left; give it an OPTIONS route of its own');
      return [{ ...entry, pattern: test, public: true }];
    }
    const inside = leaves.slice(i + 1).filter((other) => others(other.opens).length > 0 && pathsOverlap(leaf.segments, other.segments));
    const closing = inside.filter((other) => others(other.opens).every((method) => closed.includes(method)));
    if (closing.length === 0) {
      skipped.push(leaf);
      return [];
    }
    if (closing.length < inside.length) throw new GatewayError(leaf.path, 'it lies inside of several public routes and closes only some of them, so Kong can\'t be told about OPTIONS there; give it an OPTIONS route of its own');
    return [{ ...entry, pattern: test, public: false }];
  });
}

function others(methods: ReadonlySet<string>): string[] {
  return [...methods].filter((method) => method !== IMPLIED);
}

/** The expression of a pattern; it is exact in this dialect. */
function compile({ path, segments, opens, closes }: Leaf): string | null {
  const test = compilePathPattern(path, segments, DIALECT);
  if (test === null && opens.size > 0) throw new GatewayError(path, 'Kong resolves "." and ".." and can\'t be sent backslashes and control characters; rename the segment');
  if (test !== null && closes.size > 0 && repeatsGroup(test.around)) {
    throw new GatewayError(path, 'its constraint repeats a group, for which Kong\'s PCRE may run out of stack and miss that the route is private; write it with one character class, or make the route around it private');
  }
  return test === null ? null : test.within;
}

function formatRoute({ path, pattern, methods, priority, public: open, tags }: Entry, index: number, { service, hosts }: Settings): object {
  const slug = path.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60);
  return {
    name: `${service}-${index}${slug === '' ? '' : `-${slug}`}`,
    methods,
    paths: [`~${pattern.slice(1)}`],
    ...(hosts.length > 0 ? { hosts } : {}),
    strip_path: false,
    preserve_host: true,
    regex_priority: priority,
    tags: [open ? 'public' : 'private', ...tags],
    ...(open ? {} : { plugins: [{ name: 'request-termination', config: { status_code: 404, message: 'Not found.' } }] }),
  };
}
