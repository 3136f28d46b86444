/**
 * A service whose requests fail or are slow because of another one, asked by the public: by itself and behind real
 * gateways. No reply says which services were called, and nothing that a client sends changes that.
 */

import { publicFacing, Postern, reply, type Context } from '../../src/index.js';
import { EXPORTERS } from './gateway-site.js';
import { startGateway, type GatewayName } from './gateway-process.js';
import { exchange, type WireReply } from './gateway-services.js';
import { inParallel } from './gateway-upstream.js';
import { freePorts } from './ports.js';
import { several, type Random } from './random.js';

const CALLS = 'x-postern-calls';
const SET = { headers: { 'X-Postern-Calls': '[["own","GET","",500,1,null,[]]]' } };
const BELOW = { status: 503, headers: { [CALLS]: '[["stock","GET","/items/:id",500,1,null,[]]]' } };

/** Ends of requests which a service learns the calls of. A slow one takes a second, so there are few. */
const EXPLAINED = ['failing', 'caught', 'returned', 'hanging', 'slow'];
const OTHERS = ['fine', 'set', 'streamed', 'raw', 'middleware', 'nowhere'];
const KINDS = [...Array<string[]>(6).fill([...EXPLAINED.slice(0, 4), ...OTHERS]).flat(), 'slow'];

const FIELDS = [
  'X-Envoy-Expected-Rq-Timeout-Ms: 2000', 'X-Request-Id: i-1', 'Accept: application/problem+json', 'Baggage: a=b',
  'Connection: x-postern-calls, close', 'TE: trailers', 'X-Envoy-Overloaded: true', 'X_Postern_Calls: []',
];
/** What a service sends, and the public may send as well. */
const CLAIMS = [
  'X-Postern-Calls: []', 'x-postern-calls: [["a","GET","",500,1,null,[]]]', 'X-POSTERN-CALLS: {\r\nX-Postern-Calls: x',
];

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function createShop(): Postern {
  const app = new Postern('shop', { logger: false, services: { billing: () => new Response('{}', BELOW) } });
  app.use(async (ctx, next) => {
    const answer = await next();
    if (ctx.path.endsWith('middleware')) answer.headers.set(CALLS, '[]');
    return answer;
  });
  const answer = async (ctx: Context<{ kind: string }>): Promise<object | undefined> => {
    const { kind } = ctx.params;
    const body = { caller: ctx.caller ?? null };
    const called = ctx.service('billing').get('/charges/7');
    if (kind === 'failing') await called;
    await called.catch(() => undefined);
    if (kind === 'caught') throw new Error('a bug');
    if (kind === 'slow') await wait(1100);
    if (kind === 'hanging') await wait(2000);
    if (kind === 'raw') return void ctx.raw.res.writeHead(500, SET.headers).end();
    if (kind === 'streamed') return reply((async function* () { yield 'x'; })(), { status: 500, ...SET });
    return reply(body, kind === 'returned' ? { status: 500 } : kind === 'set' ? SET : {});
  };
  const methods = { GET: publicFacing(answer), POST: publicFacing(answer) };
  app.route('/ends/:kind', methods);
  app.get('/limited/:kind', { public: true, timeout: 500 }, answer);
  return app;
}

/** The result of a run. */
export interface PublicCalls {
  readonly sent: number;
  /** Replies to another service that had the calls. */
  readonly told: number;
  readonly failures: readonly string[];
}

/** Sends nine requests for each of `count` random ones. */
export async function askAsPublic(random: Random, count: number): Promise<PublicCalls> {
  const [inside, open] = [createShop(), createShop()];
  const direct = await inside.listen({ host: '127.0.0.1', port: 0 });
  const publicly = await open.listen({ host: '127.0.0.1', port: 0, scope: 'public' });
  const names = Object.keys(EXPORTERS) as GatewayName[];
  const ports = await freePorts(names.length);
  const service = { router: inside.router, service: 'shop', upstream: direct.url };
  const gateways = await Promise.all(names.map((name, i) =>
    startGateway(name, EXPORTERS[name]([service], { listen: `127.0.0.1:${ports[i]}` }), [ports[i] ?? 0]),
  ));
  const doors: [string, number][] = [['scope: public', publicly.port]];
  for (const [i, name] of names.entries()) doors.push([name, ports[i] ?? 0]);
  const failures: string[] = [];
  let told = 0;
  const draw = (): { kind: string; request: (more: string) => string } => {
    const kind = random.pick(KINDS);
    const path = `/${kind === 'hanging' ? 'limited' : 'ends'}/${kind}${random.pick(['', '', '?a=b'])}`;
    const fields = several(random, 0, 2, () => random.pick(FIELDS)).map((field) => `${field}\r\n`).join('');
    const method = kind === 'hanging' ? 'GET' : random.pick(['GET', 'GET', 'POST']);
    const close = fields.includes('Connection:') ? '' : 'Connection: close\r\n';
    const head = `${method} ${path} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n${close}${fields}`;
    return { kind, request: (more) => `${head}${more}\r\n` };
  };
  const claim = (): string => `User-Agent: mail/1.0.0 postern/1.0.0\r\n${random.pick(CLAIMS)}\r\n`;
  const drawn = Array.from({ length: count }, () => ({ ...draw(), claims: claim() }));
  try {
    await inParallel(drawn, async ({ kind, request, claims }) => {
      const known = exchange(direct.port, request(claims));
      const asked = doors.map(async ([door, port]) => {
        const [plain, claimed] = await Promise.all([exchange(port, request('')), exchange(port, request(claims))]);
        for (const { headers } of [plain, claimed])
          if (CALLS in headers) failures.push(`${door}, ${kind}: ${CALLS}: ${headers[CALLS]}`);
        if (shapeOf(plain) !== shapeOf(claimed))
          failures.push(`${door}, ${kind}: ${shapeOf(claimed)} instead of ${shapeOf(plain)}`);
      });
      const { [CALLS]: calls = '' } = (await known).headers;
      if (calls.startsWith('[["billing",')) told += 1;
      else if (EXPLAINED.includes(kind)) failures.push(`direct, ${kind}: ${calls || 'no calls'}`);
      await Promise.all(asked);
    }, 32);
  } finally {
    for (const gateway of gateways) await gateway.stop();
    for (const app of [inside, open]) await app.close({ timeout: 5_000 });
  }
  return { sent: count * (1 + 2 * doors.length), told, failures };
}

/** All of a reply that two equal requests have in common: a gateway may frame an empty body in two ways. */
function shapeOf({ status, headers, body }: WireReply): string {
  const names = Object.keys(headers).filter((name) => !/^(?:content-length|transfer-encoding|connection)$/.test(name));
  return JSON.stringify([status, names.sort(), body]);
}
