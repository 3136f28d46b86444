/**
 * Services behind real gateways, compared with what they answer directly: only public handlers may run, and every
 * request that one of them answers has to get through.
 */

import { connect, type Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { Postern, publicFacing, reply, type Context } from '../../src/index.js';
import { toCaddy, toHAProxy, toNginx, type GatewayService, type ListenerOptions } from '../../src/gateway.js';
import { startGateway, type GatewayName } from './gateway-process.js';
import { inParallel } from './gateway-upstream.js';
import { freePorts } from './ports.js';

export type Exporter = (services: readonly GatewayService[], options: ListenerOptions) => string;

export const EXPORTERS: Readonly<Record<GatewayName, Exporter>> = {
  nginx: toNginx,
  haproxy: toHAProxy,
  caddy: toCaddy,
};

/** A route of a service. */
export interface SiteRoute {
  readonly open: boolean;
  readonly method: string;
  readonly path: string;
}

/** The routes of a service. */
export interface ServiceTable {
  readonly name: string;
  readonly prefix: string;
  readonly routes: readonly SiteRoute[];
}

interface Service extends ServiceTable {
  readonly app: Postern;
  readonly port: number;
}

/** Services behind one host. */
export interface Site {
  readonly services: readonly Service[];
  /** Names that are served; any if there are none. */
  readonly hosts: readonly string[];
  /** What must not have happened. */
  readonly failures: string[];
}

/** A request, byte for byte. */
export interface SiteRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  /** Further header fields, without the last line break. */
  readonly fields: string;
}

/** The result of a run. */
export interface Outcome {
  readonly sent: number;
  /** Requests that a public handler answers when it is asked directly. */
  readonly answered: number;
  readonly failures: readonly string[];
}

/** The name that every site serves. */
export const NAME = 't.example';

/** Starts the services of a site, in this process. */
export async function startSite(tables: readonly ServiceTable[], hosts: readonly string[] = []): Promise<Site> {
  const failures: string[] = [];
  const services = [];
  for (const table of tables) {
    const app = createApp(table, failures);
    const { url } = await app.listen({ host: '127.0.0.1', port: 0 });
    services.push({ ...table, app, port: Number(new URL(url).port) });
  }
  return { services, hosts, failures };
}

/** Ends the services of a site. */
export async function stopSite({ services }: Site): Promise<void> {
  for (const { app } of services) await app.close();
}

/** The services of a site as the exporters take them. */
export function toServices({ services }: Site): GatewayService[] {
  return services.map(({ app, name, prefix, port }) => ({
    router: app.router,
    service: name,
    upstream: `http://127.0.0.1:${port}`,
    ...(prefix === '' ? {} : { prefix }),
  }));
}

/** A site and what it is asked. */
export interface SiteJob {
  readonly site: Site;
  readonly requests: readonly SiteRequest[];
  /** The same services with only their public routes, which the replies are compared with. */
  readonly bare?: Site;
}

/** Sends the requests of each site to it, through each gateway. */
export async function askSites(
  sites: readonly SiteJob[],
  exporters: Partial<typeof EXPORTERS> = EXPORTERS,
): Promise<Outcome> {
  const failures: string[] = [];
  const names = Object.keys(exporters) as GatewayName[];
  const ports = await freePorts(sites.length * names.length);
  const portOf = (name: GatewayName, i: number): number => ports[names.indexOf(name) * sites.length + i] as number;
  const gateways = await Promise.all(
    names.map((name) => {
      const texts = sites.map(({ site }, i) =>
        (exporters[name] as Exporter)(toServices(site), { listen: `127.0.0.1:${portOf(name, i)}`, hosts: site.hosts }),
      );
      return startGateway(name, texts.join('\n'), sites.map((_, i) => portOf(name, i)));
    }),
  );
  const jobs = sites.flatMap(({ site, requests, bare }, i) =>
    requests.map((request) => ({ site, i, bare, ...request })),
  );
  let answered = 0;
  // A new connection for each question would take most of its time.
  const kept: KeptConnections = new Map();
  try {
    await inParallel(jobs, async ({ site, i, bare, method, target, host, fields }) => {
      const direct = await askDirectly(site, method, target, 'X-Direct: 1', kept);
      const expected = direct?.reached.startsWith('+') === true ? direct : null;
      if (expected !== null) answered += 1;
      for (const name of names) {
        const { status, reached, received } = await send(portOf(name, i), method, target, host, fields, kept);
        const fail = (what: string): void => {
          failures.push(
            `${name} ${JSON.stringify(method)} ${JSON.stringify(target.slice(0, 300))} Host ${host} ${JSON.stringify(fields)}: ${what}; ${describe(site)}`,
          );
        };
        if (status >= 500) fail(`the gateway answers ${status}`);
        const served =
          !host.includes(',') && (site.hosts.length === 0 || host.toLowerCase().replace(/:\d+$/, '') === NAME);
        if (!served) {
          // Caddy answers "OPTIONS *" by itself.
          if (reached !== '' || (status !== 404 && status !== 400 && target !== '*'))
            fail(`a host that is not served gets ${status} ${reached}`);
        } else if (expected !== null && !mayRefuse(name, target, expected, status)) {
          if (reached !== expected.reached)
            fail(`${status} ${reached || 'from nobody'} instead of ${expected.reached}`);
          else if (!isRespelled(name, received, expected.received))
            fail(`the service gets ${received.slice(0, 200)} instead of ${expected.received.slice(0, 200)}`);
        } else if (direct?.status === 400) {
          // Caddy mends some of what is malformed.
        } else if (expected === null && reached !== '' && !isAmbiguous(name, pathOf(target))) {
          fail(`${reached} is reached, which does not answer directly`);
        } else if (expected === null && bare !== undefined && status < 400) {
          const asPublic = 'X-Direct: 1\r\nX-Postern-Scope: public';
          const other = await askDirectly(bare, method, target, asPublic, kept);
          if (other !== null && other.status >= 400)
            fail(`${status} instead of ${other.status} without the private routes`);
        }
      }
    });
  } finally {
    for (const socket of [...kept.values()].flat()) socket.destroy();
    for (const gateway of gateways) await gateway.stop();
  }
  for (const { site } of sites) failures.push(...site.failures.splice(0));
  return { sent: jobs.length * names.length, answered, failures };
}

/**
 * An application whose replies say which route was reached, and with which target. A private one must not be, except
 * directly.
 */
function createApp({ name, routes }: ServiceTable, failures: string[]): Postern {
  const app = new Postern(name, { logger: false });
  for (const { open, method, path } of routes) {
    const title = `${open ? '+' : '-'}${name} ${method} ${path}`;
    const handler = (ctx: Context) => {
      const { headers, url = '' } = ctx.raw.req;
      if (headers['x-direct'] === undefined) {
        if (!open) failures.push(`${title} was reached by ${url}`);
        if (headers['x-postern-scope'] !== 'public')
          failures.push(`${title} got the scope ${headers['x-postern-scope']} with ${url}`);
        for (const field of [
          'x-postern-path',
          'forwarded',
          'baggage',
          'x-envoy-overloaded',
          'x-envoy-expected-rq-timeout-ms',
          'te',
          'keep-alive',
          'upgrade',
        ])
          if (headers[field] !== undefined) failures.push(`${title} got ${field}: ${headers[field]}`);
        if (/postern/i.test(headers.connection ?? '')) failures.push(`${title} got connection: ${headers.connection}`);
      }
      return reply('', { headers: { 'x-reached': encodeURIComponent(title), 'x-received': encodeURIComponent(url) } });
    };
    app.route(path, { [method]: open ? publicFacing(handler) : handler });
  }
  return app;
}

interface Answer {
  readonly status: number;
  /** The route, with a sign in front: `+s0 GET /users/:id`; empty if no handler has run. */
  readonly reached: string;
  /** The target that the service has got. */
  readonly received: string;
}

/** The answer of the service that has the path, or else of any; null if the path is nobody's. */
async function askDirectly(
  { services }: Site,
  method: string,
  target: string,
  fields: string,
  kept: KeptConnections,
): Promise<Answer | null> {
  const [, origin = '', path = '', search = ''] = /^(https?:\/\/[^/?#]*)?(\/[^?]*)(.*)$/is.exec(target) ?? [];
  const raw = path.split('/').slice(1);
  const plain = raw.map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      return segment;
    }
  });
  const below = services
    .map(({ prefix }) => prefix.split('/').slice(1))
    .filter((texts) => texts.length > 0 && texts.every((text, i) => plain[i] === text))
    .sort((a, b) => b.length - a.length)[0];
  if (below !== undefined && raw.length === below.length) return null;
  const own = services.filter(({ prefix }) => prefix === (below === undefined ? '' : `/${below.join('/')}`));
  const inner = below === undefined ? target : `${origin}/${raw.slice(below.length).join('/')}${search}`;
  let answer: Answer | null = null;
  for (const { port } of own) {
    const next = await send(port, method, inner, NAME, fields, kept);
    if (next.reached.startsWith('+')) return next;
    if (answer === null || (next.status < answer.status && answer.reached === '')) answer = next;
  }
  return answer;
}

/** Whether a gateway may refuse a request that a public handler would answer. */
function mayRefuse(name: GatewayName, target: string, answer: Answer, status: number): boolean {
  const path = pathOf(target);
  // By itself: raw bytes that a target can't have; and nginx, NUL and dot segments that lead out of the root.
  if (status === 400)
    return (
      /[^!-~]/.test(path) ||
      /^https?:\/\/[^/?]*(?:\?|$)/i.test(target) ||
      (name === 'nginx' && (/%00/.test(path) || leavesRoot(path)))
    );
  // Caddy escapes the whole path if it has a character that a path can't have, and forgets which slash was escaped.
  if (name === 'caddy' && /["<>\\^`{|}]/.test(path) && /%2F/i.test(path)) return true;
  return hasNeedlessEscape(path, answer) && isAmbiguous(name, path);
}

/** Whether a gateway may compare another path than the service does, if static text is escaped without need. */
function isAmbiguous(name: GatewayName, path: string): boolean {
  return name !== 'haproxy' && (/%2F/i.test(path) || (name === 'nginx' && /\/(?:\.|%2E){1,2}(?:\/|$)/i.test(path)));
}

/** Whether a character of static text, a prefix included, is escaped without need. */
function hasNeedlessEscape(path: string, { reached, received }: Answer): boolean {
  const route = reached.split(' ').slice(2).join(' ').split(/\/(?![^(]*\))/);
  const sent = path.split('/');
  const prefix = sent.length - pathOf(received).split('/').length;
  return sent.some((segment, i) => {
    const isStatic = i <= prefix || /^[^:*]/.test(route[i - prefix] ?? '*');
    return isStatic && (segment.match(/%../g) ?? [])
      .some((escape) => /[A-Za-z0-9._~!$&'()*+,;=:@-]/.test(String.fromCharCode(parseInt(escape.slice(1), 16))));
  });
}

/** The path of a target, which may be in absolute-form. */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*$/s, '');
  return path === '' ? '/' : path;
}

function leavesRoot(path: string): boolean {
  let depth = 0;
  for (const segment of path.replace(/%2e/gi, '.').replace(/%2f/gi, '/').split('/').slice(1)) {
    depth += segment === '..' ? -1 : segment === '.' ? 0 : 1;
    if (depth < 0) return true;
  }
  return false;
}

/** Whether a target is the one that was sent, apart from its form, and from escapes that Caddy added. */
function isRespelled(name: GatewayName, received: string, expected: string): boolean {
  const [one, other] = [received, expected].map((url) => [pathOf(url), /\?.*$/s.exec(url)?.[0] ?? ''] as const) as [
    readonly [string, string],
    readonly [string, string],
  ];
  if (one[1] !== other[1]) return false;
  const decode = (path: string): string[] => path.split('/').map((segment) => unescape(segment));
  return one[0] === other[0] || (name === 'caddy' && isDeepStrictEqual(decode(one[0]), decode(other[0])));
}

function describe({ services }: Site): string {
  return `${services.map(({ name, prefix, routes }) => `${name} ${prefix} ${routes.map(({ open, method, path }) => `${open ? '+' : '-'}${method} ${path}`).join(', ')}`).join(' | ')}`;
}

/** Connections that are open and wait for their next request, by port. */
type KeptConnections = Map<number, Socket[]>;

/** Sends one request, byte for byte, over one of `kept`; over a connection of its own if it has a field for that. */
function send(
  port: number,
  method: string,
  target: string,
  host: string,
  fields: string,
  kept: KeptConnections,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const isKept = !/^Connection:/im.test(fields);
    const free = kept.get(port) ?? [];
    kept.set(port, free);
    let old = isKept ? free.pop() : undefined;
    while (old?.destroyed === true) old = free.pop();
    const socket = old ?? connect(port, '127.0.0.1').setTimeout(10_000).on('error', () => undefined);
    let received = '';
    const finish = (): void => {
      socket.off('data', onData).off('error', onError).off('close', finish).off('timeout', onTimeout);
      // The service closed the connection before it read the request.
      if (received === '' && old !== undefined) return resolve(send(port, method, target, host, fields, kept));
      const head = received.slice(0, received.indexOf('\r\n\r\n'));
      const header = (name: string): string =>
        decodeURIComponent(new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1] ?? '');
      if (!isKept || header('connection') === 'close') socket.destroy();
      if (!socket.destroyed) free.push(socket);
      resolve({
        status: Number(/^HTTP\/1\.[01] (\d+)/.exec(head)?.[1] ?? 0),
        reached: header('x-reached'),
        received: header('x-received'),
      });
    };
    const onData = (chunk: Buffer): void => {
      received += chunk.toString('latin1');
      if (isWhole(received, method)) finish();
    };
    const onError = (error: Error): void => {
      if (received === '' && old === undefined) reject(error);
    };
    const onTimeout = (): void => void socket.destroy(new Error(`${method} ${target}: no answer`));
    socket.on('data', onData).on('error', onError).on('close', finish).on('timeout', onTimeout);
    socket.write(
      Buffer.from(
        `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${fields === '' ? '' : `${fields}\r\n`}Content-Length: 0\r\n\r\n`,
        'latin1',
      ),
    );
  });
}

/** Whether the head and the body of a reply are there, which a connection that is kept would not end after. */
function isWhole(received: string, method: string): boolean {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const length = /^content-length: (\d+)/im.exec(received.slice(0, end))?.[1];
  return (
    method === 'HEAD' ||
    / (?:101|204) /.test(received.slice(0, 14)) ||
    (length !== undefined && received.length >= end + 4 + Number(length)) ||
    received.endsWith('\r\n0\r\n\r\n')
  );
}
