/*
 * Writes the public surface as a site of a Caddyfile (https://caddyserver.com/docs/caddyfile).
 *
 * Caddy's path matchers compare a decoded and cleaned path, but the service gets the path as it was sent, which is
 * `{http.request.uri}`. So maps of the latter decide: each service has one, with a column for each method. Caddy
 * evaluates a map only when its result is asked for.
 */

import type { ExporterArguments, GatewayOptions, GatewayService, ListenerOptions } from './exporter-options.js';
import { createPlan, formatHeader, titleOf, type PlannedService } from './plan.js';
import { METHOD_NOT_ALLOWED, NOT_FOUND, UNAVAILABLE } from './refusals.js';
import { createRules, GUARDS, ruledMethods } from './rules.js';
import { SENT } from './spelling.js';
import { indent } from './text.js';
import type { RouteTable, Surface } from './surface.js';

/**
 * One site, with its address. With `tls`, Caddy's global option `auto_https disable_redirects` keeps it from listening
 * on port 80 as well.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a route that Caddy can't be told, and for services that claim one path
 */
export function toCaddy(router: RouteTable, options: GatewayOptions): string;
export function toCaddy(services: readonly GatewayService[], options?: ListenerOptions): string;
export function toCaddy(...args: ExporterArguments): string {
  const plan = createPlan('toCaddy', args);
  const { services, listen, hosts, tls, include } = plan;
  const scheme = tls === undefined ? 'http' : 'https';
  const names = hosts.length === 0 ? [''] : hosts;
  const lines = [
    formatHeader(plan),
    `${names.map((name) => `${scheme}://${name}:${listen.port}`).join(', ')} {`,
    ...indent([
      ...(listen.host === '*' ? [] : [`bind ${listen.host.replace(/^\[|\]$/g, '')}`]),
      ...(tls === undefined ? [] : [`tls "${tls.certificate}" "${tls.key}"`]),
      ...(include === undefined ? [] : [`import "${include}"`]),
      'route {',
      ...indent([REQUEST, ...services.flatMap(formatService), ...formatVerdict(services)]),
      '}',
      ERRORS,
    ]),
    '}',
    '',
  ];
  return lines.join('\n');
}

const REQUEST = `# A request has the id that its client gave it, if that is a valid one; every reply has one.
map {http.request.header.X-Request-Id} {postern_id} {
  \`~^([A-Za-z0-9._-]{1,128})$\` $1
  default {http.request.uuid}
}
vars postern_id {postern_id}
header ?X-Request-Id {http.vars.postern_id}

# The path as it was sent and as the service gets it: percent-encoded, without the query.
map {http.request.uri} {postern_sent} {
  \`~^(/[^?#]*)(?:\\?[^#]*)?$\` $1
  default ""
}
# Refused is what two programs could read differently.
map {postern_sent} {postern_path} {
${GUARDS.map(({ note, pattern }) => `  # ${note}\n  \`~${pattern}\` ""\n`).join('')}  default {postern_sent}
}
vars postern_path {postern_path}`;

function formatService(service: PlannedService): string[] {
  const { surface } = service;
  const { methods, ownOptions, answers } = surface;
  if (answers.length === 0) return [];
  const of = (what: string): string => variable(service, what);
  const columns = ruledMethods(surface);
  const inputs = new Set<string>();
  const rows = createRules(service, { gateway: 'Caddy', spelling: SENT }).flatMap(
    ({ notes, exact, pattern, opens, closes }) => {
      const cells = columns.map((method) =>
        opens.includes(method) ? 'public' : closes.includes(method) ? 'private' : '-',
      );
      // Caddy refuses a map with one input twice. Two routes may have the same, since a constraint may match
      // everything: a group around the second makes it another text.
      let input = exact ?? `\`~${pattern}\``;
      while (inputs.size === inputs.add(input).size) input = input.replace(/^`~(.*)`$/, '`~(?:$1)`');
      return [...notes.map(({ text }) => `# ${text}`), `${input} ${cells.join(' ')}`];
    },
  );
  const own = ownOptions ? of('own_options') : '';
  const options = of('options');
  return [
    '',
    `# The service ${titleOf(service)}. For each method, the first line that says something decides, as the router prefers its routes.`,
    ...formatMap(
      '{http.vars.postern_path}',
      columns.map((method) => (method === 'OPTIONS' ? own : of(method))).join(' '),
      rows,
      columns.map(() => '""').join(' '),
    ),
    '# OPTIONS, where it has no route of its own, is public with any other method.',
    ...formatMap(`"${own}: ${methods.map(of).join(' ')}"`, options, ['`~^public|^:.*public` public']),
    ...formatMap(
      '{http.request.method}',
      of('asked'),
      answers.flatMap(([method, names]) => names.map((name) => `${name} ${of(method)}`)),
    ),
  ];
}

function formatVerdict(services: readonly PlannedService[]): string[] {
  const claimed = services.filter(({ surface }) => surface.answers.length > 0);
  const allow = claimed.flatMap((service) =>
    service.surface.answers.map(([method, names]) => ({
      scope: variable(service, method),
      allowed: variable(service, `${method}_allow`),
      names,
    })),
  );
  return [
    '',
    '# The service that the request is for.',
    ...claimed.flatMap((service) => {
      const asked = variable(service, 'asked');
      const matcher = `@${service.name}`;
      return [`${matcher} vars ${asked} public`, `handle ${matcher} {`, ...indent(formatProxy(service)), '}'];
    }),
    '',
    '# It is for none: 405 where another method is public, else 404.',
    ...allow.flatMap(({ scope, allowed, names }) => formatMap(scope, allowed, [`public ", ${names.join(', ')}"`])),
    ...formatMap(`"${allow.map(({ allowed }) => allowed).join('')}"`, '{postern_allow}', ['`~^, (.*)$` $1']),
    '@refused vars {postern_allow} ""',
    'error @refused 404',
    'header Allow {postern_allow}',
    'error 405',
  ];
}

function formatProxy({ prefix, protocol, upstreams, surface }: PlannedService): string[] {
  return [
    ...(prefix === '' ? [] : [`uri strip_prefix ${prefix}`]),
    `reverse_proxy ${upstreams.map(({ host, port }) => `${protocol}://${host}:${port}`).join(' ')} {`,
    ...indent([...(upstreams.length > 1 ? formatBalancing(surface) : []), PROXY]),
    '}',
  ];
}

const PROXY = `flush_interval 10ms
header_up X-Request-Id {http.vars.postern_id}
header_up -Forwarded
transport http {
  dial_timeout 5s
  response_header_timeout 300s
  keepalive 60s
  keepalive_idle_conns_per_host 64
  compression off
}`;

/**
 * A request whose connection is refused goes to another instance, and the one that refused gets none for a while. Caddy
 * 2.6 can't do that with a request that has a body, which it has closed by then; so where the table has the monitoring
 * endpoints, instances are also asked whether they are alive.
 */
function formatBalancing({ patterns }: Surface): string[] {
  const ping = patterns.find(({ path, routes }) => PING.test(path) && routes.some(({ method }) => method === 'GET'));
  return [
    'lb_policy round_robin',
    'lb_try_duration 5s',
    'lb_try_interval 50ms',
    'fail_duration 10s',
    ...(ping === undefined ? [] : [`health_uri ${ping.path}`, 'health_interval 1s', 'health_timeout 2s']),
  ];
}

const PING = /^\/[A-Za-z0-9._~-]+\/ping\/$/;

const ERRORS = `# What Caddy says itself has the uniform body.
handle_errors {
  header Content-Type application/json
  header ?X-Request-Id {http.vars.postern_id}
${[NOT_FOUND, METHOD_NOT_ALLOWED, ...UNAVAILABLE]
  .map(
    ({ status, body }) =>
      `  @status${status} expression {http.error.status_code} == ${status}\n  respond @status${status} \`${body}\` ${status}\n`,
  )
  .join('')}}`;

function formatMap(source: string, targets: string, entries: readonly string[], fallback: string = '""'): string[] {
  return [`map ${source} ${targets} {`, ...indent([...entries, `default ${fallback}`]), '}'];
}

/** What is known of a service, such as what its routes make of a method: `{postern_users_get}`. */
function variable({ name }: PlannedService, what: string): string {
  return `{postern_${name}_${what}}`.toLowerCase();
}
