/*
 * Writes a `server` block of nginx (https://nginx.org/en/docs/http/ngx_http_rewrite_module.html).
 *
 * A `location` only sees the decoded path, in which an escaped slash is a slash and dot segments are resolved. So the
 * routes are `if`s, which `set` a variable and do nothing else, over the decoded path or the undecoded path.
 */

import { createHash } from 'node:crypto';
import { REQUEST_ID } from '../propagation/mesh-headers.js';
import { GatewayError, LISTENER, type ExporterArguments } from './exporter-options.js';
import { formatAnySegments, formatEither, formatText, PATH_END } from './path-pattern.js';
import { createPlan, type Plan, type PlannedService, type PublicRoute } from './plan.js';
import { formatBlock, formatHeader, formatRefusal, listMethods, REMOVED, titleOf } from './text.js';

/**
 * Writes one whole `server` block, with its `upstream` blocks before it, to be included in `http`.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a public route that nginx can't express (a TRACE route, an expression beyond 4,000
 * characters, a NOTIFY route, which it may send twice), and for routes of two services that nginx can't tell apart
 *
 * @example
 * import { toNginx } from 'postern/gateway';
 * console.log(toNginx(app.router, { service: 'users', upstream: 'http://users:8000' }));
 */
export function toNginx(...args: ExporterArguments): string {
  // nginx itself answers TRACE with 405. The other methods are not idempotent, and nginx repeats them if a connection
  // breaks, with one upstream, too: `proxy_next_upstream` excepts POST, LOCK and PATCH only.
  const methods = /^(?!(?:TRACE|NOTIFY|SUBSCRIBE|UNSUBSCRIBE|SOURCE|M-SEARCH)$)/;
  const plan = createPlan({ name: 'toNginx', gateway: 'nginx', options: LISTENER, methods }, args);
  const { services, include, listen, hosts } = plan;
  // All configurations of one nginx share the names of upstreams, so these contain a digest of listener and hosts. The
  // paths of refusals contain it, because a public route may have any path.
  const digest = createHash('sha256').update(JSON.stringify([listen, hosts])).digest('hex').slice(0, 8);
  const upstreamOf = ({ name }: PlannedService): string => `postern_${name}_${digest}`;
  const refusal = `/.postern_${digest}_`;
  return [
    formatHeader(plan),
    ...services.flatMap((service) => {
      const [several, option] = service.upstreams.length > 1 ? [[SEVERAL], ' max_fails=0'] : [[], ''];
      const servers = service.upstreams.map(({ host, port }) => `server ${host}:${port}${option};`);
      return ['', ...formatBlock(`upstream ${upstreamOf(service)}`, [...several, ...servers, 'keepalive 64;'])];
    }),
    '',
    ...formatBlock('server', [
      ...formatServer(plan, refusal),
      REQUEST,
      'set $postern_host $http_host;',
      `if ($postern_host = "") { set $postern_host ${services[0].name}; } # HTTP/1.0 has requests without Host`,
      ...(include === undefined ? [] : ['', `include "${include}";`]),
      PROXY,
      ...(services.some(({ protocol }) => protocol === 'https') ? [SECURE] : []),
      // A later service overrides an earlier one, so the longer prefix comes later.
      ...[...services]
        .sort((a, b) => a.prefix.length - b.prefix.length)
        .flatMap((service) => formatTests(service, upstreamOf(service))),
      LOCATION,
      ...formatRefusals(plan, refusal),
    ]),
    '',
  ].join('\n');
}

/** By default, nginx skips a server for 10 s. If each of two servers is restarted in that time, it skips both. */
const SEVERAL = '# A server that refuses a connection is skipped for that request only.';

function formatServer({ listen, hosts, tls }: Plan, refusal: string): string[] {
  const names = hosts.length === 0 ? ['^[^,]*$'] : hosts.map((host) => `^${formatText(host)}(?::[0-9]*)?$`);
  return [
    `listen ${listen.host}:${listen.port}${tls === undefined ? '' : ' ssl http2'};`,
    ...(tls === undefined ? [] : [`ssl_certificate "${tls.certificate}";`, `ssl_certificate_key "${tls.key}";`]),
    `server_name ${hosts.length === 0 ? '_' : hosts.join(' ')};`,
    // Requests are forwarded as sent. nginx takes these three from the first server of an address.
    'merge_slashes off;',
    'underscores_in_headers on;',
    'ignore_invalid_headers off;',
    'large_client_header_buffers 4 32k;',
    '',
    'set $postern_service "";',
    'set $postern_methods "";',
    'set $postern_id $request_id;',
    // An address with one server sends it the requests for every name, so `server_name` refuses none of them.
    '# The names that are served. A refusal, which no client can ask for, is sent to all.',
    'set $postern_served "";',
    `if ($uri ~ "^${formatText(refusal)}(?:400|50[234])\\z") { set $postern_served yes; }`,
    ...names.map((pattern) => `if ($http_host ~* "${pattern}") { set $postern_served yes; }`),
    'if ($postern_served = "") { return 404; }',
  ];
}

const REQUEST = `
# A request has the id that its client gave it, if that is a valid one.
if ($http_x_request_id ~ "^${REQUEST_ID}\\z") { set $postern_id $http_x_request_id; }
# Connections to a service are kept, except for WebSockets.
set $postern_upgrade "";
set $postern_connection "";
if ($http_upgrade ~* "^websocket\\z") { set $postern_upgrade websocket; set $postern_connection upgrade; }
if ($server_protocol = HTTP/1.0) { set $postern_upgrade ""; set $postern_connection ""; }`;

const PROXY = `
# Requests and replies stream, and a service has its own limits.
client_max_body_size 0;
proxy_request_buffering off;
proxy_buffering off;
proxy_buffer_size 16k; # for the head of a reply
proxy_buffers 8 16k;
# A reply is sent as the service sends it.
proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering X-Accel-Charset;
proxy_pass_header X-Accel-Redirect;
proxy_pass_header X-Accel-Expires;
proxy_pass_header X-Accel-Limit-Rate;
proxy_pass_header X-Accel-Buffering;
proxy_pass_header X-Accel-Charset;
proxy_pass_header Server;
proxy_pass_header date;
proxy_pass_header X-Pad;
proxy_http_version 1.1;
proxy_connect_timeout 5s;
proxy_send_timeout 300s;
proxy_read_timeout 300s;
# The service serves only public routes to a request with this header.
proxy_set_header X-Postern-Scope public;
proxy_set_header X-Request-Id $postern_id;
proxy_set_header X-Forwarded-For $remote_addr;
proxy_set_header X-Forwarded-Proto $scheme;
proxy_set_header X-Forwarded-Host $http_host;
proxy_set_header Host $postern_host;
proxy_set_header Connection $postern_connection;
proxy_set_header Upgrade $postern_upgrade;
${['Proxy-Connection', 'Keep-Alive', 'TE', ...REMOVED].map((name) => `proxy_set_header ${name} "";`).join('\n')}
# Only replies of nginx itself have these two: a service sends its own.
set $postern_reply_id "";
add_header X-Request-Id $postern_reply_id always;
add_header Allow $postern_allowed always;

# The path that is compared: decoded, or as it was sent if decoding would hide a slash or a dot segment.
# A named group keeps escapes as they are, while "set" with $1 would escape them once more.
if ($request_uri ~ "^(?<postern_sent>[^?]*)") { }
set $postern_path $uri;
if ($postern_sent ~ "%2[Ff]|/(?:\\.|%2[Ee]){1,2}(?:/|$)") { set $postern_path $postern_sent; }
# What the service gets: the target as it was sent, without a prefix.
set $postern_target $request_uri;`;

const SECURE = `# The certificate of a service over TLS is NOT verified, because no file of authorities exists on every
# system: set proxy_ssl_verify and proxy_ssl_trusted_certificate in an included file.
proxy_ssl_server_name on;
proxy_ssl_name $postern_tls_name;
set $postern_tls_name "";`;

function formatTests(service: PlannedService, upstream: string): string[] {
  const { name, prefix, protocol, routes, isInner } = service;
  const tls = protocol === 'https' ? ` set $postern_tls_name ${tlsNameOf(service)};` : '';
  const inner = `^${name} ${formatAnySegments(prefix)}(?<postern_inner>/.*)`;
  const rewrite = [
    'set $postern_whole "$postern_service $request_uri";',
    `if ($postern_whole ~ "${inner}") { set $postern_target $postern_inner; }`,
  ];
  return [
    '',
    `# The public routes of ${titleOf(service)}.`,
    ...(isInner ? [`if ($postern_path ~ "^${formatText(prefix)}(?:/|${PATH_END})") { set $postern_methods ""; }`] : []),
    ...routes.flatMap((route) => formatRoute(route, service)),
    `if ($postern_service = ${name}) { set $postern_upstream ${protocol}://${upstream};${tls} }`,
    ...(prefix === '' ? [] : rewrite),
  ];
}

/** Maximum bytes of an expression: nginx reads 4,096 of a text or a comment. A character has at most 4. */
const MAX_TEXT = 4000;
const COMMENT = /.{1,1000}/gsu;

function formatRoute(route: PublicRoute, { name, prefix }: PlannedService): string[] {
  const { path, segments, title } = route;
  const pattern = formatEither(segments, prefix);
  if (Buffer.byteLength(pattern) > MAX_TEXT)
    throw new GatewayError(path, `its expression has ${pattern.length} characters and nginx takes ${MAX_TEXT}; shorten it`);
  const then = `set $postern_service ${name}; set $postern_methods "$postern_methods,${listMethods(route)}";`;
  return [...(title.match(COMMENT) ?? []).map((line) => `# ${line}`), `if ($postern_path ~ "${pattern}") { ${then} }`];
}

const LOCATION = `
location / {
  set $postern_asked "$request_method:$postern_methods,";
  if ($postern_asked !~ "^([^:]+):.*,\\1\\??,") { return 404; }
  proxy_pass $postern_upstream$postern_target;
}`;

function formatRefusals({ methods }: Plan, refusal: string): string[] {
  return [
    '',
    '# Refusals of nginx itself have the uniform body.',
    'error_page 404 405 = @postern_refused;',
    ...formatBlock('location @postern_refused', [
      REFUSAL,
      'set $postern_methods "$postern_methods,";',
      'set $postern_allow "";',
      ...methods.map(
        (method) => `if ($postern_methods ~ ",${method},") { set $postern_allow "$postern_allow, ${method}"; }`,
      ),
      `if ($postern_allow ~ "^, (?<postern_allowed>.+)") { return 405 '${formatRefusal(405)}'; }`,
      `return 404 '${formatRefusal(404)}';`,
    ]),
    '# Paths, not named locations: a target that nginx could not read would make them a 500.',
    `error_page 414 494 497 501 505 =400 ${refusal}400;`,
    ...([400, 502, 503, 504] as const).flatMap((status) => [
      `error_page ${status} ${refusal}${status};`,
      ...formatBlock(`location = ${refusal}${status}`, [
        'internal;',
        REFUSAL,
        `return ${status} '${formatRefusal(status)}';`,
      ]),
    ]),
  ];
}

const REFUSAL = `default_type application/json;
set $postern_reply_id $postern_id;`;

function tlsNameOf({ name, upstreams }: PlannedService): string {
  const { size } = new Set(upstreams.map(({ host }) => host));
  if (size === 1) return upstreams[0].host;
  const reason = `has ${size} names over https, and nginx checks one name`;
  throw new TypeError(`option "upstream" of ${name} ${reason}; give one name`);
}
