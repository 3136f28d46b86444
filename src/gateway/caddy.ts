/**
 * Writes the public surface as a site of a Caddyfile (https://caddyserver.com/docs/caddyfile).
 *
 * Caddy's path matchers see a decoded and cleaned path; `{http.request.uri}` is the one that it sends on.
 */

import { checkOptions, type GatewayOptions } from './options.js';
import { createRules, GUARDS, headerLines, methodsOf, RE2, type Rule } from './rules.js';
import { createSurface, type RouteTable, type Surface } from './surface.js';

/**
 * One site, with its address; plain HTTP.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a route that Caddy can't be told
 */
export function toCaddy(router: RouteTable, options: GatewayOptions): string {
  const settings = checkOptions(options);
  const surface = createSurface(router);
  const rules = createRules(surface, { ...RE2, gateway: 'Caddy' });
  const { service, listen, hosts, upstream } = settings;
  const names = hosts.length === 0 ? [''] : hosts;
  return [
    ...headerLines(surface, service).map((line) => `# ${line}`),
    `${names.map((name) => `http://${name}:${listen.port}`).join(', ')} {`,
    ...(listen.host === '*' ? [] : [`  bind ${listen.host.replace(/^\[|\]$/g, '')}`]),
    '  route {',
    ...[...formatGuards(), ...formatRules(rules), ...formatVerdict(surface), '', `reverse_proxy ${upstream.protocol}://${upstream.host}:${upstream.port}`].map((line) => (line === '' ? '' : `    ${line}`)),
    '  }',
    '}',
    '',
  ].join('\n');
}

/** Caddy 2.6 also tries the name of a variable against the expression, and `<nil>` for one that is not set: no rule matches either. */
const PATH = 'postern_path';

function formatGuards(): string[] {
  return [
    '# The path as the service gets it: percent-encoded, without the query.',
    'vars postern_uri {http.request.uri}',
    '@fragment vars_regexp postern_uri `#`',
    'respond @fragment 404',
    '@target vars_regexp target postern_uri `^(/[^?]*)`',
    `vars @target ${PATH} {http.regexp.target.1}`,
    ...GUARDS.flatMap(({ note, pattern }, i) => [
      `# Refused: ${note}.`,
      `@refused${i + 1} vars_regexp refused ${PATH} \`${pattern}\``,
      `respond @refused${i + 1} 404`,
    ]),
  ];
}

function formatRules(rules: readonly Rule[]): string[] {
  return [
    '',
    '# Which methods of the path are public. A later rule overrules an earlier one, as the router prefers its route.',
    ...rules.flatMap(({ notes, test, opens, closes }, i) => [
      ...notes.map((note) => `# ${note}`),
      `@rule${i + 1} ${'exact' in test ? `vars ${PATH} ${test.exact}` : `vars_regexp rule ${PATH} \`${test.pattern}\``}`,
      ...opens.map((method) => `vars @rule${i + 1} ${variable(method)} public`),
      ...closes.map((method) => `vars @rule${i + 1} ${variable(method)} private`),
    ]),
  ];
}

function formatVerdict(surface: Surface): string[] {
  const lines = ['', '# All of them, and whether the method of the request is one.'];
  const allow = (methods: readonly string[], matcher: string, conditions: readonly string[]): string[] => [
    ...formatMatcher(matcher, conditions),
    `vars @${matcher} postern_allow "{http.vars.postern_allow}, ${methods.join(', ')}"`,
    ...formatMatcher(`${matcher}_asked`, [...conditions, `method ${methods.join(' ')}`]),
    `vars @${matcher}_asked postern_pass yes`,
  ];
  for (const method of surface.methods.keys()) {
    if (method !== 'OPTIONS') lines.push(...allow(methodsOf(surface, [method]), `allow_${method.toLowerCase()}`, [`vars ${variable(method)} public`]));
  }
  const any = 'vars_regexp any postern_allow `^, `';
  if (surface.ownOptions) {
    lines.push(
      '# OPTIONS has routes of its own; where none of them matches, it is public with any other method.',
      ...allow(['OPTIONS'], 'other_options', [any, `not vars ${variable('OPTIONS')} public private`]),
      ...allow(['OPTIONS'], 'allow_options', [`vars ${variable('OPTIONS')} public`]),
    );
  } else lines.push(...allow(['OPTIONS'], 'other_options', [any]));
  return [
    ...lines,
    ...formatMatcher('wrong_method', ['vars_regexp allow postern_allow `^, (.*)`', 'not vars postern_pass yes']),
    'header @wrong_method Allow {http.regexp.allow.1}',
    'respond @wrong_method 405',
    '@nothing not vars postern_pass yes',
    'respond @nothing 404',
  ];
}

function formatMatcher(name: string, conditions: readonly string[]): string[] {
  return conditions.length === 1 ? [`@${name} ${conditions.join('')}`] : [`@${name} {`, ...conditions.map((condition) => `  ${condition}`), '}'];
}

function variable(method: string): string {
  return `postern_${method.toLowerCase()}`;
}
