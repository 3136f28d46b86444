/**
 * Writes the public surface as a site of a Caddyfile (https://caddyserver.com/docs/caddyfile).
 *
 * Caddy's path matchers see a decoded and cleaned path; `{http.request.uri}` is the one that it sends on. So maps of
 * that decide, which Caddy evaluates when they are asked for: each service has one, with a column for each method.
 */

import type { ExporterArguments, GatewayOptions, GatewayService, ListenerOptions } from './exporter-options.js';
import { createPlan, headerLines, type Plan, type PlannedService } from './plan.js';
import { METHOD_NOT_ALLOWED, NOT_FOUND, UNAVAILABLE } from './refusals.js';
import { createRules, decidedMethods, GUARDS, RE2 } from './rules.js';
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
  const names = hosts.length === 0 ? [''] : hosts;
  const lines = [
    ...headerLines(plan).map((line) => `# ${line}`),
    `${names.map((name) => `${tls === undefined ? 'http' : 'https'}://${name}:${listen.port}`).join(', ')} {`,
    ...indent([
      ...(listen.host === '*' ? [] : [`bind ${listen.host.replace(/^\[|\]$/g, '')}`]),
      ...(tls === undefined ? [] : [`tls "${tls.certificate}" "${tls.key}"`]),
      ...(include === undefined ? [] : [`import "${include}"`]),
      'route {',
      ...indent([...formatRequest(), ...services.flatMap(formatService), ...formatVerdict(plan)]),
      '}',
      ...formatErrors(),
    ]),
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

function formatRequest(): string[] {
  return [
    '# A request has the id that its client gave it, if that is a valid one; every reply has one.',
    ...formatMap(
      '{http.request.header.X-Request-Id}',
      ['postern_id'],
      ['`~^([A-Za-z0-9._-]{1,128})$` $1', 'default {http.request.uuid}'],
    ),
    'vars postern_id {postern_id}',
    'header ?X-Request-Id {http.vars.postern_id}',
    '',
    '# The path as it was sent and as the service gets it: percent-encoded, without the query.',
    ...formatMap('{http.request.uri}', ['postern_sent'], ['`~^(/[^?#]*)(?:\\?[^#]*)?$` $1', 'default ""']),
    '# Refused is what two programs could read differently.',
    ...formatMap(
      '{postern_sent}',
      ['postern_path'],
      [...GUARDS.flatMap(({ note, pattern }) => [`# ${note}`, `\`~${pattern}\` ""`]), 'default {postern_sent}'],
    ),
    'vars postern_path {postern_path}',
  ];
}

function formatService(service: PlannedService): string[] {
  const { name, prefix, surface } = service;
  const rules = createRules(service, { ...RE2, gateway: 'Caddy' });
  const columns = [...decidedMethods(surface), ...(surface.ownOptions ? ['OPTIONS'] : [])];
  const lines = [
    '',
    `# The service ${name}${prefix === '' ? '' : `, below ${prefix}`}: ${surface.open} of ${surface.total} routes are public.`,
  ];
  if (columns.length === 0) return lines;
  const inputs = new Set<string>();
  const rows = rules.flatMap(({ notes, test, opens, closes }) => {
    const cells = columns.map((method) =>
      opens.includes(method) ? 'public' : closes.includes(method) ? 'private' : '-',
    );
    // Caddy takes no input twice, and a constraint may say the same as none.
    let input = 'exact' in test ? test.exact : `\`~${test.pattern}\``;
    while (inputs.size === inputs.add(input).size) input = input.replace(/^`~(.*)`$/, '`~(?:$1)`');
    return [...notes.map(({ text }) => `# ${text}`), `${input} ${cells.join(' ')}`];
  });
  const values = decidedMethods(surface)
    .map((method) => `{${variable(service, method)}}`)
    .join(' ');
  const [any, options] = [variable(service, 'any'), variable(service, 'options')];
  lines.push(
    '# For each method, the first line that says something decides, as the router prefers its routes.',
    ...formatMap(
      '{http.vars.postern_path}',
      columns.map((method) => variable(service, method === 'OPTIONS' ? 'own_options' : method)),
      [...rows, `default ${columns.map(() => '""').join(' ')}`],
    ),
  );
  const isPublic = (pattern: string): string[] => [`\`~${pattern}\` public`, 'default ""'];
  if (!surface.ownOptions)
    lines.push(
      '# OPTIONS is public with any other method.',
      ...formatMap(`"${values}"`, [any, options], ['~public public public', 'default "" ""']),
    );
  else {
    lines.push(
      '# OPTIONS has routes of its own; where none of them matches, it is public with any other method.',
      ...formatMap(`"{${variable(service, 'own_options')}}: ${values}"`, [options], isPublic('^public|^:.*public')),
      ...formatMap(`"{${options}} ${values}"`, [any], isPublic('public')),
    );
  }
  const answers = [...surface.methods].filter(([method]) => method !== 'OPTIONS');
  return [
    ...lines,
    ...formatMap(
      '{http.request.method}',
      [variable(service, 'asked')],
      [
        ...answers.flatMap(([method, names]) => names.map((each) => `${each} {${variable(service, method)}}`)),
        `OPTIONS {${options}}`,
        'default ""',
      ],
    ),
  ];
}

function formatVerdict({ services }: Plan): string[] {
  const claimed = services.filter(({ surface }) => surface.methods.size > 0);
  const allow = claimed.flatMap((service) => [
    ...[...service.surface.methods]
      .filter(([method]) => method !== 'OPTIONS')
      .map(([method, answers]) => ({ value: variable(service, method), text: answers.join(', ') })),
    { value: variable(service, 'options'), text: 'OPTIONS' },
  ]);
  const handles = claimed.flatMap((service) => [
    `@${variable(service, 'asked')} vars {${variable(service, 'asked')}} public`,
    `handle @${variable(service, 'asked')} {`,
    ...indent(formatProxy(service)),
    '}',
  ]);
  const any = claimed.map((service) => `{${variable(service, 'any')}}`).join('');
  return [
    '',
    '# The service that the request is for.',
    ...handles,
    '',
    '# It is for none: 405 where another method is public, else 404.',
    ...(claimed.length === 0
      ? []
      : [
          ...formatMap(`"${any}"`, ['postern_refusal'], ['~public 405', 'default 404']),
          '@wrong_method vars {postern_refusal} 405',
          'handle @wrong_method {',
          ...indent([
            ...allow.flatMap(({ value, text }) =>
              formatMap(`{${value}}`, [`${value}_allow`], [`public ", ${text}"`, 'default ""']),
            ),
            ...formatMap(
              `"${allow.map(({ value }) => `{${value}_allow}`).join('')}"`,
              ['postern_allow'],
              ['`~^, (.*)$` $1', 'default ""'],
            ),
            'header Allow {postern_allow}',
            'error 405',
          ]),
          '}',
        ]),
    'error 404',
  ];
}

function formatProxy({ prefix, upstreams, surface }: PlannedService): string[] {
  return [
    ...(prefix === '' ? [] : [`uri strip_prefix ${prefix}`]),
    `reverse_proxy ${upstreams.map(({ protocol, host, port }) => `${protocol}://${host}:${port}`).join(' ')} {`,
    ...indent([
      ...(upstreams.length > 1 ? formatBalancing(surface) : []),
      'flush_interval 10ms',
      'header_up X-Request-Id {http.vars.postern_id}',
      'header_up -Forwarded',
      'transport http {',
      '  dial_timeout 5s',
      '  response_header_timeout 300s',
      '  keepalive 60s',
      '  keepalive_idle_conns_per_host 64',
      '  compression off',
      '}',
    ]),
    '}',
  ];
}

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

function formatErrors(): string[] {
  return [
    '# What Caddy says itself has the uniform body.',
    'handle_errors {',
    ...indent([
      'header Content-Type application/json',
      'header ?X-Request-Id {http.vars.postern_id}',
      ...[NOT_FOUND, METHOD_NOT_ALLOWED, ...UNAVAILABLE].flatMap(({ status, body }) => [
        `@status${status} expression {http.error.status_code} == ${status}`,
        `respond @status${status} \`${body}\` ${status}`,
      ]),
    ]),
    '}',
  ];
}

function formatMap(source: string, targets: readonly string[], entries: readonly string[]): string[] {
  return [`map ${source} ${targets.map((target) => `{${target}}`).join(' ')} {`, ...indent(entries), '}'];
}

function variable({ name }: PlannedService, what: string): string {
  return `postern_${name}_${what}`.toLowerCase();
}
