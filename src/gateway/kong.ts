/**
 * Writes the public surface as a declarative file of Kong 3, for decK (https://developer.konghq.com/deck).
 *
 * Kong matches and sends on a normalized path: reserved characters as they were sent, all others decoded, dot
 * segments and double slashes resolved. Of the routes that match, the one with the highest `regex_priority` is taken,
 * given that all of them have methods and hosts alike; so a private route inside a public one is a route as well,
 * which ends in 404. Both of Kong's engines are served, PCRE (router flavour `traditional`) and Rust's (all others).
 */

import type { Dialect } from './constraint-pattern.js';
import { GatewayError } from './error.js';
import {
  assertUnused,
  type ExporterArguments,
  type GatewayOptions,
  type GatewayService,
  type ListenerOptions,
} from './exporter-options.js';
import { pathsOverlap } from './overlap.js';
import { compilePathPattern, repeatsGroup } from './path-pattern.js';
import { createPlan, type Plan, type PlannedService } from './plan.js';
import { NOT_FOUND } from './refusals.js';
import { NORMALIZED } from './spelling.js';
import { escape } from './text.js';
import type { Leaf, RouteTable, Surface } from './surface.js';

/**
 * A decK file, as JSON, with each service, its routes, and an upstream with targets where it has several addresses.
 *
 * Query parameters that a route allows are its tags: `query:q`, `query-any` or `query-none`. What matches no route is
 * 404.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a route that Kong can't be told, and for services that claim one path
 */
export function toKong(router: RouteTable, options: GatewayOptions): string;
export function toKong(services: readonly GatewayService[], options?: ListenerOptions): string;
export function toKong(...args: ExporterArguments): string {
  const plan = createPlan('toKong', args);
  assertUnused(plan, ['tls', 'include'], 'Kong');
  const upstreams = plan.services
    .filter((service) => service.upstreams.length > 1)
    .map(({ name, upstreams: targets }) => ({
      name,
      targets: targets.map(({ host, port }) => ({ target: `${host}:${port}`, weight: 100 })),
      tags: ['postern'],
    }));
  // Of two prefixes the longer one is asked first, and before services without any.
  const ranked = [...plan.services].sort((a, b) => a.prefix.length - b.prefix.length);
  let priority = 0;
  const routes = new Map<PlannedService, object[]>();
  for (const service of ranked) {
    const entries = createServiceEntries(service, plan);
    routes.set(
      service,
      entries.map((entry, i) => formatRoute({ ...entry, priority: priority + entry.priority }, i + 1, service, plan)),
    );
    priority += Math.max(0, ...entries.map((entry) => entry.priority));
  }
  const services = plan.services.map((service) => formatService(service, routes.get(service) ?? []));
  const file = { _format_version: '3.0', services, ...(upstreams.length === 0 ? {} : { upstreams }) };
  return `${JSON.stringify(file, null, 2)}\n`;
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

const DIALECT: Dialect = { gateway: 'Kong', spelling: NORMALIZED };

/** In PCRE, `$` also matches before a last line feed; and an encoded slash is none, but hides one. */
const UNCLEAN = '^/[^?]*(?:[\\x00-\\x1F\\x5C\\x7F]|%2F)';

const IMPLIED = 'OPTIONS';

function createServiceEntries(service: PlannedService, { services }: Plan): Entry[] {
  const { surface, prefix } = service;
  const own = [...createGuard(surface), ...createEntries(surface), ...createOptions(surface)];
  const outer = services.filter(({ inner }) => inner.includes(prefix));
  const methods = outer.flatMap((other) => (other.surface.answers.length > 0 ? guardedMethods(other.surface) : []));
  if (methods.length === 0) return own;
  // What is below this prefix is not for the service of a shorter one, whether it matches here or not.
  const rest = {
    path: 'rest',
    pattern: '^(?:/.*)?$',
    methods: [...new Set(methods)].sort(),
    priority: 1,
    public: false,
    tags: [],
  };
  return [...own.map((entry) => ({ ...entry, priority: entry.priority + 1 })), rest];
}

function guardedMethods({ leaves }: Surface): string[] {
  return [...new Set([...leaves.flatMap(({ opens }) => [...opens]), IMPLIED])].sort();
}

function createGuard(surface: Surface): Entry[] {
  const { leaves, answers } = surface;
  if (answers.length === 0) return [];
  return [
    {
      path: 'unclean',
      pattern: UNCLEAN,
      methods: guardedMethods(surface),
      priority: 2 * leaves.length + 1,
      public: false,
      tags: ['unclean-path'],
    },
  ];
}

function createEntries({ leaves }: Surface): Entry[] {
  return leaves.flatMap((leaf, i): Entry[] => {
    const { routes, opens, closes } = leaf;
    const test = compile(leaf);
    if (test === null) return [];
    const priority = 2 * leaves.length - i;
    const ownHead = routes.some((route) => route.method === 'HEAD');
    const answers = (method: string, scope: ReadonlySet<string>): string[] =>
      (method === 'GET' && !ownHead ? ['GET', 'HEAD'] : [method]).filter((name) => scope.has(name));
    return routes.flatMap(({ method, path: own, public: open, params }): Entry[] => {
      const methods = answers(method, open ? opens : closes);
      if (methods.length === 0) return [];
      for (const name of methods) {
        if (open && (name === 'TRACE' || !/^[A-Z]+$/.test(name)))
          throw new GatewayError(own, `Kong passes on no ${name}; make it private`);
      }
      const tags = open
        ? params === null
          ? ['query-any']
          : params.length === 0
            ? ['query-none']
            : params.map((param) => `query:${encodeURIComponent(param)}`)
        : [];
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
      const hidden = new Set(
        skipped.filter((other) => pathsOverlap(other.segments, leaf.segments)).flatMap((other) => others(other.closes)),
      );
      if (open.every((method) => hidden.has(method)))
        throw new GatewayError(
          leaf.path,
          "private routes inside of it close its methods one by one, and Kong can't be told where OPTIONS is left; give it an OPTIONS route of its own",
        );
      return [{ ...entry, pattern: test, public: true }];
    }
    const inside = leaves
      .slice(i + 1)
      .filter((other) => others(other.opens).length > 0 && pathsOverlap(leaf.segments, other.segments));
    const closing = inside.filter((other) => others(other.opens).every((method) => closed.includes(method)));
    if (closing.length === 0) {
      skipped.push(leaf);
      return [];
    }
    if (closing.length < inside.length)
      throw new GatewayError(
        leaf.path,
        "it lies inside of several public routes and closes only some of them, so Kong can't be told about OPTIONS there; give it an OPTIONS route of its own",
      );
    return [{ ...entry, pattern: test, public: false }];
  });
}

function others(methods: ReadonlySet<string>): string[] {
  return [...methods].filter((method) => method !== IMPLIED);
}

/** The expression of a pattern; it is exact in this dialect. */
function compile({ path, segments, opens, closes }: Leaf): string | null {
  const test = compilePathPattern(path, segments, DIALECT);
  if (test === null && opens.size > 0)
    throw new GatewayError(
      path,
      'Kong resolves "." and ".." and can\'t be sent backslashes and control characters; rename the segment',
    );
  if (test !== null && closes.size > 0 && repeatsGroup(test.around)) {
    throw new GatewayError(
      path,
      "its constraint repeats a group, for which Kong's PCRE may run out of stack and miss that the route is private; write it with one character class, or make the route around it private",
    );
  }
  return test === null ? null : test.within;
}

function formatService({ name, protocol, upstreams }: PlannedService, routes: readonly object[]): object {
  const [{ host, port }] = upstreams;
  return {
    name,
    protocol,
    // The name of the upstream, or an address.
    host: upstreams.length > 1 ? name : host,
    port,
    connect_timeout: 5000,
    read_timeout: 300_000,
    write_timeout: 300_000,
    tags: ['postern'],
    plugins: [
      { name: 'correlation-id', config: { header_name: 'X-Request-Id', generator: 'uuid', echo_downstream: true } },
    ],
    routes,
  };
}

function formatRoute(
  { path, pattern, methods, priority, public: open, tags }: Entry,
  index: number,
  { name, prefix }: PlannedService,
  { hosts }: Plan,
): object {
  const slug = path
    .replace(/[^A-Za-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 60);
  return {
    name: `${name}-${index}${slug === '' ? '' : `-${slug}`}`,
    methods,
    paths: [`~${prefixed(pattern, prefix)}`],
    ...(hosts.length > 0 ? { hosts } : {}),
    strip_path: false,
    preserve_host: true,
    request_buffering: false,
    response_buffering: false,
    regex_priority: priority,
    tags: [open ? 'public' : 'private', ...tags],
    ...(open ? formatRewrite(prefix) : formatTermination()),
  };
}

/** The pattern of a whole path, below a prefix: what stands behind that is the first group. */
function prefixed(pattern: string, prefix: string): string {
  if (prefix === '') return pattern.slice(1);
  const literal = escape(prefix);
  return pattern.endsWith('$') ? `${literal}(${pattern.slice(1, -1)})$` : `${literal}${pattern.slice(1)}`;
}

function formatRewrite(prefix: string): object {
  if (prefix === '') return {};
  return { plugins: [{ name: 'request-transformer', config: { replace: { uri: '$(uri_captures[1])' } } }] };
}

function formatTermination(): object {
  const { status, body } = NOT_FOUND;
  return {
    plugins: [{ name: 'request-termination', config: { status_code: status, content_type: 'application/json', body } }],
  };
}
