/*
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
import type { Leaf, RouteTable } from './surface.js';

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
  // Of two prefixes the longer one is asked first, and before services without any.
  const step = 2 * Math.max(...plan.services.map(({ surface }) => surface.leaves.length)) + 2;
  const services = plan.services.map((service) => {
    const base = step * service.prefix.length;
    const entries = createEntries(service, plan).filter(({ methods }) => methods.length > 0);
    return formatService(
      service,
      entries.map((entry, i) => formatRoute({ ...entry, priority: base + entry.priority }, i + 1, service, plan)),
    );
  });
  const upstreams = plan.services
    .filter((service) => service.upstreams.length > 1)
    .map(({ name, upstreams: targets }) => ({
      name,
      targets: targets.map(({ host, port }) => ({ target: `${host}:${port}`, weight: 100 })),
      tags: ['postern'],
    }));
  const file = { _format_version: '3.0', services, ...(upstreams.length === 0 ? {} : { upstreams }) };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** One route of Kong; none without methods. */
interface Entry {
  readonly path: string;
  readonly pattern: string;
  readonly methods: readonly string[];
  /** Among those of the service: from 0, and at most twice its leaves and one. */
  readonly priority: number;
  readonly public: boolean;
  readonly tags: readonly string[];
}

const DIALECT: Dialect = { gateway: 'Kong', spelling: NORMALIZED };

/**
 * Paths that no route gets: with control characters, since `$` of PCRE also matches before a line feed at the end; and
 * with `\` or `%2F`, which the service could take for a slash where Kong does not.
 */
const UNCLEAN = '^/[^?]*(?:[\\x00-\\x1F\\x5C\\x7F]|%2F)';

const IMPLIED = 'OPTIONS';

function createEntries(service: PlannedService, { services }: Plan): Entry[] {
  const { leaves } = service.surface;
  const outer = services.filter(({ inner }) => inner.includes(service.prefix)).flatMap(answeredMethods);
  const skipped: Leaf[] = [];
  return [
    refuse('unclean-path', UNCLEAN, answeredMethods(service), 2 * leaves.length + 1),
    ...leaves.flatMap((leaf, i): Entry[] => {
      const pattern = compile(leaf);
      if (pattern === null) return [];
      const own = createOwnEntries(leaf, pattern, 2 * leaves.length - i);
      const implied = answersOptions(leaf, leaves.slice(i + 1), skipped);
      if (implied === undefined) return own;
      const { path } = leaf;
      const methods = [IMPLIED];
      return [...own, { path, pattern, methods, priority: leaves.length - i, public: implied, tags: ['options'] }];
    }),
    // What is below this prefix is not for the service of a shorter one, whether it matches here or not.
    refuse('rest', '^(?:/.*)?$', [...new Set(outer)], 0),
  ];
}

function refuse(path: string, pattern: string, methods: readonly string[], priority: number): Entry {
  return { path, pattern, methods, priority, public: false, tags: [path] };
}

function answeredMethods({ surface }: PlannedService): string[] {
  return surface.answers.flatMap(([, names]) => names);
}

function createOwnEntries({ routes, opens, closes }: Leaf, pattern: string, priority: number): Entry[] {
  const ownHead = routes.some(({ method }) => method === 'HEAD');
  return routes.map(({ method, path, public: open, params }) => {
    if (open && (method === 'TRACE' || !/^[A-Z]+$/.test(method)))
      throw new GatewayError(path, `Kong passes on no ${method}; make it private`);
    const answered = method === 'GET' && !ownHead ? ['GET', 'HEAD'] : [method];
    const methods = answered.filter((name) => (open ? opens : closes).has(name));
    return { path, pattern, methods, priority, public: open, tags: open ? describeQuery(params) : [] };
  });
}

function describeQuery(params: readonly string[] | null): string[] {
  if (params === null) return ['query-any'];
  return params.length === 0 ? ['query-none'] : params.map((param) => `query:${encodeURIComponent(param)}`);
}

/**
 * OPTIONS without a route of its own is public where any other method is, which the best pattern of a path decides.
 *
 * @param skipped leaves that close some of the methods around them; added to
 * @returns whether a leaf opens it or closes it; undefined for neither
 */
function answersOptions(leaf: Leaf, later: readonly Leaf[], skipped: Leaf[]): boolean | undefined {
  const { path, segments, opens, closes } = leaf;
  const overlapping = (leaves: readonly Leaf[]): Leaf[] =>
    leaves.filter((other) => pathsOverlap(other.segments, segments));
  const open = others(opens);
  if (open.length > 0) {
    const around = overlapping(skipped);
    if (open.every((method) => around.some((other) => other.closes.has(method))))
      throw new GatewayError(
        path,
        "private routes inside of it close its methods one by one, and Kong can't be told where OPTIONS is left; give it an OPTIONS route of its own",
      );
    return true;
  }
  const around = overlapping(later.filter((other) => others(other.opens).length > 0));
  const closed = around.filter((other) => others(other.opens).every((method) => closes.has(method)));
  if (closed.length > 0 && closed.length < around.length)
    throw new GatewayError(
      path,
      "it lies inside of several public routes and closes only some of them, so Kong can't be told about OPTIONS there; give it an OPTIONS route of its own",
    );
  if (closed.length > 0) return false;
  skipped.push(leaf);
  return undefined;
}

function others(methods: ReadonlySet<string>): string[] {
  return [...methods].filter((method) => method !== IMPLIED);
}

/** The expression of a pattern; it is exact in this dialect. */
function compile(leaf: Leaf): string | null {
  const test = compilePathPattern(leaf, DIALECT);
  if (test !== null && leaf.closes.size > 0 && repeatsGroup(test.around)) {
    throw new GatewayError(
      leaf.path,
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
    ...formatPlugins(open, prefix),
  };
}

/** The pattern of a whole path, below a prefix: what stands behind that is the first group. */
function prefixed(pattern: string, prefix: string): string {
  if (prefix === '') return pattern.slice(1);
  const literal = escape(prefix);
  return pattern.endsWith('$') ? `${literal}(${pattern.slice(1, -1)})$` : `${literal}${pattern.slice(1)}`;
}

function formatPlugins(open: boolean, prefix: string): object {
  const { status, body } = NOT_FOUND;
  if (!open)
    return {
      plugins: [
        { name: 'request-termination', config: { status_code: status, content_type: 'application/json', body } },
      ],
    };
  if (prefix === '') return {};
  return { plugins: [{ name: 'request-transformer', config: { replace: { uri: '$(uri_captures[1])' } } }] };
}
