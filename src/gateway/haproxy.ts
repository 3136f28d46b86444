/**
 * Writes the public surface as a frontend and a backend of HAProxy (https://docs.haproxy.org/2.6/configuration.html).
 *
 * `path` is the path as it was sent. Regular expressions that run out of stack match nothing there, which would leave a
 * private route unnoticed; so where a rule has such an expression, long paths of its shape are private.
 */

import { checkOptions, type GatewayOptions, type Settings } from './options.js';
import { repeatsGroup } from './path-pattern.js';
import { createRules, GUARDS, headerLines, methodsOf, PCRE, type Rule } from './rules.js';
import { createSurface, type RouteTable, type Surface } from './surface.js';

/**
 * A frontend and a backend, both named after the service.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a route that HAProxy can't be told
 */
export function toHAProxy(router: RouteTable, options: GatewayOptions): string {
  const settings = checkOptions(options);
  const surface = createSurface(router);
  const rules = createRules(surface, { ...PCRE, gateway: 'HAProxy', unroll: true });
  const { service, listen } = settings;
  return [
    ...headerLines(surface, service).map((line) => `# ${line}`),
    `frontend ${service}`,
    ...[
      'mode http',
      `bind ${listen.host}:${listen.port}`,
      'timeout client 60s',
      'option forwardfor',
      ...formatHosts(settings),
      ...formatGuards(),
      ...formatRules(rules),
      ...formatVerdict(surface),
      '',
      `default_backend ${service}`,
    ].map(indent),
    '',
    `backend ${service}`,
    ...['mode http', 'timeout connect 5s', 'timeout server 60s', formatUpstream(settings)].map(indent),
    '',
  ].join('\n');
}

/** Characters of a path, times groups of an expression, that fit on HAProxy's stack with room to spare (measured: 1300 to 2300). */
const STACK = 1000;

function formatHosts({ hosts }: Settings): string[] {
  if (hosts.length === 0) return [];
  // One a line: HAProxy takes 64 words of a line.
  return [...hosts.map((host) => `acl postern_host hdr(host),lower,field(1,:) -m str ${host}`), 'http-request deny deny_status 404 unless postern_host'];
}

function formatGuards(): string[] {
  const lines = [
    '',
    '# The path as it was sent and as the service gets it: percent-encoded, without the query.',
    'http-request set-uri /%[pathq,regsub(^/,)] unless { url_beg / * }',
    'http-request set-var(txn.postern_path) path',
    "http-request deny deny_status 404 if { url_sub '#' }",
  ];
  for (const { note, pattern } of GUARDS) lines.push(`# Refused: ${note}.`, `http-request deny deny_status 404 if { var(txn.postern_path) -m reg '${pattern}' }`);
  return lines;
}

function formatRules(rules: readonly Rule[]): string[] {
  return [
    '',
    '# Which methods of the path are public. A later rule overrules an earlier one, as the router prefers its route.',
    ...rules.flatMap(({ notes, test, shape, opens, closes }) => {
      const condition = `{ var(txn.postern_path) -m ${'exact' in test ? `str ${test.exact}` : `reg '${test.pattern}'`} }`;
      const set = (method: string, scope: string, when: string): string => `http-request set-var(${variable(method)}) str(${scope}) if ${when}`;
      const lines = [...notes.map((note) => `# ${note}`), ...opens.map((method) => set(method, 'public', condition)), ...closes.map((method) => set(method, 'private', condition))];
      if (closes.length === 0 || 'exact' in test || !repeatsGroup(test.pattern)) return lines;
      const limit = Math.floor(STACK / (test.pattern.split('(').length - 1));
      const long = `{ var(txn.postern_path),length gt ${limit} } { var(txn.postern_path) -m reg '${shape}' }`;
      return [...lines, '# and where the path is too long for that expression', ...[...opens, ...closes].map((method) => set(method, 'private', long))];
    }),
  ];
}

function formatVerdict(surface: Surface): string[] {
  const allow = (methods: readonly string[], condition: string): string[] => [
    `http-request set-var-fmt(txn.postern_allow) '%[var(txn.postern_allow)], ${methods.join(', ')}' if ${condition}`,
    `http-request set-var(txn.postern_pass) bool(true) if { method ${methods.join(' ')} } ${condition}`,
  ];
  const lines = ['', '# All of them, and whether the method of the request is one.'];
  for (const method of surface.methods.keys()) {
    if (method !== 'OPTIONS') lines.push(...allow(methodsOf(surface, [method]), `{ var(${variable(method)}) -m str public }`));
  }
  if (surface.ownOptions) {
    lines.push('# OPTIONS has routes of its own; where none of them matches, it is public with any other method.');
    lines.push(`http-request set-var(${variable('OPTIONS')}) str(public) if { var(txn.postern_allow) -m found } !{ var(${variable('OPTIONS')}) -m found }`);
    lines.push(...allow(['OPTIONS'], `{ var(${variable('OPTIONS')}) -m str public }`));
  } else lines.push(...allow(['OPTIONS'], '{ var(txn.postern_allow) -m found }'));
  return [
    ...lines,
    'http-request deny deny_status 404 unless { var(txn.postern_allow) -m found }',
    "http-request return status 405 hdr Allow '%[var(txn.postern_allow),regsub(^..,)]' unless { var(txn.postern_pass) -m bool }",
  ];
}

function formatUpstream({ service, upstream: { protocol, host, port } }: Settings): string {
  const server = `server ${service} ${host}:${port}`;
  if (protocol === 'http') return server;
  const name = host.startsWith('[') || /^[\d.]+$/.test(host) ? '' : ` sni str(${host}) verifyhost ${host}`;
  return `${server} ssl verify required ca-file @system-ca${name}`;
}

function variable(method: string): string {
  return `txn.postern_${method.toLowerCase().replaceAll('-', '_')}`;
}

function indent(line: string): string {
  return line === '' ? '' : `  ${line}`;
}
