/*
 * Writes the public surface as a frontend and a backend of HAProxy (https://docs.haproxy.org/2.6/configuration.html).
 *
 * HAProxy's `path` is the path as it was sent. A regular expression that runs out of stack matches nothing there: a
 * very long path would slip past the rule of a private route and be let in by that of a public one around it. So where
 * the rule of a private route has such an expression, long paths of its shape are private.
 */

import { readIncluded } from './exporter-options.js';
import type { ExporterArguments, GatewayOptions, GatewayService, ListenerOptions } from './exporter-options.js';
import { repeatsGroup } from './path-pattern.js';
import { createPlan, formatHeader, titleOf, type Plan, type PlannedService } from './plan.js';
import { METHOD_NOT_ALLOWED, NOT_FOUND, UNAVAILABLE } from './refusals.js';
import { createRules, GUARDS, type PathRule } from './rules.js';
import { SENT } from './spelling.js';
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
    formatHeader(plan),
    'defaults',
    ...indent([DEFAULTS]),
    '',
    `frontend ${services.length === 1 ? services[0].name : `gateway-${listen.port}`}`,
    ...indent([...formatListener(plan), REQUEST, ...services.flatMap(formatService), ...formatVerdict(plan)]),
    ...services.flatMap(formatBackend),
    '',
  ];
  return lines.join('\n');
}

/** Defaults of the sections that follow; `abortonclose` works nowhere else. */
const DEFAULTS = `mode http
timeout client 60s
timeout http-request 30s
timeout http-keep-alive 60s
timeout connect 5s
timeout server 300s
timeout tunnel 1h
option abortonclose # tells a service that the client has left
# What HAProxy says itself has the uniform body.
${[NOT_FOUND, ...UNAVAILABLE]
  .map(({ status, body }) => `http-error status ${status} content-type application/json string '${body}'`)
  .join('\n')}`;

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
    ...(include === undefined ? [] : ['', `# From ${include}`, readIncluded(include)]),
    // One a line: HAProxy takes 64 words of a line.
    ...hosts.map((host) => `acl postern_host hdr(host),lower,field(1,:) -m str ${host}`),
    ...(hosts.length === 0 ? [] : ['http-request deny deny_status 404 unless postern_host']),
  ];
}

const REQUEST = `
# A request has the id that its client gave it, if that is a valid one; every reply has one.
http-request set-var(txn.postern_id) req.fhdr(x-request-id) if { req.fhdr_cnt(x-request-id) eq 1 } \
{ req.fhdr(x-request-id) -m reg '^[A-Za-z0-9._-]{1,128}\\z' }
http-request set-var(txn.postern_id) uuid unless { var(txn.postern_id) -m found }
http-request set-header X-Request-Id %[var(txn.postern_id)]
http-after-response set-header X-Request-Id %[var(txn.postern_id)] if { var(txn.postern_id) -m found } \
!{ res.hdr(x-request-id) -m found }
# Who the client is, the gateway knows.
http-request del-header Forwarded
http-request set-header X-Forwarded-For %[src]
http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]
http-request del-header X-Forwarded-Host
http-request set-header X-Forwarded-Host %[req.hdr(host)] if { req.hdr(host) -m found }
# What is between two machines alone does not go on.
http-request del-header Keep-Alive
http-request del-header Proxy-Connection
http-request del-header TE
http-request del-header Upgrade unless { req.hdr(upgrade) -i websocket }
http-response del-header Keep-Alive

# The path as it was sent and as the service gets it: percent-encoded, without the query.
http-request set-uri /%[pathq,regsub(^/,)] unless { url_beg / * }
# Refused is what two programs could read differently.
http-request deny deny_status 404 if { url_sub '#' }
${GUARDS.map(({ note, pattern }) => `# ${note}\nhttp-request deny deny_status 404 if { path -m reg '${pattern}' }`).join('\n')}`;

/** Which methods are public, and which private, on the paths that meet a condition. */
interface Decision extends Pick<PathRule, 'notes' | 'opens' | 'closes'> {
  readonly condition: string;
}

function formatService(service: PlannedService): string[] {
  const { methods } = service.surface;
  const options = variable(service, 'OPTIONS');
  return [
    '',
    `# The service ${titleOf(service)}. For each method, the first line that matches decides, as the router prefers its routes.`,
    ...createDecisions(service).flatMap(({ notes, opens, closes, condition }) => [
      ...notes.map(({ text }) => `# ${text}`),
      ...opens.map((method) => formatDecision(variable(service, method), 'public', condition)),
      ...closes.map((method) => formatDecision(variable(service, method), 'private', condition)),
    ]),
    ...(methods.length === 0 ? [] : ['# OPTIONS, where it has no route of its own, is public with any other method.']),
    ...methods.map((method) =>
      formatDecision(options, 'public', `{ var(${variable(service, method)}) -m str public }`),
    ),
  ];
}

function formatDecision(name: string, scope: string, condition: string): string {
  return `http-request set-var(${name}) str(${scope}) if !{ var(${name}) -m found } ${condition}`;
}

/**
 * A whole static path is the best route for itself, so those come first, many in a line: HAProxy has a tree for them.
 */
function createDecisions(service: PlannedService): Decision[] {
  const rules = createRules(service, { gateway: 'HAProxy', spelling: SENT, pcre: true, unroll: true });
  const inner = rules.splice(0, service.inner.length);
  const groups = new Map<string, Decision>();
  for (const [i, { exact, opens, closes, notes }] of rules.entries()) {
    if (exact === null) continue;
    const key = `${Math.floor(i / MAX_WORDS)} ${opens.join()} ${closes.join()}`;
    const group = groups.get(key);
    groups.set(key, {
      notes: [...(group?.notes ?? []), ...notes],
      opens,
      closes,
      condition: `${group?.condition.slice(0, -2) ?? '{ path -m str'} ${exact} }`,
    });
  }
  const patterns = rules.filter(({ exact }) => exact === null);
  return [...inner.flatMap(decidePattern), ...groups.values(), ...patterns.flatMap(decidePattern)];
}

/** Paths in one line: HAProxy takes 64 words of it, and the rest of the line needs some. */
const MAX_WORDS = 40;

function decidePattern(rule: PathRule): Decision[] {
  const { pattern, shape, opens, closes } = rule;
  const decision = { ...rule, condition: `{ path -m reg '${pattern}' }` };
  if (closes.length === 0 || !repeatsGroup(pattern)) return [decision];
  const limit = Math.floor(STACK / (pattern.split('(').length - 1));
  return [
    decision,
    {
      notes: [{ method: null, text: 'and where the path is too long for that expression' }],
      opens: [],
      closes: [...opens, ...closes],
      condition: `{ path,length gt ${limit} } { path -m reg '${shape}' }`,
    },
  ];
}

function formatVerdict({ services }: Plan): string[] {
  const { status, body } = METHOD_NOT_ALLOWED;
  return [
    '',
    '# The service that the request is for, if its method is public, and all methods that are.',
    ...services.flatMap((service) =>
      service.surface.answers.flatMap(([method, names]) => {
        const condition = `{ var(${variable(service, method)}) -m str public }`;
        return [
          `http-request set-var-fmt(txn.postern_allow) '%[var(txn.postern_allow)], ${names.join(', ')}' if ${condition}`,
          `http-request set-var(txn.postern_service) str(${service.name}) if { method ${names.join(' ')} } ${condition}`,
        ];
      }),
    ),
    'http-request deny deny_status 404 unless { var(txn.postern_allow) -m found }',
    `http-request return status ${status} content-type application/json string '${body}' hdr Allow '%[var(txn.postern_allow),regsub(^..,)]' unless { var(txn.postern_service) -m found }`,
    ...services
      .filter(({ prefix }) => prefix !== '')
      .map(
        ({ name, prefix }) =>
          `http-request set-pathq '%[pathq,regsub(^${escape(prefix)},)]' if { var(txn.postern_service) -m str ${name} }`,
      ),
    services.length === 1 ? `default_backend ${services[0].name}` : 'use_backend %[var(txn.postern_service)]',
  ];
}

function formatBackend({ name, protocol, upstreams }: PlannedService): string[] {
  const several = upstreams.length > 1;
  const check = several ? ' check inter 2s fall 1 rise 1 observe layer4 error-limit 1 on-error mark-down' : '';
  return [
    '',
    `backend ${name}`,
    ...indent([
      BACKEND,
      ...(several ? ['balance roundrobin', 'option redispatch 1'] : []),
      ...upstreams.map(({ host, port }, i) => {
        const named = host.startsWith('[') || /^[\d.]+$/.test(host) ? '' : ` sni str(${host}) verifyhost ${host}`;
        const tls = protocol === 'http' ? '' : ` ssl verify required ca-file @system-ca${named}`;
        return `server ${name}${several ? `-${i + 1}` : ''} ${host}:${port}${tls}${check}`;
      }),
    ]),
  ];
}

const BACKEND = `# Connections are kept. A request that a dying one loses, or a server refuses, goes to another,
# once more if it is idempotent.
http-reuse always
retries 3
retry-on conn-failure empty-response
http-request disable-l7-retry unless { method GET HEAD OPTIONS PUT DELETE }`;

function variable({ name }: PlannedService, what: string): string {
  return `txn.postern_${`${name}_${what.toLowerCase()}`.replaceAll('-', '_')}`;
}
