/* Writes the `server` block of nginx: what it listens to, what goes on to a service, and what it says itself. */

import type { NginxName } from './nginx-names.js';
import type { Plan, PlannedService } from './plan.js';
import { BAD_REQUEST, METHOD_NOT_ALLOWED, NOT_FOUND, UNAVAILABLE, type Refusal } from './refusals.js';
import { GUARDS } from './rules.js';
import { escape, indent } from './text.js';

/** The directives inside of the block. */
export function formatServer(plan: Plan, nameOf: NginxName): string[] {
  const { services, include } = plan;
  return [
    ...formatListener(plan),
    REQUEST,
    '# HTTP/1.0 knows requests without Host, HTTP/1.1 does not.',
    'set $postern_host $http_host;',
    `if ($postern_host = "") { set $postern_host ${services[0].name}; }`,
    ...(include === undefined ? [] : ['', `include "${include}";`]),
    PROXY,
    ...(services.some(({ protocol }) => protocol === 'https') ? [SECURE] : []),
    '',
    'location / {',
    ...indent([
      'set $postern_service "";',
      'set $postern_upstream "";',
      'set $postern_target $request_uri;',
      ...services.flatMap((service) => formatChoice(service, nameOf)),
      'if ($postern_service = "") { return 404; }',
      'proxy_pass $postern_upstream$postern_target; # as it was sent, but for a prefix',
    ]),
    '}',
    ...formatRefusals(services, nameOf),
  ];
}

function formatListener({ listen, hosts, tls }: Plan): string[] {
  return [
    `listen ${listen.host}:${listen.port}${tls === undefined ? '' : ' ssl http2'};`,
    ...(tls === undefined ? [] : [`ssl_certificate "${tls.certificate}";`, `ssl_certificate_key "${tls.key}";`]),
    `server_name ${hosts.length === 0 ? '_' : hosts.join(' ')};`,
    // The only server of an address gets the requests for every name, whatever its `server_name` is.
    ...(hosts.length === 0
      ? []
      : [
          'set $postern_host_known "";',
          ...hosts.map(
            (host) => `if ($http_host ~* "^${escape(host)}(?::[0-9]*)?\\z") { set $postern_host_known yes; }`,
          ),
          'if ($postern_host_known = "") { return 404; }',
        ]),
  ];
}

const REQUEST = `
# The path as it was sent and as the service gets it: percent-encoded, without the query.
# A named group takes it as it is, while "set" with $1 would escape its escapes once more.
if ($request_uri ~ "^(?<postern_sent>[^?]*)") { }
set $postern_path $postern_sent;
# Refused is what two programs could read differently.
if ($request_uri ~ "#") { set $postern_path ""; }
${GUARDS.map(({ note, pattern }) => `# ${note}\nif ($postern_sent ~ "${pattern}") { set $postern_path ""; }`).join('\n')}

# A request has the id that its client gave it, if that is a valid one.
set $postern_id $request_id;
if ($http_x_request_id ~ "^[A-Za-z0-9._-]{1,128}\\z") { set $postern_id $http_x_request_id; }
# Connections to a service are kept, but for WebSockets.
set $postern_upgrade "";
set $postern_connection "";
if ($http_upgrade ~* "^websocket\\z") { set $postern_upgrade websocket; set $postern_connection upgrade; }
if ($server_protocol = HTTP/1.0) { set $postern_upgrade ""; set $postern_connection ""; }`;

const PROXY = `
# Requests and replies stream, and a service has its own limits.
client_max_body_size 0;
proxy_request_buffering off;
proxy_buffering off;
proxy_http_version 1.1;
proxy_connect_timeout 5s;
proxy_send_timeout 300s;
proxy_read_timeout 300s;
proxy_set_header Connection $postern_connection;
proxy_set_header Upgrade $postern_upgrade;
proxy_set_header Proxy-Connection "";
proxy_set_header Host $postern_host;
proxy_set_header Forwarded "";
proxy_set_header X-Forwarded-For $remote_addr;
proxy_set_header X-Forwarded-Proto $scheme;
proxy_set_header X-Forwarded-Host $http_host;
proxy_set_header X-Request-Id $postern_id;
proxy_hide_header X-Request-Id; # it is the same
add_header X-Request-Id $postern_id always;
add_header Allow $postern_allowed always;`;

const SECURE = `# The certificate of a service over TLS is NOT verified, for want of a file with authorities that every
# system has: set proxy_ssl_verify and proxy_ssl_trusted_certificate in an included file.
proxy_ssl_server_name on;
proxy_ssl_name $postern_tls_name;
set $postern_tls_name "";`;

/** Whether a request is for a service; each has its own paths, so at most one has it public. */
function formatChoice(service: PlannedService, nameOf: NginxName): string[] {
  const { name, prefix, surface, protocol } = service;
  if (surface.answers.length === 0) return [];
  return [
    `# ${name}`,
    'set $postern_scope "";',
    ...surface.answers.map(
      ([method, names]) =>
        `if ($request_method ~ "^(?:${names.join('|')})\\z") { set $postern_scope $${nameOf(service, method)}; }`,
    ),
    'if ($postern_scope = public) {',
    `  set $postern_service ${name};`,
    `  set $postern_upstream ${protocol}://${nameOf(service, 'upstream')};`,
    ...(protocol === 'https' ? [`  set $postern_tls_name ${tlsNameOf(service)};`] : []),
    '}',
    ...(prefix === ''
      ? []
      : [
          'set $postern_stripped "$postern_service $request_uri";',
          `if ($postern_stripped ~ "^${name} ${escape(prefix)}(?<postern_inner>/.*)") { set $postern_target $postern_inner; }`,
        ]),
  ];
}

function formatRefusals(services: Plan['services'], nameOf: NginxName): string[] {
  return [
    '',
    '# What nginx says itself has the uniform body.',
    'error_page 404 405 = @postern_refused;',
    'location @postern_refused {',
    '  default_type application/json;',
    '  set $postern_allow "";',
    ...services.flatMap((service) =>
      service.surface.answers.map(
        ([method, names]) =>
          `  if ($${nameOf(service, method)} = public) { set $postern_allow "$postern_allow, ${names.join(', ')}"; }`,
      ),
    ),
    `  if ($postern_allow ~ "^, (?<postern_allowed>.+)") { ${formatReturn(METHOD_NOT_ALLOWED)} }`,
    `  ${formatReturn(NOT_FOUND)}`,
    '}',
    ...[BAD_REQUEST, ...UNAVAILABLE].flatMap((refusal) => [
      `error_page ${refusal.status} @postern_${refusal.status};`,
      `location @postern_${refusal.status} {`,
      '  default_type application/json;',
      ...(refusal === BAD_REQUEST ? ['  set $postern_id $request_id; # it never got as far as having one'] : []),
      `  ${formatReturn(refusal)}`,
      '}',
    ]),
  ];
}

function formatReturn({ status, body }: Refusal): string {
  return `return ${status} '${body}';`;
}

function tlsNameOf({ name, upstreams }: PlannedService): string {
  const hosts = new Set(upstreams.map(({ host }) => host));
  if (hosts.size > 1)
    throw new TypeError(
      `option "upstream" of ${name} has ${hosts.size} names over https, and nginx tells the service one; give one name`,
    );
  return upstreams[0].host;
}
