/** Writes the `server` block of nginx: what it listens to, what goes on to a service, and what it says itself. */

import type { NginxNames } from './nginx-names.js';
import type { Plan, PlannedService } from './plan.js';
import { BAD_REQUEST, METHOD_NOT_ALLOWED, NOT_FOUND, UNAVAILABLE, type Refusal } from './refusals.js';
import { decidedMethods, GUARDS } from './rules.js';
import { escape, indent } from './text.js';

/** The directives inside of the block. */
export function formatServer(plan: Plan, names: NginxNames): string[] {
  const { include } = plan;
  return [
    ...formatListener(plan),
    ...formatRequest(plan),
    ...(include === undefined ? [] : ['', `include "${include}";`]),
    ...formatProxy(plan),
    ...formatVerdict(plan.services, names),
    ...formatRefusals(plan.services, names),
  ];
}

function formatListener({ listen, hosts, tls }: Plan): string[] {
  // Without another server for this address, nginx would take any name for the only one it has.
  const known = hosts.map(
    (host) => `if ($http_host ~* "^${escape(host)}(?::[0-9]*)?\\z") { set $postern_host_known yes; }`,
  );
  return [
    `listen ${listen.host}:${listen.port}${tls === undefined ? '' : ' ssl http2'};`,
    ...(tls === undefined ? [] : [`ssl_certificate "${tls.certificate}";`, `ssl_certificate_key "${tls.key}";`]),
    `server_name ${hosts.length === 0 ? '_' : hosts.join(' ')};`,
    ...(hosts.length === 0
      ? []
      : ['set $postern_host_known "";', ...known, 'if ($postern_host_known = "") { return 404; }']),
  ];
}

function formatRequest({ services }: Plan): string[] {
  return [
    '',
    '# The path as it was sent and as the service gets it: percent-encoded, without the query.',
    '# A named group takes it as it is, while "set" with $1 would escape its escapes once more.',
    'if ($request_uri ~ "^(?<postern_sent>[^?]*)") { }',
    'set $postern_path $postern_sent;',
    '# Refused is what two programs could read differently.',
    'if ($request_uri ~ "#") { set $postern_path ""; }',
    ...GUARDS.flatMap(({ note, pattern }) => [
      `# ${note}`,
      `if ($postern_sent ~ "${pattern}") { set $postern_path ""; }`,
    ]),
    '',
    '# A request has the id that its client gave it, if that is a valid one.',
    'set $postern_id $request_id;',
    'if ($http_x_request_id ~ "^[A-Za-z0-9._-]{1,128}\\z") { set $postern_id $http_x_request_id; }',
    '# HTTP/1.0 knows requests without Host, HTTP/1.1 does not.',
    'set $postern_host $http_host;',
    `if ($postern_host = "") { set $postern_host ${services[0].name}; }`,
    '# Connections to a service are kept, but for WebSockets.',
    'set $postern_upgrade "";',
    'set $postern_connection "";',
    'if ($http_upgrade ~* "^websocket\\z") { set $postern_upgrade websocket; set $postern_connection upgrade; }',
    'if ($server_protocol = HTTP/1.0) { set $postern_upgrade ""; set $postern_connection ""; }',
  ];
}

function formatProxy({ services }: Plan): string[] {
  const secure = services.filter(({ upstreams }) => upstreams[0].protocol === 'https');
  return [
    '',
    '# Requests and replies stream, and a service has its own limits.',
    'client_max_body_size 0;',
    'proxy_request_buffering off;',
    'proxy_buffering off;',
    'proxy_http_version 1.1;',
    'proxy_connect_timeout 5s;',
    'proxy_send_timeout 300s;',
    'proxy_read_timeout 300s;',
    'proxy_set_header Connection $postern_connection;',
    'proxy_set_header Upgrade $postern_upgrade;',
    'proxy_set_header Proxy-Connection "";',
    'proxy_set_header Host $postern_host;',
    'proxy_set_header Forwarded "";',
    'proxy_set_header X-Forwarded-For $remote_addr;',
    'proxy_set_header X-Forwarded-Proto $scheme;',
    'proxy_set_header X-Forwarded-Host $http_host;',
    'proxy_set_header X-Request-Id $postern_id;',
    'proxy_hide_header X-Request-Id; # it is the same',
    'add_header X-Request-Id $postern_id always;',
    'add_header Allow $postern_allowed always;',
    ...(secure.length === 0
      ? []
      : [
          '# The certificate of a service over TLS is NOT verified, for want of a file with authorities that every system',
          '# has: set proxy_ssl_verify and proxy_ssl_trusted_certificate in an included file.',
          'proxy_ssl_server_name on;',
          'proxy_ssl_name $postern_tls_name;',
          'set $postern_tls_name "";',
        ]),
  ];
}

/** Which service a request is for; each has its own paths, so at most one has it public. */
function formatVerdict(services: Plan['services'], names: NginxNames): string[] {
  const lines = services.flatMap((service): string[] => {
    const { name, prefix, surface, upstreams } = service;
    const methods = [...surface.methods].filter(([method]) => method !== 'OPTIONS');
    if (surface.methods.size === 0) return [];
    const [{ protocol }] = upstreams;
    return [
      `# ${name}`,
      'set $postern_scope "";',
      ...methods.map(([method, answers]) => formatAsked(answers, names.of(service, method))),
      formatAsked(['OPTIONS'], names.of(service, 'OPTIONS')),
      'if ($postern_scope = public) {',
      `  set $postern_service ${name};`,
      `  set $postern_upstream ${protocol}://${names.upstreamOf(service)};`,
      ...(protocol === 'https' ? [`  set $postern_tls_name ${tlsNameOf(service)};`] : []),
      '}',
      ...(prefix === ''
        ? []
        : [
            'set $postern_stripped "$postern_service $request_uri";',
            `if ($postern_stripped ~ "^${name} ${escape(prefix)}(?<postern_inner>/.*)") { set $postern_target $postern_inner; }`,
          ]),
    ];
  });
  return [
    '',
    'location / {',
    ...indent([
      'set $postern_service "";',
      'set $postern_upstream "";',
      'set $postern_target $request_uri;',
      ...lines,
      'if ($postern_service = "") { return 404; }',
      'proxy_pass $postern_upstream$postern_target; # as it was sent, but for a prefix',
    ]),
    '}',
  ];
}

function formatAsked(methods: readonly string[], scope: string): string {
  const test = methods.length === 1 ? `= ${methods.join('')}` : `~ "^(?:${methods.join('|')})\\z"`;
  return `if ($request_method ${test}) { set $postern_scope ${scope}; }`;
}

function formatRefusals(services: Plan['services'], names: NginxNames): string[] {
  const allow = services.flatMap((service) => {
    const { methods } = service.surface;
    const answers = decidedMethods(service.surface).map((method) => [method, methods.get(method) ?? []] as const);
    if (methods.size === 0) return [];
    return [...answers, ['OPTIONS', ['OPTIONS']] as const].map(
      ([method, all]) =>
        `if (${names.of(service, method)} = public) { set $postern_allow "$postern_allow, ${all.join(', ')}"; }`,
    );
  });
  return [
    '',
    '# What nginx says itself has the uniform body.',
    'error_page 404 405 = @postern_refused;',
    'location @postern_refused {',
    '  default_type application/json;',
    '  set $postern_allow "";',
    ...indent(allow),
    '  if ($postern_allow ~ "^, (?<postern_allowed>.+)") {',
    `    ${formatReturn(METHOD_NOT_ALLOWED)}`,
    '  }',
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
