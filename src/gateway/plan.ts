/*
 * Plans a configuration: the public routes of each service, and the certainty that no two services have one path.
 *
 * A gateway only has to find the service of a request, so private routes make no difference here.
 */

import { escapeControls } from '../base/log-line.js';
import { compilePath, type Segment } from '../endpoint/pattern.js';
import type { RouteInfo } from '../routing/router.js';
import { checkArguments, GatewayError } from './exporter-options.js';
import type { ExporterArguments, Site, SiteService } from './exporter-options.js';

/** A public route. */
export interface PublicRoute extends RouteInfo {
  readonly segments: readonly Segment[];
  /** Methods that are forwarded: the own one, HEAD if GET answers it, and OPTIONS. */
  readonly methods: readonly string[];
  /** Whether the route has every path that its expression matches; false with a constraint. */
  readonly certain: boolean;
  /** `GET /users/:id (query: any)` */
  readonly title: string;
}

/** A service and its public routes, in the order of its route table. */
export interface PlannedService extends SiteService {
  readonly routes: readonly PublicRoute[];
  /** Prefixes of other services inside of this service's prefix: paths below belong to the other service. */
  readonly inner: readonly string[];
  /** Whether its prefix is inside of another service's. */
  readonly isInner: boolean;
}

/** A configuration to be written. */
export interface Plan extends Site {
  readonly services: readonly [PlannedService, ...PlannedService[]];
  /** Methods that any public route answers, sorted; OPTIONS is the last. */
  readonly methods: readonly string[];
}

/** Name and limits of an exporter. */
interface ExporterLimits {
  /** Function's name, for messages: `toNginx`. */
  readonly name: string;
  /** Gateway's name, for messages: `nginx`. */
  readonly gateway: string;
  readonly options: Parameters<typeof checkArguments>[1];
  /** Methods that the gateway can forward; CONNECT asks the gateway itself for a tunnel, so it is never one. */
  readonly methods?: RegExp;
}

/**
 * Plans a configuration.
 *
 * @throws {TypeError} for wrong options
 * @throws {GatewayError} for a public route with a method that the gateway can't forward, and for two public routes of
 * different services whose paths the gateway can't tell apart
 */
export function createPlan(exporter: ExporterLimits, args: ExporterArguments): Plan {
  const site = checkArguments(exporter.name, exporter.options, args);
  const prefixes = site.services.map(({ prefix }) => prefix);
  const plan = (service: SiteService): PlannedService => ({
    ...service,
    routes: collectRoutes(service.router.routes, exporter),
    inner: prefixes.filter((prefix) => service.prefix !== '' && prefix.startsWith(`${service.prefix}/`)),
    isInner: prefixes.some((prefix) => prefix !== '' && service.prefix.startsWith(`${prefix}/`)),
  });
  const [first, ...others] = site.services;
  const services = [plan(first), ...others.map(plan)] as const;
  const bare = services.filter(({ prefix }) => prefix === '');
  for (const [i, service] of bare.entries()) {
    for (const other of bare.slice(i + 1)) assertApart(service, other);
    for (const other of services) if (other.prefix !== '') assertOutside(service, other);
  }
  const answered = new Set(services.flatMap(({ routes }) => routes.flatMap((route) => route.methods)));
  const methods = answered.delete('OPTIONS') ? [...[...answered].sort(), 'OPTIONS'] : [];
  return { ...site, services, methods };
}

function collectRoutes(table: readonly RouteInfo[], exporter: ExporterLimits): PublicRoute[] {
  const { gateway, methods: forwardable = /^/ } = exporter;
  const ownHeads = new Set(table.filter(({ method }) => method === 'HEAD').map(({ pattern }) => pattern));
  const constraints = new Map();
  return table
    .filter((route) => route.public)
    .map((route) => {
      const { method, path, pattern } = route;
      if (method === 'CONNECT' || !forwardable.test(method))
        throw new GatewayError(path, `${gateway} can't forward the method ${method}; make the route private`);
      const segments = compilePath(path, constraints);
      const head = method === 'GET' && !ownHeads.has(pattern) ? ['HEAD'] : [];
      const methods = [...new Set([method, ...head, 'OPTIONS'])];
      const certain = segments.every((segment) => segment.kind !== 'param' || segment.constraint === null);
      return { ...route, segments, methods, certain, title: describeRoute(route) };
    });
}

/** Describes a route and its query parameters in one line: `GET /users/:id (query: q, page)`. */
function describeRoute({ method, path, params }: RouteInfo): string {
  const query = params === null ? 'any' : params.length === 0 ? 'none' : params.join(', ');
  // A comment ends where its line ends, and Caddy replaces `{$NAME}` even in a comment.
  return escapeControls(`${method} ${path} (query: ${query})`).replaceAll('{$', '{ $');
}

function assertApart(one: PlannedService, other: PlannedService): void {
  for (const route of one.routes) {
    const twin = other.routes.find(({ segments }) => overlap(route.segments, segments));
    if (twin === undefined) continue;
    const reason = `${nameOf(route, one)} and ${nameOf(twin, other)} are public and may have the same path`;
    throw new GatewayError(route.path, `${reason}; give one of the services a prefix, or change a path`);
  }
}

/** The paths below a prefix belong to its service, whether or not it has a route for them. */
function assertOutside(service: PlannedService, { name, prefix, routes: [example] }: PlannedService): void {
  const texts = prefix.split('/').slice(1);
  const space = texts.map((text): Segment => ({ kind: 'static', text }));
  const route = service.routes.find(({ segments }) => overlap(segments.slice(0, texts.length), space));
  if (route === undefined) return;
  const shown = example === undefined ? '' : `, which has ${example.method} ${example.path}`;
  const reason = `is public and may have a path below ${prefix}, the prefix of ${name}${shown}`;
  throw new GatewayError(route.path, `${nameOf(route, service)} ${reason}; change the path or the prefix`);
}

function nameOf({ method, path }: PublicRoute, { name }: PlannedService): string {
  return `${method} ${path} of ${name}`;
}

/** Whether a path may match both, as far as a gateway sees it. */
function overlap(a: readonly Segment[], b: readonly Segment[]): boolean {
  for (let i = 0; ; i += 1) {
    const [left, right] = [a[i], b[i]];
    if (left === undefined || right === undefined) return left === right;
    if (isEmpty(left) || isEmpty(right)) return isEmpty(left) && isEmpty(right);
    if (left.kind === 'wildcard' || right.kind === 'wildcard') return true;
    if (left.kind === 'static' && right.kind === 'static' && left.text !== right.text) return false;
  }
}

/** An empty segment is the last one: a path that ends in a slash. */
function isEmpty(segment: Segment): boolean {
  return segment.kind === 'static' && segment.text === '';
}
