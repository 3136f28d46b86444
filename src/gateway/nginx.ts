/**
 * Writes the public surface for nginx (https://nginx.org/en/docs/http/ngx_http_map_module.html).
 *
 * A `location` compares the decoded path with its slashes merged, while the service gets the path as it was sent. So
 * maps of that one decide, one for each method of a service; nginx evaluates a map when it is asked for and not before.
 * Strings in a map ignore case, so all that is compared is an expression.
 */

import { GatewayError } from './error.js';
import type {
  ExporterArguments,
  GatewayOptions,
  GatewayService,
  ListenerOptions,
  Upstream,
} from './exporter-options.js';
import { NginxNames } from './nginx-names.js';
import { formatServer } from './nginx-server.js';
import { createPlan, headerLines, type PlannedService } from './plan.js';
import { createRules, decidedMethods, PCRE, textOf, type Note, type PathRule } from './rules.js';
import type { RouteTable } from './surface.js';
import { escape, indent } from './text.js';

/**
 * One whole `server` block, with its `upstream` and `map` blocks before it, to be included in `http`.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a route that nginx can't be told, a public TRACE route among them, and for services that
 * claim one path
 */
export function toNginx(router: RouteTable, options: GatewayOptions): string;
export function toNginx(services: readonly GatewayService[], options?: ListenerOptions): string;
export function toNginx(...args: ExporterArguments): string {
  const plan = createPlan('toNginx', args);
  const names = new NginxNames(plan);
  const lines = [
    ...headerLines(plan).map((line) => `# ${line}`),
    ...plan.services.flatMap((service) => formatService(service, names)),
    '',
    'server {',
    ...indent(formatServer(plan, names)),
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

/** Nothing may be longer than nginx's buffer of 4,096 bytes, a comment included. */
const MAX_TEXT = 4000;
/** In characters of up to four bytes. */
const COMMENT = /.{1,1000}/gsu;

function formatService(service: PlannedService, names: NginxNames): string[] {
  const { name, prefix, surface, upstreams } = service;
  for (const { path, opens } of surface.leaves) {
    if (opens.has('TRACE')) throw new GatewayError(path, 'nginx answers TRACE with 405 itself; make it private');
  }
  const rules = createRules(service, { ...PCRE, gateway: 'nginx' });
  const lines = [
    '',
    `# The service ${name}${prefix === '' ? '' : `, below ${prefix}`}: ${surface.open} of ${surface.total} routes are public.`,
    `upstream ${names.upstreamOf(service)} {`,
    ...upstreams.map((upstream) => `  server ${addressOf(upstream)};`),
    '  keepalive 64;',
    '}',
  ];
  const methods = decidedMethods(surface);
  if (methods.length > 0)
    lines.push('# For each method, the first line that matches decides, as the router prefers its routes.');
  for (const method of methods)
    lines.push(...formatMap('$postern_path', names.of(service, method), formatDecisions(rules, method)));
  const values = methods.map((method) => names.of(service, method)).join(' ');
  if (!surface.ownOptions) {
    if (methods.length === 0) return lines;
    const entries = ['"~public" public;'];
    return [
      ...lines,
      '# It is public with any other method.',
      ...formatMap(`"${values}"`, names.of(service, 'OPTIONS'), entries),
    ];
  }
  const own = names.of(service, 'own_options');
  return [
    ...lines,
    ...formatMap('$postern_path', own, formatDecisions(rules, 'OPTIONS')),
    '# Where none of these matches, it is public with any other method.',
    ...formatMap(`"${own}: ${values}"`, names.of(service, 'OPTIONS'), ['"~^public" public;', '"~^:.*public" public;']),
  ];
}

function formatMap(source: string, target: string, entries: readonly string[]): string[] {
  return [`map ${source} ${target} {`, ...indent(entries), '}'];
}

function formatDecisions(rules: readonly PathRule[], method: string): string[] {
  const isSpokenOf = (note: Note): boolean =>
    note.method === null || note.method === method || (method === 'HEAD' && note.method === 'GET');
  return rules.flatMap(({ path, notes, test, opens, closes }) => {
    const scope = opens.includes(method) ? 'public' : closes.includes(method) ? 'private' : null;
    if (scope === null) return [];
    const pattern = 'exact' in test ? `^${escape(test.exact)}\\z` : test.pattern;
    if (pattern.length > MAX_TEXT)
      throw new GatewayError(
        path,
        `its expression is ${textOf(test).length} characters long and nginx takes ${MAX_TEXT}; shorten its constraints`,
      );
    const comments = notes.filter(isSpokenOf).flatMap(({ text }) => text.match(COMMENT) ?? []);
    return [...comments.map((line) => `# ${line}`), `"~${pattern}" ${scope};`];
  });
}

function addressOf({ host, port }: Upstream): string {
  return `${host}:${port}`;
}
