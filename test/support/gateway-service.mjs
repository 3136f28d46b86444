/**
 * A service of the tests of gateways, in a process of its own. Arguments: its name, `open` routes and `closed` ones, as
 * JSON. Every reply says whose it is and which route answered, in `x-service` and `x-reached`. Further routes stream,
 * wait and count.
 */

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { Postern, publicFacing, reply } from '../../dist/index.js';

const [, , name, open = '[]', closed = '[]', extras = ''] = process.argv;
const app = new Postern(name, { logger: false, keepAliveTimeout: 20_000 });
let [left, hanging, connections] = [0, 0, 0];
app.server.on('connection', () => (connections += 1));

app.use(async (ctx, next) => {
  const answer = await next();
  answer.headers.set('x-service', name);
  answer.headers.set(
    'x-reached',
    encodeURIComponent(ctx.route === null ? 'none' : `${ctx.route.method} ${ctx.route.path}`),
  );
  return answer;
});
const echo = (ctx) => ({ method: ctx.method, target: ctx.raw.req.url, headers: ctx.headers });
for (const [routes, handler] of [[JSON.parse(open), publicFacing(echo)], [JSON.parse(closed), echo]]) {
  for (const route of routes) {
    const space = route.indexOf(' ');
    app.route(route.slice(space + 1), { [route.slice(0, space)]: handler });
  }
}
if (extras !== '') {
  const held = [];
  const untilReleased = () => new Promise((resolve) => held.push(resolve));
  app.get('/extra/release', publicFacing(() => held.splice(0).forEach((release) => release())));
  app.get('/extra/stream', publicFacing(async function* () {
    yield 'first\n';
    await untilReleased();
    yield 'last\n';
  }));
  app.get('/extra/slow', publicFacing(async () => {
    await wait(800);
    return 'slow';
  }));
  app.get('/extra/hang', publicFacing(async (ctx) => {
    hanging += 1;
    ctx.signal.addEventListener('abort', () => (left += 1));
    await wait(30_000, undefined, { signal: ctx.signal }).catch(() => undefined);
    return 'never';
  }));
  app.get('/extra/left', publicFacing(() => String(left)));
  app.get('/extra/hanging', publicFacing(() => String(hanging)));
  app.get('/extra/connections', publicFacing(() => String(connections)));
  app.get('/extra/parts', publicFacing(() => reply(Readable.from((async function* () {
    yield 'first';
    await untilReleased();
    yield 'last!';
  })()), { headers: { 'content-length': '10' } })));
  app.get('/extra/large', publicFacing(async function* () {
    for (let i = 0; i < 16; i += 1) yield Buffer.alloc(1 << 20, 'x');
  }));
  const count = async (ctx) => {
    let bytes = 0;
    for await (const chunk of ctx.stream()) bytes += chunk.length;
    return { bytes };
  };
  app.post('/extra/limited', publicFacing(count));
  app.post('/extra/upload', { public: true, bodyLimit: 1 << 30, timeout: 60_000 }, count);
  app.get('/extra/cut', publicFacing((ctx) => {
    ctx.raw.req.socket.destroy();
    return reply(null);
  }));
  app.server.on('upgrade', (req, socket) => {
    const accept = createHash('sha1').update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nX-Target: ${req.url}\r\n\r\n`,
    );
    socket.pipe(socket);
    socket.on('error', () => socket.destroy());
  });
}
const { url } = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) });
process.send({ url, routes: app.router.routes });
process.on('disconnect', () => process.exit());
