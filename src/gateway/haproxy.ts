/**
 * Writes the public surface as a frontend and a backend of HAProxy (https://docs.haproxy.org/2.6/configuration.html).
 *
 * `path` is the path as it was sent. Regular expressions that run out of stack match nothing there, which would leave a
 * private route unnoticed; so where a rule has such an expression, long paths of its shape are private.
 */

import { readIncluded } from './exporter-options.js';
import type { ExporterArguments, GatewayOptions, GatewayService, ListenerOptions } from './exporter-options.js';
import { repeatsGroup } from './path-pattern.js';
import { createPlan, headerLines, type Plan, type PlannedService } from './plan.js';
import { METHOD_NOT_ALLOWED, NOT_FOUND, UNAVAILABLE, type Refusal } from './refusals.js';
import { createRules, decidedMethods, GUARDS, PCRE, textOf, type PathRule } from './rules.js';
import { escape, indent } from './text.js';
import type { RouteTable } from './surface.js';

/**
 * A frontend, and a backend for each service, which has the service's name; so has the frontend of one service alone.
 * The defaults in front of them are also for what follows in the same file, so it belongs behind other sections.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a route that HAProxy can't be told, and for services that claim one path
 */
export function toHAProxy(router: RouteTable, options: GatewayOptions): string;
export function toHAProxy(services: readonly GatewayService[], options?: ListenerOptions): string;
export function toHAProxy(...args: ExporterArguments): string {
  const plan = createPlan('toHAProxy', args);
  const { services, listen } = plan;
  const lines = [
    ...headerLines(plan).map((line) => `# ${line}`),
    'defaults',
    ...indent(DEFAULTS),
    '',
    `frontend ${services.length === 1 ? services[0].name : `gateway-${listen.port}`}`,
    ...indent([
      ...formatListener(plan),
      ...formatHeaders(plan),
      ...formatGuards(),
      ...services.flatMap(formatService),
      ...formatVerdict(plan),
    ]),
    ...services.flatMap(formatBackend),
  ];
  return `${lines.join('\n')}\n`;
}

/** Those of the sections that follow; `abortonclose` works nowhere else. */
const DEFAULTS = [
  'mode http',
  'timeout client 60s',
  'timeout http-request 30s',
  'timeout http-keep-alive 60s',
  'timeout connect 5s',
  'timeout server 300s',
  'timeout tunnel 1h',
  'option abortonclose # tells a service that the client has left',
  '# What HAProxy says itself has the uniform body.',
  ...[NOT_FOUND, ...UNAVAILABLE].map(formatError),
];

/**
 * Characters of a path, times groups of an expression, that fit on HAProxy's stack with room to spare (measured: 1300
 * to 2300).
 */
const STACK = 1000;

function formatListener({ listen, hosts, tls, include }: Plan): string[] {
  if (tls !== undefined && tls.key !== tls.certificate && tls.key !== `${tls.certificate}.key`)
    throw new TypeError(
      `option "tls.key" is ${JSON.stringify(tls.key)}, and HAProxy looks for the key in ${JSON.stringify(tls.certificate)} or ${JSON.stringify(`${tls.certificate}.key`)}; move it there`,
    );
  return [
    `bind ${listen.host}:${listen.port}${tls === undefined ? '' : ` ssl crt '${tls.certificate}' alpn h2,http/1.1`}`,
    ...(include === undefined ? [] : ['', `# From ${include}`, ...readIncluded(include)]),
    // One a line: HAProxy takes 64 words of a line.
    ...hosts.map((host) => `acl postern_host hdr(host),lower,field(1,:) -m str ${host}`),
    ...(hosts.length === 0 ? [] : ['http-request deny deny_status 404 unless postern_host']),
  ];
}

function formatHeaders({ tls }: Plan): string[] {
  return [
    '',
    '# A request has the id that its client gave it, if that is a valid one; every reply has one.',
    "http-request set-var(txn.postern_id) req.fhdr(x-request-id) if { req.fhdr_cnt(x-request-id) eq 1 } { req.fhdr(x-request-id) -m reg '^[A-Za-z0-9._-]{1,128}\\z' }",
    'http-request set-var(txn.postern_id) uuid unless { var(txn.postern_id) -m found }',
    'http-request set-header X-Request-Id %[var(txn.postern_id)]',
    'http-after-response set-header X-Request-Id %[var(txn.postern_id)] if { var(txn.postern_id) -m found } !{ res.hdr(x-request-id) -m found }',
    '# Who the client is, the gateway knows.',
    'http-request del-header Forwarded',
    'http-request set-header X-Forwarded-For %[src]',
    `http-request set-header X-Forwarded-Proto ${tls === undefined ? 'http' : 'https'}`,
    'http-request del-header X-Forwarded-Host',
    'http-request set-header X-Forwarded-Host %[req.hdr(host)] if { req.hdr(host) -m found }',
    '# What is between two machines alone does not go on.',
    ...['Keep-Alive', 'Proxy-Connection', 'TE'].map((name) => `http-request del-header ${name}`),
    'http-request del-header Upgrade unless { req.hdr(upgrade) -i websocket }',
    'http-response del-header Keep-Alive',
  ];
}

function formatGuards(): string[] {
  const lines = [
    '',
    '# The path as it was sent and as the service gets it: percent-encoded, without the query.',
    'http-request set-uri /%[pathq,regsub(^/,)] unless { url_beg / * }',
    "http-request deny deny_status 404 if { url_sub '#' }",
  ];
  for (const { note, pattern } of GUARDS)
    lines.push(`# Refused: ${note}.`, `http-request deny deny_status 404 if { path -m reg '${pattern}' }`);
  return lines;
}

function formatService(service: PlannedService): string[] {
  const { name, prefix, surface } = service;
  const rules = createRules(service, { ...PCRE, gateway: 'HAProxy', unroll: true });
  return [
    '',
    `# The service ${name}${prefix === '' ? '' : `, below ${prefix}`}: ${surface.open} of ${surface.total} routes are public.`,
    '# For each method, the first line that matches decides, as the router prefers its routes.',
    ...formatRules(rules, service),
    ...formatOptions(service),
  ];
}

/**
 * A whole static path is the best route for itself, so those come first, many in a line: HAProxy has a tree for them.
 */
function formatRules(rules: readonly PathRule[], service: PlannedService): string[] {
  const others = rules.slice(0, service.inner.length);
  const groups = new Map<string, PathRule[]>();
  for (const rule of rules.slice(service.inner.length)) {
    if (!('exact' in rule.test)) others.push(rule);
    else {
      const key = `${rule.opens.join()} ${rule.closes.join()}`;
      groups.set(key, [...(groups.get(key) ?? []), rule]);
    }
  }
  const lines = [...groups.values()].flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / MAX_WORDS) }, (_, i) =>
      formatExact(group.slice(i * MAX_WORDS, (i + 1) * MAX_WORDS), service),
    ).flat(),
  );
  const inner = others.slice(0, service.inner.length).flatMap((rule) => formatPattern(rule, service));
  return [...inner, ...lines, ...others.slice(service.inner.length).flatMap((rule) => formatPattern(rule, service))];
}

/** HAProxy takes 64 words of a line. */
const MAX_WORDS = 40;

function formatExact(group: readonly PathRule[], service: PlannedService): string[] {
  const condition = `{ path -m str ${group.map(({ test }) => textOf(test)).join(' ')} }`;
  const [first] = group;
  return [
    ...group.flatMap(({ notes }) => notes.map(({ text }) => `# ${text}`)),
    ...(first?.opens ?? []).map((method) => formatDecision(service, method, 'public', condition)),
    ...(first?.closes ?? []).map((method) => formatDecision(service, method, 'private', condition)),
  ];
}

function formatPattern({ notes, test, shape, opens, closes }: PathRule, service: PlannedService): string[] {
  const pattern = textOf(test);
  const condition = `{ path -m reg '${pattern}' }`;
  const lines = [
    ...notes.map(({ text }) => `# ${text}`),
    ...opens.map((method) => formatDecision(service, method, 'public', condition)),
    ...closes.map((method) => formatDecision(service, method, 'private', condition)),
  ];
  if (closes.length === 0 || !repeatsGroup(pattern)) return lines;
  const limit = Math.floor(STACK / (pattern.split('(').length - 1));
  const long = `{ path,length gt ${limit} } { path -m reg '${shape}' }`;
  return [
    ...lines,
    '# and where the path is too long for that expression',
    ...[...opens, ...closes].map((method) => formatDecision(service, method, 'private', long)),
  ];
}

function formatDecision(service: PlannedService, method: string, scope: string, condition: string): string {
  const name = variable(service, method);
  return `http-request set-var(${name}) str(${scope}) if !{ var(${name}) -m found } ${condition}`;
}

/** OPTIONS is public with any other method, unless it has a route of its own. */
function formatOptions(service: PlannedService): string[] {
  const { surface } = service;
  const options = variable(service, 'OPTIONS');
  const lines = decidedMethods(surface).map(
    (method) =>
      `http-request set-var(${options}) str(public) if !{ var(${options}) -m found } { var(${variable(service, method)}) -m str public }`,
  );
  return lines.length === 0
    ? []
    : ['# OPTIONS, where it has no route of its own, is public with any other method.', ...lines];
}

function formatVerdict({ services }: Plan): string[] {
  const lines = ['', '# The service that the request is for, if its method is public, and all methods that are.'];
  for (const service of services) {
    const answers = decidedMethods(service.surface).map(
      (method) => [method, service.surface.methods.get(method) ?? []] as const,
    );
    for (const [method, names] of [...answers, ['OPTIONS', ['OPTIONS']] as const]) {
      const condition = `{ var(${variable(service, method)}) -m str public }`;
      lines.push(
        `http-request set-var-fmt(txn.postern_allow) '%[var(txn.postern_allow)], ${names.join(', ')}' if ${condition}`,
        `http-request set-var(txn.postern_service) str(${service.name}) if { method ${names.join(' ')} } ${condition}`,
      );
    }
  }
  const { status, body } = METHOD_NOT_ALLOWED;
  lines.push(
    'http-request deny deny_status 404 unless { var(txn.postern_allow) -m found }',
    `http-request return status ${status} content-type application/json string '${body}' hdr Allow '%[var(txn.postern_allow),regsub(^..,)]' unless { var(txn.postern_service) -m found }`,
  );
  for (const { name, prefix } of services) {
    if (prefix === '') continue;
    const strip = `pathq,regsub(^${escape(prefix)},)`;
    lines.push(`http-request set-pathq '%[${strip}]' if { var(txn.postern_service) -m str ${name} }`);
  }
  return [
    ...lines,
    services.length === 1 ? `default_backend ${services[0].name}` : 'use_backend %[var(txn.postern_service)]',
  ];
}

function formatBackend({ name, upstreams }: PlannedService): string[] {
  const several = upstreams.length > 1;
  return [
    '',
    `backend ${name}`,
    ...indent([
      '# Connections are kept. A request that a dying one loses, or a server refuses, goes to another, once more if it is',
      '# idempotent.',
      'http-reuse always',
      'retries 3',
      'retry-on conn-failure empty-response',
      'http-request disable-l7-retry unless { method GET HEAD OPTIONS PUT DELETE }',
      ...(several ? ['balance roundrobin', 'option redispatch 1'] : []),
      ...upstreams.map(({ protocol, host, port }, i) => {
        const check = several ? ' check inter 2s fall 1 rise 1 observe layer4 error-limit 1 on-error mark-down' : '';
        const named = host.startsWith('[') || /^[\d.]+$/.test(host) ? '' : ` sni str(${host}) verifyhost ${host}`;
        const tls = protocol === 'http' ? '' : ` ssl verify required ca-file @system-ca${named}`;
        return `server ${name}${several ? `-${i + 1}` : ''} ${host}:${port}${tls}${check}`;
      }),
    ]),
  ];
}

function formatError({ status, body }: Refusal): string {
  return `http-error status ${status} content-type application/json string '${body}'`;
}

function variable({ name }: PlannedService, what: string): string {
  return `txn.postern_${`${name}_${what.toLowerCase()}`.replaceAll('-', '_')}`;
}
