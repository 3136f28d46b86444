/*
 * Writes `HTTPRoute` manifests of the Kubernetes Gateway API (https://gateway-api.sigs.k8s.io).
 *
 * Expressions are RE2, as Envoy and most implementations have them, and anchored. They compare the undecoded path.
 * A request that no rule matches gets a 404 from the implementation.
 */

import { DNS_NAME, GatewayError } from './exporter-options.js';
import type { ExporterArguments, GatewayOptions, ListenerOptions } from './exporter-options.js';
import { formatRegex } from './path-pattern.js';
import { createPlan, type Plan, type PlannedService, type PublicRoute } from './plan.js';
import { formatHeader, REMOVED } from './text.js';

/** Options of {@link toGatewayApi}; `upstream` names a Service and its port, `http://users.prod:8000`. */
export interface GatewayApiOptions extends GatewayOptions {
  readonly gateway: string;
}

/** Options of {@link toGatewayApi} for several services. */
export interface GatewayApiListenerOptions extends ListenerOptions {
  readonly gateway: string;
}

/**
 * Writes `HTTPRoute` manifests as YAML: one for each service, or several if one would exceed the resource's limits.
 *
 * @throws {TypeError} for a wrong option, an `upstream` that is an address among them
 * @throws {GatewayError} for a route that an HTTPRoute can't express, and for public routes of two services that it
 * can't tell apart
 */
export function toGatewayApi(...args: ExporterArguments<GatewayApiOptions, [GatewayApiListenerOptions]>): string {
  const options = ['hosts', 'gateway', 'namespace'] as const;
  const methods = /^(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|TRACE|PATCH)$/;
  const plan = createPlan({ name: 'toGatewayApi', gateway: 'an HTTPRoute', options, methods }, args);
  const { gateway, hosts } = plan;
  if (gateway === undefined)
    throw new TypeError('option "gateway" is missing; give the name of the Gateway that the routes attach to');
  const unknown = hosts.find((host) => /^[\d.]+$/.test(host) || !DNS_NAME.test(host));
  if (unknown !== undefined) {
    const remedy = 'an HTTPRoute knows DNS names only; give names such as "users.example.com"';
    throw new TypeError(`option "hosts" has ${JSON.stringify(unknown)}, and ${remedy}`);
  }
  const manifests = plan.services.flatMap((service) => formatManifests(service, gateway, plan));
  return `${formatHeader(plan)}\n${manifests.join('---\n')}`;
}

/** Maximum rules, and maximum hosts, of one HTTPRoute (its CRD, `standard-install.yaml`). */
const MAX_ITEMS = 16;
const MAX_PATH = 1024;

/** Formats as few manifests as the limits allow, in the order of the routes. */
function formatManifests(service: PlannedService, gateway: string, { services, hosts, namespace }: Plan): string[] {
  const { name, prefix, inner, routes, upstreams } = service;
  for (const { path } of upstreams.length > MAX_ITEMS ? routes : [])
    throw new GatewayError(path, `its rule would have ${upstreams.length} upstreams; a rule takes ${MAX_ITEMS}`);
  const backends = formatBackends(service, namespace);
  // A path below a longer prefix belongs to the service of that prefix.
  const own = routes.filter(({ path }) => !inner.some((other) => `${prefix}${path}/`.startsWith(`${other}/`)));
  const split = splitItems(own.map((route) => formatRule(route, prefix) + backends));
  const groups = hosts.length === 0 ? [[]] : splitItems(hosts.map((host) => `    - ${scalar(host)}\n`));
  // Another service may be called `users-2`, and no service has a dot in its name.
  const markOf = (n: number): string => (services.some((other) => other.name === `${name}-${n}`) ? '.' : '-');
  const manifests = groups.flatMap((group) => split.map((rules) => ({ group, rules })));
  return manifests.map(
    ({ group, rules }, i) => `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: ${scalar(i === 0 ? name : `${name}${markOf(i + 1)}${i + 1}`)}
${namespace === undefined ? '' : `  namespace: ${scalar(namespace)}\n`}spec:
  parentRefs:
    - name: ${scalar(gateway)}
${group.length === 0 ? '' : `  hostnames:\n${group.join('')}`}  rules:
${rules.join('')}`,
  );
}

/** Splits rules or hosts. A route has three methods at most, so 16 rules stay below the limit of 128 matches. */
function splitItems(items: readonly string[]): string[][] {
  const length = Math.ceil(items.length / MAX_ITEMS);
  return Array.from({ length }, (_, i) => items.slice(i * MAX_ITEMS, (i + 1) * MAX_ITEMS));
}

/** Characters that may be escaped; the others are so rarely that `Exact`, which every implementation has, is better. */
const ESCAPABLE = /[^A-Za-z0-9._-]/;

function formatRule({ path, segments, methods, title }: PublicRoute, prefix: string): string {
  const fixed = segments.every(({ kind }) => kind === 'static');
  if (prefix !== '' && !fixed) {
    const remedy = 'and this path has a parameter; leave the prefix out, or name the paths';
    throw new GatewayError(path, `an HTTPRoute can remove the prefix ${prefix} from a static path only, ${remedy}`);
  }
  const type = fixed && !ESCAPABLE.test(path.replaceAll('/', '')) ? 'Exact' : 'RegularExpression';
  const value = type === 'Exact' ? prefix + path : formatRegex(segments, { prefix, escapable: ESCAPABLE, rest: '.+$' });
  const reason = `its match has ${value.length} characters and an HTTPRoute takes ${MAX_PATH}; shorten the path`;
  if (value.length > MAX_PATH) throw new GatewayError(path, reason);
  const match = `path:\n            type: ${type}\n            value: ${scalar(value)}`;
  const rewrite = `        - type: URLRewrite
          urlRewrite:
            path:
              type: ReplaceFullPath
              replaceFullPath: ${scalar(path.split('/').map(encodeURIComponent).join('/'))}
`;
  return `    # ${title}
    - matches:
${methods.map((method) => `        - method: ${method}\n          ${match}\n`).join('')}${FILTER}${prefix && rewrite}`;
}

/** The service serves only public routes to a request with this header. */
const FILTER = `      filters:
        - type: RequestHeaderModifier
          requestHeaderModifier:
            set:
              - name: X-Postern-Scope
                value: public
            remove:
${REMOVED.map((name) => `              - ${name}\n`).join('')}`;

const SERVICE =
  /^([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.svc(?:\.cluster\.local)?)?)?$/;

function formatBackends({ protocol, upstreams }: PlannedService, own: string | undefined): string {
  const backends = upstreams.map(({ host, port }) => {
    const [, name, namespace] = SERVICE.exec(host) ?? [];
    const remedy = 'name a Service: "http://users:8000" or "http://users.prod:8000"';
    if (name === undefined) throw new TypeError(`option "upstream" has the host "${host}"; ${remedy}`);
    const grant = '# needs a ReferenceGrant there, if it is another';
    const isOwn = namespace === undefined || namespace === own;
    const foreign = isOwn ? '' : `          namespace: ${scalar(namespace)} ${grant}\n`;
    return `        - name: ${scalar(name)}\n${foreign}          port: ${port}\n`;
  });
  const tls = protocol === 'http' ? '' : '        # It speaks TLS, which needs a BackendTLSPolicy next to this route.\n';
  return `      backendRefs:\n${tls}${backends.join('')}`;
}

/** A YAML string, quoted unless it can be read as nothing else (YAML 1.1 and 1.2). */
function scalar(text: string): string {
  const plain =
    /^(?:[a-z][a-z0-9.-]*|\/[A-Za-z0-9/._-]*)$/.test(text) && !/^(?:y|n|yes|no|on|off|true|false|null)$/.test(text);
  return plain ? text : `'${text.replaceAll("'", "''")}'`;
}
