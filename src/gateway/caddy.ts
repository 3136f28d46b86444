/*
 * Writes a site of a Caddyfile (https://caddyserver.com/docs/caddyfile).
 *
 * Caddy's own path matchers compare a cleaned path without regard to case. So the routes are matchers over a variable:
 * the decoded path or, if that would hide a slash, the undecoded path.
 */

import { REQUEST_ID } from '../propagation/mesh-headers.js';
import { LISTENER, type ExporterArguments } from './exporter-options.js';
import { formatAnySegments, formatEither, formatText, PATH_END } from './path-pattern.js';
import { createPlan, type Plan, type PlannedService } from './plan.js';
import { formatBlock, formatHeader, formatRefusal, listMethods, REMOVED, titleOf } from './text.js';

/**
 * Writes one site, with its address. With `tls`, Caddy's global option `auto_https disable_redirects` keeps Caddy from
 * listening on port 80 as well.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a public CONNECT route, and for public routes of two services that Caddy can't tell apart
 */
export function toCaddy(...args: ExporterArguments): string {
  const plan = createPlan({ name: 'toCaddy', gateway: 'Caddy', options: LISTENER }, args);
  const { services, listen, tls, include } = plan;
  return [
    formatHeader(plan),
    ...formatBlock(`${tls === undefined ? 'http' : 'https'}://:${listen.port}`, [
      ...(listen.host === '*' ? [] : [`bind ${listen.host.replace(/^\[|\]$/g, '')}`]),
      ...(tls === undefined ? [] : [`tls "${tls.certificate}" "${tls.key}"`]),
      ...(include === undefined ? [] : [`import "${include}"`]),
      ...formatBlock('route', [
        REQUEST,
        ...formatHosts(plan),
        ...services.flatMap(formatService),
        ...services.flatMap(formatProxy),
        ...formatVerdict(plan),
      ]),
      '# Refusals of Caddy itself have the uniform body, and the id of the request.',
      ...ERRORS,
    ]),
    '',
  ].join('\n');
}

const REQUEST = `# A request has the id that its client gave it, if that is a valid one.
map {http.request.header.X-Request-Id} {postern_id} {
  \`~^(${REQUEST_ID})$\` $1
  default {http.request.uuid}
}
vars postern_id {postern_id}
# Of the protocols that a client may ask for, only WebSockets are forwarded.
@postern_upgrade not header_regexp Upgrade (?i)^websocket$
request_header @postern_upgrade -Upgrade

# The path that is compared: decoded, or as it was sent if decoding would hide a slash. It is a header until the request
# is forwarded, because matchers of variables take a \`{b}\` in a path for a placeholder.
map {http.request.uri} {postern_path} {
  \`~^([^?]*%2[Ff][^?]*)\` $1
  \`~^/(?:\\?|$)\` / # of an absolute-form without a path, too
  default {http.request.uri.path}
}
request_header X-Postern-Path {postern_path}`;

function formatHosts({ hosts }: Plan): string[] {
  const names = hosts.map((host) => formatText(host)).join('|');
  const matcher = names === '' ? 'header_regexp Host ,' : `not header_regexp Host \`(?i)^(?:${names})(?::[0-9]*)?$\``;
  return ['', '# Names that are not served.', `@postern_host ${matcher}`, 'error @postern_host 404'];
}

function formatService(service: PlannedService): string[] {
  const { name, prefix, routes, inner } = service;
  return [
    '',
    `# The public routes of ${titleOf(service)}.`,
    ...routes.flatMap(({ segments, title, ...route }, i) => {
      const pattern = formatEither(segments, prefix);
      return [
        `# ${title}`,
        `@${name}_${i + 1} header_regexp X-Postern-Path \`${pattern}\``,
        `vars @${name}_${i + 1} ${name} "{http.vars.${name}},${listMethods(route)}"`,
      ];
    }),
    ...inner.flatMap((other, i) => [
      `@${name}_inner_${i + 1} header_regexp X-Postern-Path \`^${formatText(other)}(?:/|${PATH_END})\``,
      `vars @${name}_inner_${i + 1} ${name} ""`,
    ]),
  ];
}

/** Forwards a request whose method is among those that the routes of its path have. */
function formatProxy(service: PlannedService): string[] {
  const { name, prefix, protocol, upstreams } = service;
  const asked = ['', '?'].map((mark) => `{http.vars.${name}}.contains("," + {http.request.method} + "${mark},")`);
  return [
    '',
    `vars ${name} "{http.vars.${name}},"`,
    `@${name} expression \`${asked.join(' || ')}\``,
    ...formatBlock(`handle @${name}`, [
      // `uri strip_prefix` would resolve dot segments and merge slashes.
      ...(prefix === '' ? [] : [`uri path_regexp ^${formatAnySegments(prefix)} ""`]),
      ...formatBlock(`reverse_proxy ${upstreams.map(({ host, port }) => `${protocol}://${host}:${port}`).join(' ')}`, [
        ...(upstreams.length > 1 ? BALANCING : []),
        PROXY,
      ]),
    ]),
  ];
}

const PROXY = `flush_interval 10ms
# The service serves only public routes to a request with this header.
header_up X-Postern-Scope public
header_up X-Request-Id {http.vars.postern_id}
${['X-Postern-Path', 'TE', ...REMOVED].map((name) => `header_up -${name}`).join('\n')}
transport http {
  dial_timeout 5s
  response_header_timeout 300s
  keepalive 60s
  keepalive_idle_conns_per_host 64
  compression off
}`;

/**
 * Balances instances. An instance that refuses a connection is skipped for that request only. Up to version 2.11.1,
 * Caddy has closed a request's body by then, can't repeat the request, and replies with 502 (caddyserver/caddy#7547).
 * So Caddy also asks which instances are there. A dot segment is a 400 before any middleware runs: middleware of the
 * application could reply with anything, such as a redirect or a page. If a proxy in between resolves the segment, the
 * request is a 404, unless middleware or a public route answers it.
 */
const BALANCING = [
  'lb_policy round_robin',
  'lb_try_duration 5s',
  'lb_try_interval 10ms',
  'health_uri /./postern/',
  ...formatBlock('health_headers', ['X-Postern-Scope public']),
  'health_status 4xx # which an instance that is there replies',
  'health_interval 1s',
  'health_timeout 5s',
];

function formatVerdict({ services, methods }: Plan): string[] {
  return [
    '',
    '# The path is public for other methods: 405. Else it is a 404.',
    `vars postern_methods "${services.map(({ name }) => `{http.vars.${name}}`).join('')}"`,
    ...methods.flatMap((method) => [
      `@postern_${method} vars_regexp postern_methods ,${method},`,
      `vars @postern_${method} postern_allow "{http.vars.postern_allow}, ${method}"`,
    ]),
    '@postern_refused vars_regexp allow postern_allow "^, (.+)$"',
    'header @postern_refused Allow {http.regexp.allow.1}',
    'error @postern_refused 405',
    'error 404',
  ];
}

const ERRORS = formatBlock('handle_errors', [
  'header Content-Type application/json',
  'header X-Request-Id {http.vars.postern_id}',
  ...([404, 405, 502, 503, 504] as const).flatMap((status) => [
    `@status${status} expression {http.error.status_code} == ${status}`,
    `respond @status${status} \`${formatRefusal(status)}\` ${status}`,
  ]),
]);
