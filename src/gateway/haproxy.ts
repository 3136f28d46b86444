/*
 * Writes a frontend and its backends for HAProxy (https://docs.haproxy.org/2.6/configuration.html).
 *
 * The path that is compared is decoded, and a slash inside of a segment becomes the character U+0001. So one expression
 * matches every spelling of a path.
 */

import { REQUEST_ID } from '../propagation/mesh-headers.js';
import { LISTENER, readIncluded, type ExporterArguments } from './exporter-options.js';
import { formatAnySegments, formatRegex, formatText, PATH_END } from './path-pattern.js';
import { createPlan, type Plan, type PlannedService, type PublicRoute } from './plan.js';
import { formatHeader, formatRefusal, indent, REMOVED, titleOf } from './text.js';

/**
 * Writes a frontend, and a backend with the name of each service. The frontend of a single service has its name, too.
 * The defaults in front of them also apply to what follows in the same file, so put it after other sections.
 *
 * @throws {TypeError} for a wrong option
 * @throws {GatewayError} for a public CONNECT route, and for public routes of two services that HAProxy can't tell
 * apart
 */
export function toHAProxy(...args: ExporterArguments): string {
  const plan = createPlan({ name: 'toHAProxy', gateway: 'HAProxy', options: LISTENER }, args);
  const { services, listen } = plan;
  return [
    formatHeader(plan),
    'defaults',
    ...indent([DEFAULTS]),
    '',
    `frontend ${services.length === 1 ? services[0].name : `gateway-${listen.port}`}`,
    ...indent([...formatBind(plan), ID, ...formatNames(plan), HEADERS]),
    ...indent([...services.flatMap(formatAcls), ...formatChoice(plan)]),
    ...services.flatMap(formatBackend),
    '',
  ].join('\n');
}

/** Defaults of the sections that follow. `abortonclose` works only here. */
const DEFAULTS = `mode http
timeout client 60s
timeout http-request 30s
timeout http-keep-alive 60s
timeout connect 5s
timeout server 300s
timeout tunnel 1h
option abortonclose # a service learns that the client has disconnected
# Refusals of HAProxy itself have the uniform body.
${([400, 404, 502, 503, 504] as const)
  .map((status) => `http-error status ${status} content-type application/json string '${formatRefusal(status)}'`)
  .join('\n')}`;

function formatBind({ listen, tls, include }: Plan): string[] {
  const keys = tls === undefined ? [] : [tls.certificate, `${tls.certificate}.key`];
  if (tls !== undefined && !keys.includes(tls.key)) {
    const [key, ...places] = [tls.key, ...keys].map((file) => JSON.stringify(file));
    const reason = `HAProxy looks for the key in ${places.join(' or ')}`;
    throw new TypeError(`option "tls.key" is ${key}, and ${reason}; move it there`);
  }
  return [
    `bind ${listen.host}:${listen.port}${tls === undefined ? '' : ` ssl crt '${tls.certificate}' alpn h2,http/1.1`}`,
    ...(include === undefined ? [] : ['', `# From ${include}`, readIncluded(include)]),
  ];
}

const ID = `
# A request has the id that its client gave it, if that is a valid one. A refusal of HAProxy itself has it, too.
http-request set-var(txn.postern_id) req.fhdr(x-request-id) if { req.fhdr_cnt(x-request-id) eq 1 } \
{ req.fhdr(x-request-id) -m reg '^${REQUEST_ID}\\z' }
http-request set-var(txn.postern_id) uuid unless { var(txn.postern_id) -m found }
http-request set-header X-Request-Id %[var(txn.postern_id)]
http-response set-var(txn.postern_answered) bool(true)
http-after-response set-header X-Request-Id %[var(txn.postern_id)] if { var(txn.postern_id) -m found } \
!{ var(txn.postern_answered) -m found }`;

/** `req.fhdr` reads the whole header, which `req.hdr` would split at its commas. */
function formatNames({ hosts }: Plan): string[] {
  return [
    '',
    '# The names that are served. A longer one would not fit into the headers that are set below.',
    'http-request deny deny_status 400 if { req.fhdr(host),length gt 260 }',
    // One name in each line: HAProxy reads no more than 64 words of a line.
    ...hosts.map((host) => `acl postern_host req.fhdr(host) -m reg -i '^${formatText(host)}(?::[0-9]*)?$'`),
    `http-request deny deny_status 404 ${hosts.length === 0 ? 'if { req.fhdr(host) -m sub , }' : 'unless postern_host'}`,
  ];
}

const HEADERS = `
# The service serves only public routes to a request with this header.
http-request set-header X-Postern-Scope public
http-request set-header X-Forwarded-For %[src]
http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]
http-request del-header X-Forwarded-Host
http-request set-header X-Forwarded-Host %[req.fhdr(host)] if { req.fhdr(host) -m found }
# Hop-by-hop headers are not forwarded, except for those of a WebSocket.
http-request del-header Connection
http-request set-header Connection upgrade if { req.hdr(upgrade) -i websocket }
http-request del-header Upgrade unless { req.hdr(upgrade) -i websocket }
${['Keep-Alive', 'Proxy-Connection', 'TE', ...REMOVED].map((name) => `http-request del-header ${name}`).join('\n')}
http-response del-header Keep-Alive

http-request set-uri /%[pathq,regsub(^/,)] unless { url_beg / * }
# The path that is compared: decoded, and a slash inside of a segment is the character U+0001.
http-request set-var(txn.postern_path) path,regsub(%2[Ff],%01,g),url_dec`;

function formatAcls(service: PlannedService): string[] {
  const { name, prefix, routes, inner } = service;
  const names = new Map(routes.map((route) => [aclOf(route, service), route]));
  return [
    '',
    `# The public routes of ${titleOf(service)}.`,
    ...inner.map((other) => formatPathAcl(`${name}:inner`, `^${formatText(other)}(?:/|${PATH_END})`)),
    ...routes.flatMap((route) => [
      `# ${route.title}`,
      formatPathAcl(aclOf(route, service), formatRegex(route.segments, { prefix, end: PATH_END })),
    ]),
    ...Array.from(names, ([acl, { methods }]) => {
      const condition = `{ method ${methods.join(' ')} } ${acl}${ownOf(service)}`;
      return `http-request set-var(txn.postern_service) str(${name}) if ${condition}`;
    }),
  ];
}

function formatPathAcl(name: string, pattern: string): string {
  return `acl ${name} var(txn.postern_path) -m reg '${pattern}'`;
}

/** Names an ACL, which is true where any of its lines is: `users:GET:HEAD`, and `users:GET:HEAD:maybe`. */
function aclOf({ methods, certain }: PublicRoute, { name }: PlannedService): string {
  const own = methods.filter((method, i) => method !== 'OPTIONS' || i === 0);
  return [name, ...own, ...(certain ? [] : ['maybe'])].join(':');
}

function formatChoice({ services, methods }: Plan): string[] {
  return [
    '',
    '# The path is public for other methods: 405. Else it is a 404.',
    'acl postern_found var(txn.postern_service) -m found',
    ...services.flatMap((service) => methods.flatMap((method) => formatAllow(service, method))),
    `http-request return status 405 content-type application/json string '${formatRefusal(405)}' hdr Allow '%[var(txn.postern_allow),regsub(^..,)]' if { var(txn.postern_allow) -m found }`,
    'http-request deny deny_status 404 unless postern_found',
    ...services.flatMap(({ name, prefix }) => {
      const inner = `'%[pathq,regsub(^${formatAnySegments(prefix)},)]'`;
      return prefix === '' ? [] : [`http-request set-pathq ${inner} if { var(txn.postern_service) -m str ${name} }`];
    }),
    services.length === 1 ? `default_backend ${services[0].name}` : 'use_backend %[var(txn.postern_service)]',
  ];
}

function formatAllow(service: PlannedService, method: string): string[] {
  const able = service.routes.filter((route) => route.certain && route.methods.includes(method));
  const acls = [...new Set(able.map((route) => `!postern_found ${aclOf(route, service)}${ownOf(service)}`))];
  if (acls.length === 0) return [];
  const add = `http-request set-var-fmt(txn.postern_allow) '%[var(txn.postern_allow)], ${method}'`;
  // A line has at most 64 words, and an ACL takes four.
  if (acls.length <= 12) return [`${add} if ${acls.join(' or ')}`];
  const marks = acls.map((acl) => `http-request set-var(txn.postern_able) str(${method}) if ${acl}`);
  return [...marks, `${add} if { var(txn.postern_able) -m str ${method} }`];
}

/** A condition: no other service has the path by a longer prefix. */
function ownOf({ name, inner }: PlannedService): string {
  return inner.length === 0 ? '' : ` !${name}:inner`;
}

function formatBackend({ name, protocol, upstreams }: PlannedService): string[] {
  const several = upstreams.length > 1;
  return [
    '',
    `backend ${name}`,
    ...indent([
      BACKEND,
      ...(several ? ['balance roundrobin', 'option redispatch 1'] : []),
      ...upstreams.map(({ host, port }, i) => {
        const named = host.startsWith('[') || /^[\d.]+$/.test(host) ? '' : ` sni str(${host}) verifyhost ${host}`;
        const tls = protocol === 'http' ? '' : ` ssl verify required ca-file @system-ca${named}`;
        return `server ${name}${several ? `-${i + 1}` : ''} ${host}:${port}${tls}`;
      }),
    ]),
  ];
}

// Without health checks: between a restart and the next check, a server that is back counts as down.
const BACKEND = `# Connections are kept. A server that refuses a connection is skipped for that request only.
# A request that a dying connection loses is sent again, if it is idempotent.
http-reuse always
retries 3
retry-on conn-failure empty-response
http-request disable-l7-retry unless { method GET HEAD OPTIONS PUT DELETE }`;
