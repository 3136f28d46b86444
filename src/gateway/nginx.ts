/**
 * Writes the public surface as a `server` block of nginx (https://nginx.org/en/docs/http/ngx_http_rewrite_module.html).
 *
 * A `location` compares the decoded path with its slashes merged, while the service gets the path as it was sent. So the
 * rules compare `$request_uri`, and `location /` only acts on what they found.
 */

import { GatewayError } from './error.js';
import { checkOptions, type GatewayOptions, type Settings } from './options.js';
import { createRules, GUARDS, headerLines, methodsOf, PCRE, type Rule } from './rules.js';
import { createSurface, type RouteTable, type Surface } from './surface.js';

/**
 * One whole `server` block, to be included in `http`.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a route that nginx can't be told, a public TRACE route among them
 */
export function toNginx(router: RouteTable, options: GatewayOptions): string {
  const settings = checkOptions(options);
  const surface = createSurface(router);
  for (const { path, opens } of surface.leaves) {
    if (opens.has('TRACE')) throw new GatewayError(path, 'nginx answers TRACE with 405 itself; make it private');
  }
  const rules = createRules(surface, { ...PCRE, gateway: 'nginx' });
  for (const { path, test } of rules) {
    const { length } = 'exact' in test ? test.exact : test.pattern;
    if (length > MAX_TEXT) throw new GatewayError(path, `its expression is ${length} characters long and nginx takes ${MAX_TEXT}; shorten its constraints`);
  }
  return [
    ...headerLines(surface, settings.service).map((line) => `# ${line}`),
    'server {',
    ...[...formatServer(settings), ...formatGuards(), ...formatRules(surface, rules), ...formatVerdict(surface), ...formatLocation(settings)].map((line) => (line === '' ? '' : `  ${line}`)),
    '}',
    '',
  ].join('\n');
}

/** Nothing may be longer than nginx's buffer of 4,096 bytes, a comment included. */
const MAX_TEXT = 4000;
/** In characters of up to four bytes. */
const COMMENT = /.{1,1000}/gsu;

function formatServer({ listen, hosts }: Settings): string[] {
  const lines = [`listen ${listen.host}:${listen.port};`, `server_name ${hosts.length === 0 ? '_' : hosts.join(' ')};`, 'client_max_body_size 0; # the service has its own limit'];
  // Without another server for this address, nginx would take any name for the only one it has.
  if (hosts.length === 0) return lines;
  const tests = hosts.map((host) => `if ($http_host ~* "^${host.replaceAll('.', '\\.')}(?::[0-9]*)?\\z") { set $postern_host_known yes; }`);
  return [...lines, 'set $postern_host_known "";', ...tests, 'if ($postern_host_known = "") { return 404; }'];
}

function formatGuards(): string[] {
  return [
    '',
    '# The path as it was sent and as the service gets it: percent-encoded, without the query.',
    '# A named group takes it as it is, while "set" with $1 would escape its escapes once more.',
    'if ($request_uri ~ "^(?<postern_path>[^?]*)") { }',
    'if ($request_uri ~ "#") { return 404; }',
    ...GUARDS.flatMap(({ note, pattern }) => [`# Refused: ${note}.`, `if ($postern_path ~ "${pattern}") { return 404; }`]),
  ];
}

function formatRules(surface: Surface, rules: readonly Rule[]): string[] {
  const flags = surface.ownOptions ? new Set([...surface.methods.keys(), 'OPTIONS']) : surface.methods.keys();
  return [
    '',
    '# Which methods of the path are public. A later rule overrules an earlier one, as the router prefers its route.',
    ...[...flags].map((method) => `set ${variable(method)} "";`),
    ...rules.flatMap(({ notes, test, opens, closes }) => [
      ...notes.flatMap((note) => note.match(COMMENT) ?? []).map((note) => `# ${note}`),
      `if ($postern_path ${'exact' in test ? `= "${test.exact}"` : `~ "${test.pattern}"`}) {`,
      ...opens.map((method) => `  set ${variable(method)} public;`),
      ...closes.map((method) => `  set ${variable(method)} private;`),
      '}',
    ]),
  ];
}

function formatVerdict(surface: Surface): string[] {
  const lines = ['', '# All of them: ", GET, HEAD".', 'set $postern_allow "";'];
  for (const method of surface.methods.keys()) {
    if (method !== 'OPTIONS') lines.push(`if (${variable(method)} = public) { set $postern_allow "$postern_allow, ${methodsOf(surface, [method]).join(', ')}"; }`);
  }
  if (surface.ownOptions) {
    lines.push(
      '# OPTIONS has routes of its own; where none of them matches, it is public with any other method.',
      'if ($postern_allow) { set $postern_options "other$postern_options"; }',
      'if ($postern_options ~ "^(?:other|(?:other)?public)\\z") { set $postern_allow "$postern_allow, OPTIONS"; }',
    );
  } else lines.push('if ($postern_allow) { set $postern_allow "$postern_allow, OPTIONS"; }');
  return [...lines, 'set $postern_verdict "$request_method$postern_allow,";', 'if ($postern_allow ~ "^, (?<postern_allowed>.+)") { }'];
}

function formatLocation({ service, upstream }: Settings): string[] {
  const { protocol, host, port } = upstream;
  const tls = ['  # nginx checks the certificate of the service only with proxy_ssl_verify and proxy_ssl_trusted_certificate.', '  proxy_ssl_server_name on;'];
  return [
    '',
    '# HTTP/1.0 knows requests without Host, HTTP/1.1 does not.',
    'set $postern_host $http_host;',
    `if ($postern_host = "") { set $postern_host ${service}; }`,
    'location / {',
    '  if ($postern_allow = "") { return 404; }',
    '  if ($postern_verdict !~ "^([^,]+),.* \\1,") {',
    '    add_header Allow $postern_allowed always;',
    '    return 405;',
    '  }',
    `  proxy_pass ${protocol}://${host}:${port}; # no path after it, so that the path goes on as it was sent`,
    ...(protocol === 'https' ? tls : []),
    '  proxy_http_version 1.1;',
    '  proxy_set_header Connection "";',
    '  proxy_set_header Host $postern_host;',
    '  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;',
    '}',
  ];
}

function variable(method: string): string {
  return `$postern_${method.toLowerCase().replaceAll('-', '_')}`;
}
