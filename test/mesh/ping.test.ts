/**
 * Pings through real meshes on loopback, with every request counted.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { startMesh, type MeshService } from '../support/mesh.js';
import { startPeer, startRawPeer } from '../support/peer.js';
import { freePort } from '../support/ports.js';

const time = expect.stringMatching(/^\d+ ms$/);
const pong = { response: 'pong', process_time: time };
const entry = (response: unknown, status = 200): object => ({ response, status_code: status, request_time: time });
const document = (response: unknown): object => ({ response, process_time: time });
const error = (message: string, description: string): object =>
  ({ message, description, error_code: { name: 'framework_error_unspecified', value: 999998 } });

async function ping({ app, url }: MeshService, depth: number, headers: Record<string, string> = {}): Promise<unknown> {
  const response = await fetch(`${url}/${app.name}/ping/?depth=${depth}`, { headers });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  return response.json();
}

const pings = (service: string, ...depths: number[]): string[] =>
  depths.map((depth) => `/${service}/ping/?depth=${depth}`);

test('a chain is walked as deep as asked, one request for each service', async () => {
  const { a, b, c, d } = await startMesh({ a: ['b'], b: ['c'], c: ['d'], d: [] });
  expect(await ping(a, 0)).toEqual(pong);
  expect(await ping(a, 1)).toEqual(document({ b: entry(pong) }));
  expect(await ping(a, 2)).toEqual(document({ b: entry(document({ c: entry(pong) })) }));
  expect(await ping(a, 5)).toEqual(document({ b: entry(document({ c: entry(document({ d: entry(pong) })) })) }));
  expect(b.seen).toEqual(pings('b', 0, 1, 4));
  expect(c.seen).toEqual(pings('c', 0, 3));
  expect(d.seen).toEqual(pings('d', 2));
});

test('a ring ends where the depth does', async () => {
  const { a, b, c } = await startMesh({ a: ['b'], b: ['c'], c: ['a'] });
  const end = document({ b: entry(document({ c: entry(pong) })) });
  expect(await ping(a, 5)).toEqual(document({ b: entry(document({ c: entry(document({ a: entry(end) })) })) }));
  expect([a.seen, b.seen, c.seen]).toEqual([pings('a', 5, 2), pings('b', 4, 1), pings('c', 3, 0)]);
});

test('a service connected to itself is asked once for each level', async () => {
  const { a } = await startMesh({ a: ['a'] });
  await ping(a, 3);
  expect(a.seen).toEqual(pings('a', 3, 2, 1, 0));
});

test('in a full mesh of 6 at depth 4 each edge costs one request for each level', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
  const edges = Object.fromEntries(names.map((name) => [name, names.filter((other) => other !== name)])) as Record<
    (typeof names)[number],
    string[]
  >;
  const mesh = await startMesh(edges, { pingTimeout: 10_000 });
  // The leaves answer when every ping above them has arrived, so that which ping finds another in flight is no race.
  const above = { total: 1 + 5 + 25 + 30, seen: 0 };
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  for (const { app } of Object.values(mesh)) {
    app.use(async (ctx, next) => {
      if (ctx.query.get('depth') === '0') await gate;
      else if ((above.seen += 1) === above.total) open();
      return next();
    });
  }
  const response = JSON.stringify(await ping(mesh.a, 4));
  expect(response.match(/"pong"/g)).toHaveLength(5 ** 4);
  const count = ({ seen }: MeshService, depth: number): number =>
    seen.filter((target) => target.endsWith(`=${depth}`)).length;
  expect(names.map((name) => [3, 2, 1, 0].map((depth) => count(mesh[name], depth))))
    .toEqual([[0, 5, 5, 5], ...names.slice(1).map(() => [1, 4, 5, 5])]);
});

test('what fails is an entry of its own beside what works', async () => {
  const page = await startPeer((_req, res) => res.setHeader('content-type', 'text/html').end('<h1>Welcome</h1>'));
  const broken = await startPeer((_req, res) =>
    res.writeHead(500, { 'content-type': 'text/html' }).end('<h1>Oops</h1>'),
  );
  const elsewhere = await startPeer((_req, res) => res.end());
  const moved = await startPeer((_req, res) => res.writeHead(307, { location: elsewhere.url }).end());
  const silent = await startPeer(() => undefined);
  const dying = await startRawPeer(() => null);
  const cut = await startRawPeer(
    (_chunk, socket) => (
      socket.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"resp'),
      undefined
    ),
  );
  const garbage = await startRawPeer(() => 'hello\r\n\r\n');
  const connections = Object.entries({ page, broken, moved, silent, dying, cut, garbage })
    .map(([name, { url }]) => `${name}=${url}`);
  const { a, strict } = await startMesh(
    { a: ['strict', ...connections, `closed=http://127.0.0.1:${await freePort()}`], strict: [] },
    { pingTimeout: 500, maxPingDepth: 2 },
  );
  strict.app.use((ctx, next) =>
    ctx.query.get('depth') === '1' ? { response: 'pong', process_time: '0 ms', new_in_2: true } : next(),
  );
  expect(await ping(a, 2)).toEqual(
    document({
      strict: entry({ response: 'pong', process_time: '0 ms' }),
      page: entry(error('Bad Gateway', 'page answered 200 with something else than a ping'), 502),
      broken: entry(error('Internal Server Error', 'broken answered 500'), 500),
      moved: entry(error('Bad Gateway', 'moved answered 307 with something else than a ping'), 502),
      silent: entry(error('Gateway Timeout', 'silent did not answer within 1000 ms'), 504),
      dying: entry(error('Service Unavailable', 'dying is unreachable'), 503),
      cut: entry(error('Service Unavailable', 'cut broke off its answer'), 503),
      garbage: entry(error('Bad Gateway', 'garbage answered with malformed HTTP'), 502),
      closed: entry(error('Service Unavailable', 'closed is unreachable'), 503),
    }),
  );
  expect(elsewhere.requests).toHaveLength(0);
});

test('an answer of 100 MB is given up early', async () => {
  let written = 0;
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  const huge = await startPeer((_req, res) => {
    res.setHeader('content-type', 'application/json');
    const push = (): void => {
      while (written < 100 && !res.destroyed) {
        written += 1;
        if (!res.write(chunk)) {
          res.once('drain', push);
          return;
        }
      }
      res.end();
    };
    push();
  });
  const { a } = await startMesh({ a: [`huge=${huge.url}`] }, { pingTimeout: 20_000 });
  expect(await ping(a, 1)).toEqual(
    document({ huge: entry(error('Bad Gateway', 'huge answered with more than 4194304 bytes'), 502) }),
  );
  await Promise.all(huge.sockets.map((socket) => (socket.destroyed ? undefined : once(socket, 'close'))));
  expect(written).toBeLessThan(100);
});

test('a service that hangs three hops away shows up as itself', async () => {
  const silent = await startPeer(() => undefined);
  const { a } = await startMesh({ a: ['b'], b: ['c'], c: [`d=${silent.url}`] }, { pingTimeout: 800 });
  const d = entry(error('Gateway Timeout', 'd did not answer within 800 ms'), 504);
  expect(await ping(a, 3)).toEqual(document({ b: entry(document({ c: entry(document({ d })) })) }));
  expect(silent.requests.map(({ url }) => url)).toEqual(pings('d', 0));
});

test('all services are asked at once, however many there are', async () => {
  const waiting: ServerResponse[] = [];
  const peer = await startPeer((_req, res) => {
    if (waiting.push(res) < 100) return;
    for (const each of waiting) each.setHeader('content-type', 'application/json').end(JSON.stringify({ response: 'pong', process_time: '0 ms' }));
  });
  const names = Array.from({ length: 100 }, (_, index) => `s${index}`);
  const { a } = await startMesh({ a: names.map((name) => `${name}=${peer.url}`) });
  const entries = Object.values(((await ping(a, 1)) as { response: Record<string, object> }).response);
  expect(entries).toEqual(names.map(() => entry(pong)));
});

test('the smaller limit of another service is an entry', async () => {
  const strict = await startMesh({ strict: [] }, { maxPingDepth: 0 });
  const { a } = await startMesh({ a: [`strict=${strict.strict.url}`] });
  expect(await ping(a, 2)).toEqual(
    document({ strict: entry(error('Bad request.', 'Invalid depth. Allowed: 0 to 0'), 400) }),
  );
});

test('nothing of the inbound request goes on', async () => {
  const peer = await startPeer((_req, res) => res.end());
  const { a } = await startMesh({ a: [`b=${peer.url}/base`] });
  await ping(a, 1, { authorization: 'Bearer x', cookie: 'a=1', 'x-mine': '1' });
  const [request] = peer.requests;
  expect(request?.url).toBe('/base/b/ping/?depth=0');
  expect(Object.keys(request?.headers ?? {}).sort()).toEqual(['accept', 'connection', 'host']);
});

test('when the services are closed nothing is left open between them', async () => {
  const { a, b, c } = await startMesh({ a: ['b', 'c'], b: ['a', 'c'], c: ['a', 'b'] });
  await ping(a, 5);
  const between = [a, b, c].flatMap(({ sockets }) => sockets).filter((socket) => socket !== a.sockets[0]);
  expect(between.some((socket) => !socket.destroyed)).toBe(true);
  const closed = between.map((socket) => (socket.destroyed ? undefined : once(socket, 'close')));
  await Promise.all([a, b, c].map(({ app }) => app.close()));
  await Promise.all(closed);
});
