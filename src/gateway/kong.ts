/*
 * Writes a declarative file of Kong 3, for decK (https://developer.konghq.com/deck).
 *
 * Kong compares and forwards a normalized path: reserved characters unchanged, all others decoded, dot segments
 * and double slashes resolved. Both of its engines are served: PCRE (router flavour `traditional`) and Rust's (others).
 */

import type { ExporterArguments } from './exporter-options.js';
import { formatRegex, formatText } from './path-pattern.js';
import { createPlan, type Plan, type PlannedService } from './plan.js';
import { formatRefusal, REMOVED } from './text.js';

/** Characters whose escapes Kong keeps (`kong/tools/uri.lua`). */
const RESERVED = /[!*'();:@&=+$,/?%#[\]]/;

/**
 * Writes a decK file, as JSON: each service with its routes, and an upstream with targets if it has several addresses.
 *
 * Query parameters that a route allows are its tags: `query:q`, `query-any` or `query-none`. Everything that no route
 * matches, a wrong method included, is a 404 of Kong.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a public route with a method that Kong can't forward (TRACE, CONNECT, `M-SEARCH`), and for
 * public routes of two services that Kong can't tell apart
 */
export function toKong(...args: ExporterArguments): string {
  const methods = /^(?!TRACE$)[A-Z]+$/;
  const plan = createPlan({ name: 'toKong', gateway: 'Kong', options: ['hosts'], methods }, args);
  const upstreams = plan.services.flatMap(({ name, upstreams: instances }) => {
    const targets = instances.map(({ host, port }) => ({ target: `${host}:${port}`, weight: 100 }));
    return targets.length > 1 ? [{ name, targets, tags: ['postern'] }] : [];
  });
  const names = new Set<string>();
  const services = plan.services.map((service) => createService(service, plan, names));
  const file = { _format_version: '3.0', services, ...(upstreams.length === 0 ? {} : { upstreams }) };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** @param names of all routes so far; added to */
function createService(service: PlannedService, { hosts, methods }: Plan, names: Set<string>): object {
  const { name, protocol, prefix, upstreams, isInner } = service;
  const [{ host, port }] = upstreams;
  const streaming = { request_buffering: false, response_buffering: false };
  const common = { ...(hosts.length > 0 ? { hosts } : {}), strip_path: false, preserve_host: true, ...streaming };
  // Kong compares the longer prefix first. The even number is for the paths that no route of the prefix matches.
  const priority = 2 * prefix.length;
  const routes = service.routes.map(({ path, segments, params, methods: own }, i) => {
    const expression = formatRegex(segments, { escapable: RESERVED, rest: '[\\s\\S]+$' }).slice(1, -1);
    const words = [i + 1, ...(path.match(/[A-Za-z0-9]+/g) ?? [])].join('-');
    // The second route of `users` may be called as the first one of `users-2`. No service has a dot in its name.
    const mark = names.has(`${name}-${words}`.slice(0, 120)) ? '.' : '-';
    const routeName = `${name}${mark}${words}`.slice(0, 120);
    names.add(routeName);
    return {
      name: routeName,
      methods: own,
      // Kong adds the first anchor. Below a prefix, the path of the service is the first group.
      paths: [`~${prefix === '' ? expression : `${formatText(prefix)}(${expression})`}$`],
      ...common,
      regex_priority: priority + 1,
      tags: ['public', ...describeQuery(params)],
      plugins: [createTransformer(prefix)],
    };
  });
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
      { name: 'correlation-id', config: { header_name: 'X-Request-Id', generator: 'uuid', echo_downstream: false } },
    ],
    routes: isInner ? [...routes, { ...createRest(service), methods, ...common, regex_priority: priority }] : routes,
  };
}

/** Sets the scope on every request: `replace` for a header that the client sent, and `add` for the others. */
function createTransformer(prefix: string): object {
  const scope = { headers: ['X-Postern-Scope:public'] };
  const rewrite = prefix === '' ? {} : { uri: '$(uri_captures[1])' };
  return {
    name: 'request-transformer',
    config: { remove: { headers: REMOVED }, replace: { ...scope, ...rewrite }, add: scope },
  };
}

/**
 * Refuses the paths below a prefix that no route has: they must not reach the service of a shorter prefix. It needs
 * methods, as Kong prefers a route with methods, whatever the priorities.
 */
function createRest({ name, prefix }: PlannedService): object {
  const config = { status_code: 404, content_type: 'application/json', body: formatRefusal(404) };
  return {
    // With a hyphen, it could be the first route, `/rest`, of another service. No service has a dot in its name.
    name: `${name}.rest`,
    paths: [`~${formatText(prefix)}(?:/.*)?$`],
    tags: ['rest'],
    plugins: [{ name: 'request-termination', config }],
  };
}

function describeQuery(params: readonly string[] | null): string[] {
  if (params === null) return ['query-any'];
  return params.length === 0 ? ['query-none'] : params.map((param) => `query:${encodeURIComponent(param)}`);
}
