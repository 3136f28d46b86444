/*
 * Writes the public surface as `HTTPRoute` manifests of the Kubernetes Gateway API (https://gateway-api.sigs.k8s.io).
 *
 * Expressions are RE2, as Envoy and most implementations have them, and anchored. Which of two rules wins when one of
 * them is an expression is left to the implementation, and no rule can refuse. So a private route inside a public one,
 * `/users/me` inside `/users/:id`, can't be told. What no rule matches is 404.
 */

import type { Dialect } from './constraint-pattern.js';
import { GatewayError } from './error.js';
import {
  assertUnused,
  DNS_NAME,
  type ExporterArguments,
  type GatewayOptions,
  type GatewayService,
  type ListenerOptions,
  type Upstream,
} from './exporter-options.js';
import { pathIncludes, pathsOverlap } from './overlap.js';
import { compilePathPattern } from './path-pattern.js';
import { createPlan, formatHeader, type Plan, type PlannedService } from './plan.js';
import { SENT_UNGUARDED } from './spelling.js';
import { describeRoute, type Leaf, type RouteTable, type Surface } from './surface.js';

/** Options of {@link toGatewayApi}; `upstream` names a Service and its port, `http://users.prod:8000`. */
export interface GatewayApiOptions extends GatewayOptions {
  readonly gateway: string;
}

/** Options of {@link toGatewayApi} for several services. */
export interface GatewayApiListenerOptions extends ListenerOptions {
  readonly gateway: string;
}

/**
 * `HTTPRoute` manifests as YAML: one for each service, or several where one would be beyond the limits of the resource.
 *
 * @throws {TypeError} for a wrong option, an `upstream` that is an address among them
 * @throws {GatewayError} for a route that an HTTPRoute can't express, and for services that claim one path
 */
export function toGatewayApi(router: RouteTable, options: GatewayApiOptions): string;
export function toGatewayApi(services: readonly GatewayService[], options: GatewayApiListenerOptions): string;
export function toGatewayApi(...args: ExporterArguments): string {
  const plan = createPlan('toGatewayApi', args);
  const { gateway, namespace, hosts } = plan;
  assertUnused(plan, ['tls', 'include'], 'the Gateway API');
  if (gateway === undefined)
    throw new TypeError('option "gateway" is missing; give the name of the Gateway that the routes attach to');
  const unknown = hosts.find((host) => /^[\d.]+$/.test(host) || !DNS_NAME.test(host));
  if (unknown !== undefined)
    throw new TypeError(
      `option "hosts" has ${JSON.stringify(unknown)}, and an HTTPRoute knows DNS names only; give names such as "users.example.com"`,
    );
  const manifests = plan.services.flatMap((service) => createManifests(service, plan));
  return `${formatHeader(plan)}\n${manifests.map((manifest) => formatManifest(manifest, namespace, gateway)).join('---\n')}`;
}

/** One rule of an HTTPRoute. */
interface RouteRule {
  readonly notes: readonly string[];
  readonly methods: readonly string[];
  readonly type: 'Exact' | 'RegularExpression';
  readonly value: string;
  /** The path that the service gets, where it is another. */
  readonly rewrite: string | undefined;
}

interface Manifest {
  readonly name: string;
  readonly rules: readonly RouteRule[];
  readonly hosts: readonly string[];
  readonly backends: readonly Backend[];
  readonly secure: boolean;
}

interface Backend {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly port: number;
}

/** Limits of the resource (its CRD, `standard-install.yaml`); `MAX_MATCHES` is for all rules of one HTTPRoute. */
const MAX_RULES = 16;
const MAX_HOSTS = 16;
const MAX_PATH = 1024;
const MAX_MATCHES = 127;
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH']);

const DIALECT: Dialect = { gateway: 'the Gateway API', spelling: SENT_UNGUARDED };

function createManifests(service: PlannedService, { hosts }: Plan): Manifest[] {
  const { name, protocol, surface, upstreams } = service;
  const backends = upstreams.map(createBackend);
  assertExpressible(surface);
  const split = splitRules(surface.leaves.flatMap((leaf) => createRule(leaf, service)));
  const manifests: Manifest[] = [];
  for (let i = 0; i === 0 || i < hosts.length; i += MAX_HOSTS)
    for (const rules of split)
      manifests.push({
        name: manifests.length === 0 ? name : `${name}-${manifests.length + 1}`,
        rules,
        hosts: hosts.slice(i, i + MAX_HOSTS),
        backends,
        secure: protocol === 'https',
      });
  return manifests;
}

function createBackend({ host, port }: Upstream): Backend {
  const [, name, namespace] =
    /^([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.svc(?:\.cluster\.local)?)?)?$/.exec(
      host,
    ) ?? [];
  if (name === undefined)
    throw new TypeError(
      `option "upstream" has the host "${host}"; name a Service: "http://users:8000" or "http://users.prod:8000"`,
    );
  return { name, namespace, port };
}

function assertExpressible({ leaves }: Surface): void {
  for (const [i, { path, segments, closes }] of leaves.entries()) {
    for (const method of closes) {
      const around = leaves.find(
        (other, j) => j > i && other.opens.has(method) && pathsOverlap(segments, other.segments),
      );
      if (around !== undefined) {
        throw new GatewayError(
          path,
          `${method} is private here and public at ${around.path}, which matches some of the same paths; an HTTPRoute can't tell which of the two wins. Make both public or both private, or constrain the outer one`,
        );
      }
    }
  }
}

function createRule(leaf: Leaf, { surface, prefix, inner }: PlannedService): RouteRule[] {
  const { path, segments, routes, opens } = leaf;
  const { leaves } = surface;
  if (opens.size === 0) return [];
  for (const method of opens) {
    if (!METHODS.has(method))
      throw new GatewayError(path, `an HTTPRoute can't match the method ${method}; make it private`);
  }
  const test = compilePathPattern(leaf, DIALECT);
  if (test === null) return [];
  const isStatic = segments.every(({ kind }) => kind === 'static');
  const value = isStatic
    ? segments.map((segment) => `/${segment.kind === 'static' ? encodeSegment(segment.text) : ''}`).join('')
    : test.within;
  if (prefix !== '' && !isStatic)
    throw new GatewayError(
      path,
      `an HTTPRoute can take the prefix ${prefix} off a static path only, and this one has a parameter; leave the prefix out, or name the paths`,
    );
  // A path below a longer prefix belongs to the service of that one.
  if (inner.some((other) => `${prefix}${value}` === other || `${prefix}${value}`.startsWith(`${other}/`))) return [];
  if (prefix.length + value.length > MAX_PATH)
    throw new GatewayError(
      path,
      `its match is ${prefix.length + value.length} characters long and an HTTPRoute takes ${MAX_PATH}; shorten its constraints`,
    );
  const methods = new Set(opens);
  // A private OPTIONS route takes the place of the answer that the service gives by itself.
  const closing = leaves.filter((other) => other.closes.has('OPTIONS') && pathsOverlap(other.segments, segments));
  const partial = closing.find((other) => !pathIncludes(other.segments, segments));
  if (partial !== undefined)
    throw new GatewayError(
      partial.path,
      `OPTIONS is private here and public at a part of ${path}; an HTTPRoute can't tell which part. Make it public`,
    );
  if (closing.length === 0) methods.add('OPTIONS');
  const notes = routes.filter(({ method }) => opens.has(method)).map(describeRoute);
  if (test.within !== test.around)
    notes.push('refused although the route matches: segments with characters beyond U+FFFF, which it counts as two');
  const rewrite = prefix === '' ? undefined : value;
  const type = isStatic ? 'Exact' : 'RegularExpression';
  return [{ notes, methods: [...methods].sort(), type, value: prefix + value, rewrite }];
}

/** Only what a path may not have is escaped (RFC 3986, section 3.3). */
function encodeSegment(text: string): string {
  return encodeURIComponent(text).replace(/%(?:24|26|2B|2C|3A|3B|3D|40)/g, decodeURIComponent);
}

/** As few manifests as the limits allow, in order. */
function splitRules(rules: readonly RouteRule[]): RouteRule[][] {
  const manifests: RouteRule[][] = [];
  let matches = Infinity;
  for (const rule of rules) {
    const last = manifests.at(-1);
    if (last === undefined || last.length === MAX_RULES || matches + rule.methods.length > MAX_MATCHES) {
      manifests.push([rule]);
      matches = 0;
    } else last.push(rule);
    matches += rule.methods.length;
  }
  return manifests;
}

function formatManifest(
  { name, rules, hosts, backends, secure }: Manifest,
  namespace: string | undefined,
  gateway: string,
): string {
  const lines = [
    'apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:',
    `  name: ${scalar(name)}`,
    ...(namespace === undefined ? [] : [`  namespace: ${scalar(namespace)}`]),
    `spec:\n  parentRefs:\n    - name: ${scalar(gateway)}`,
    ...(hosts.length === 0 ? [] : ['  hostnames:', ...hosts.map((host) => `    - ${scalar(host)}`)]),
    '  rules:',
  ];
  for (const { notes, methods, type, value, rewrite } of rules)
    lines.push(
      ...notes.map((note) => `    # ${note}`),
      '    - matches:',
      ...methods.map(
        (method) => `        - method: ${method}
          path:
            type: ${type}
            value: ${scalar(value)}`,
      ),
      ...(rewrite === undefined
        ? []
        : [
            `      filters:
        - type: URLRewrite
          urlRewrite:
            path:
              type: ReplaceFullPath
              replaceFullPath: ${scalar(rewrite)}`,
          ]),
      '      backendRefs:',
      ...(secure ? ['        # It speaks TLS, which needs a BackendTLSPolicy beside this route.'] : []),
      ...backends.flatMap((backend) => [
        `        - name: ${scalar(backend.name)}`,
        ...(backend.namespace === undefined || backend.namespace === namespace
          ? []
          : [`          namespace: ${scalar(backend.namespace)} # needs a ReferenceGrant there, if it is another`]),
        `          port: ${backend.port}`,
      ]),
    );
  return `${lines.join('\n')}\n`;
}

/** A YAML string, quoted unless it can be read as nothing else (YAML 1.1 and 1.2). */
function scalar(text: string): string {
  const plain =
    /^(?:[a-z][a-z0-9.-]*|\/[A-Za-z0-9/._-]*)$/.test(text) && !/^(?:y|n|yes|no|on|off|true|false|null)$/.test(text);
  return plain ? text : `'${text.replaceAll("'", "''")}'`;
}
