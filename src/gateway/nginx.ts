/*
 * Writes the public surface for nginx (https://nginx.org/en/docs/http/ngx_http_map_module.html).
 *
 * A `location` compares the decoded path with its slashes merged, while the service gets the path as it was sent. So
 * maps of the path as sent decide, one for each method of a service; nginx evaluates a map only when its result is
 * asked for. Strings in a map ignore case, so each entry is an expression, even for a static path.
 */

import { GatewayError } from './error.js';
import type { ExporterArguments, GatewayOptions, GatewayService, ListenerOptions } from './exporter-options.js';
import { createNames, type NginxName } from './nginx-names.js';
import { formatServer } from './nginx-server.js';
import { createPlan, formatHeader, titleOf, type PlannedService } from './plan.js';
import { createRules, type Note, type PathRule } from './rules.js';
import { SENT } from './spelling.js';
import type { RouteTable } from './surface.js';
import { indent } from './text.js';

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
  const nameOf = createNames(plan);
  const lines = [
    formatHeader(plan),
    ...plan.services.flatMap((service) => formatService(service, nameOf)),
    '',
    'server {',
    ...indent(formatServer(plan, nameOf)),
    '}',
    '',
  ];
  return lines.join('\n');
}

/** Nothing may be longer than nginx's buffer of 4,096 bytes, a comment included. */
const MAX_TEXT = 4000;
/** A piece of a comment that is short enough: characters may have up to four bytes. */
const COMMENT = /.{1,1000}/gsu;

function formatService(service: PlannedService, nameOf: NginxName): string[] {
  const { surface, upstreams } = service;
  const { leaves, methods, ownOptions, answers } = surface;
  for (const { path, opens } of leaves) {
    if (opens.has('TRACE')) throw new GatewayError(path, 'nginx answers TRACE with 405 itself; make it private');
  }
  const rules = createRules(service, { gateway: 'nginx', spelling: SENT, pcre: true });
  const lines = [
    '',
    `# The service ${titleOf(service)}.`,
    `upstream ${nameOf(service, 'upstream')} {`,
    ...upstreams.map(({ host, port }) => `  server ${host}:${port};`),
    '  keepalive 64;',
    '}',
  ];
  if (answers.length === 0) return lines;
  const decide = (method: string, name: string): string[] =>
    formatMap('$postern_path', name, formatDecisions(rules, method));
  const own = nameOf(service, 'own_options');
  const values = methods.map((method) => `$${nameOf(service, method)}`).join(' ');
  return [
    ...lines,
    '# For each method, the first line that matches decides, as the router prefers its routes.',
    ...methods.flatMap((method) => decide(method, nameOf(service, method))),
    ...(ownOptions ? decide('OPTIONS', own) : []),
    '# OPTIONS, where it has no route of its own, is public with any other method.',
    ...formatMap(`"${ownOptions ? `$${own}` : ''}: ${values}"`, nameOf(service, 'OPTIONS'), [
      '"~^public|^:.*public" public;',
    ]),
  ];
}

function formatMap(source: string, target: string, entries: readonly string[]): string[] {
  return [`map ${source} $${target} {`, ...indent(entries), '}'];
}

function formatDecisions(rules: readonly PathRule[], method: string): string[] {
  const isSpokenOf = (note: Note): boolean =>
    note.method === null || note.method === method || (method === 'HEAD' && note.method === 'GET');
  return rules.flatMap(({ path, notes, pattern, opens, closes }) => {
    const isOpen = opens.includes(method);
    if (!isOpen && !closes.includes(method)) return [];
    if (pattern.length > MAX_TEXT)
      throw new GatewayError(
        path,
        `its expression is ${pattern.length} characters long and nginx takes ${MAX_TEXT}; shorten its constraints`,
      );
    const comments = notes.filter(isSpokenOf).flatMap(({ text }) => text.match(COMMENT) ?? []);
    return [...comments.map((line) => `# ${line}`), `"~${pattern}" ${isOpen ? 'public' : 'private'};`];
  });
}
