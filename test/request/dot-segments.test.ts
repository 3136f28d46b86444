/**
 * A target that programs beside the router would normalise to another path is a 400, in every spelling, for requests
 * and upgrades: `new URL('/files/%2e%2e/admin', base).pathname` is `/admin`. Nothing reaches middleware, a mount or a
 * listener of `upgrade` with such a target.
 */

import { createServer, type Server } from 'node:http';
import { describe, expect, test } from 'vitest';
import { connect, publicFacing, type Postern } from 'postern';
import { rawRequest } from '../support/raw.js';
import { createApp, createRecorder, listening, portOf, serve } from '../support/serve.js';

const DOTS = ['.', '..', '%2e', '%2E', '.%2e', '%2e.', '.%2E', '%2E.', '%2e%2e', '%2E%2E', '%2e%2E', '%2E%2e'];

/** Targets that name another path for `URL`, in groups. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(DOTS.map((dots) => [`the segment ${dots}`, [
    `/files/${dots}/admin`, `/files/${dots}`, `/files/${dots}/`, `/${dots}/admin`, `/${dots}`, `/files/a/${dots}/b`,
    `/files/${dots}?a=b`, `/files//${dots}/admin`, `http://x/files/${dots}/admin`,
  ]])),
  // `URL` reads it as a slash.
  'a backslash before its query': [
    '/files\\admin', '/files\\..\\admin', '/files/..\\admin', '/files\\../admin', '/files/a\\', '/\\admin',
    '/files\\?a=b', '/files/%2e%2e\\admin', 'http://x/files\\admin',
  ],
};

/** Targets that look alike, and that `URL` leaves unchanged. */
const UNCHANGED = [
  '/files/...', '/files/..a', '/files/a..', '/files/.well-known/x', '/files/a.b', '/files/%2e%2e%2e', '/files/%2ea',
  '/files/a%2f..%2fadmin', '/files/..%2fadmin', '/files/%5cadmin', '/files/%252e%252e/admin', '/files/a?q=/../admin',
  '/files/a?..', '/files/a?q=\\..\\admin', '/files/..;/admin',
];

const head = (target: string, headers = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`;
const upgrade = (target: string, headers = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\n`;

/** An application that keeps what any of its parts was given. */
function watchedApp(): { app: Postern; seen: string[] } {
  const seen: string[] = [];
  const app = createApp();
  app.use((ctx, next) => (seen.push(`middleware ${ctx.url.pathname}`), next()));
  app.use(connect((req, _res, next) => (seen.push(`connect ${req.url}`), next())));
  app.get('/files/*rest', publicFacing((ctx) => (seen.push(`handler ${ctx.path}`), ctx.path)));
  app.get('/admin', () => seen.push('admin'));
  app.mount('/mounted', (req, res) => {
    seen.push(`mount ${req.url}`);
    res.end();
  });
  return { app, seen };
}

describe('a request', () => {
  test.for(Object.keys(REFUSED))('with %s is a 400 that nothing sees', async (what) => {
    const { app, seen } = watchedApp();
    const { port } = await serve(app);
    const outcomes = await Promise.all((REFUSED[what] ?? []).map(async (target) => {
      const { status, headers } = await rawRequest(port, head(target));
      return [target, status, headers['content-type']];
    }));
    expect(outcomes).toEqual((REFUSED[what] ?? []).map((target) => [target, 400, 'application/json']));
    expect(seen).toEqual([]);
  });

  test.for(['/mounted/../admin', '/mounted/%2e%2e/admin', '/mounted\\..\\admin', '/mounted/.'])(
    'for %s does not reach the mount',
    async (target) => {
      const { app, seen } = watchedApp();
      const { port } = await serve(app);
      expect((await rawRequest(port, head(target))).status).toBe(400);
      expect(seen).toEqual([]);
    },
  );

  test.for(['HEAD', 'POST', 'OPTIONS', 'DELETE'])('of any method is a 400: %s', async (method) => {
    const { app, seen } = watchedApp();
    const { port } = await serve(app);
    expect((await rawRequest(port, head('/files/../admin').replace('GET', method))).status).toBe(400);
    expect(seen).toEqual([]);
  });

  test.for(['/users/./health/', '/x/../users/health/', '/users\\health/'])(
    'for %s does not reach monitoring',
    async (target) => {
      const { port } = await serve(createApp());
      expect((await rawRequest(port, head(target))).status).toBe(400);
    },
  );

  test('is a 400 in an application that is embedded, and in one with a public scope', async () => {
    const embedded = watchedApp();
    const server = await listening(createServer(embedded.app.handler));
    const open = watchedApp();
    const { port } = await open.app.listen({ host: '127.0.0.1', port: 0, scope: 'public' });
    for (const each of [portOf(server), port])
      expect((await rawRequest(each, head('/files/%2e%2e/admin'))).status).toBe(400);
    expect([...embedded.seen, ...open.seen]).toEqual([]);
  });

  test.for(UNCHANGED)('for %s is served', async (target) => {
    const { app, seen } = watchedApp();
    const { port } = await serve(app);
    expect((await rawRequest(port, head(target))).status).toBe(200);
    expect(seen).toHaveLength(3);
    expect(new URL(target, 'http://x').pathname).toBe(target.replace(/\?.*/, ''));
  });
});

/** Ways to receive upgrades; each returns the port. */
const SERVERS: Readonly<Record<string, (app: Postern, listen: (server: Server) => Server) => Promise<number>>> = {
  'a listening application': async (app, listen) => {
    listen(app.server);
    return (await serve(app)).port;
  },
  'a public application': async (app, listen) => {
    listen(app.server);
    return (await app.listen({ host: '127.0.0.1', port: 0, scope: 'public' })).port;
  },
  'an attached server': async (app, listen) => {
    const server = listen(await listening(createServer()));
    app.attach(server);
    return portOf(server);
  },
  'a public attached server': async (app, listen) => {
    const server = await listening(createServer());
    app.attach(server, { scope: 'public' });
    listen(server);
    return portOf(server);
  },
};

describe.for(Object.keys(SERVERS))('an upgrade of %s', (name) => {
  async function start(): Promise<{ app: Postern; seen: string[]; port: number }> {
    const { app, seen } = watchedApp();
    const port = await SERVERS[name]?.(app, (server) =>
      server.on('upgrade', (req, socket) => {
        seen.push(`upgrade ${new URL(req.url ?? '', 'http://x').pathname}`);
        socket.end('HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n');
      }),
    );
    return { app, seen, port: port ?? 0 };
  }

  test.for(Object.keys(REFUSED))('with %s is a 400 that no listener sees', async (what) => {
    const { port, seen } = await start();
    const outcomes = await Promise.all((REFUSED[what] ?? []).map(async (target) => {
      const { status, headers } = await rawRequest(port, upgrade(target));
      return [target, status, headers['content-type']];
    }));
    expect(outcomes).toEqual((REFUSED[what] ?? []).map((target) => [target, 400, 'application/json']));
    expect(seen).toEqual([]);
  });

  test.for(UNCHANGED)('for %s is made', async (target) => {
    const { port, seen } = await start();
    expect((await rawRequest(port, upgrade(target))).status).toBe(101);
    expect(seen).toEqual([`upgrade ${target.replace(/\?.*/, '')}`]);
  });

  // `new URL('//admin/x', base)` takes `admin` for a host.
  test.for(['//admin', '//x/admin', '///admin', '//files/a'])(
    'for %s reaches no listener under the public scope, although a public route has the path',
    async (target) => {
      const { app, port, seen } = await start();
      app.get('/*rest', publicFacing(() => 'anything'));
      const headers = name.includes('public') ? '' : 'x-postern-scope: public\r\n';
      expect((await rawRequest(port, upgrade(target, headers))).status).not.toBe(101);
      expect(seen).toEqual([]);
    },
  );
});

test('a refused target is one line at debug, with the target as it was sent', async () => {
  const logger = createRecorder();
  const { port } = await serve(createApp({ logger }));
  await rawRequest(port, head('/files/%2e%2e/admin?token=secret'));
  expect(logger.entries).toMatchObject([
    { level: 'debug', message: 'request refused', object: { status_code: 400, target: '/files/%2e%2e/admin' } },
  ]);
});
