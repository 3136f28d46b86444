/** A service behind a gateway, which asks a real router and answers which of its routes was reached. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import type { Router } from '../../src/routing/router.js';

/** One answer of a gateway. */
export interface GatewayReply {
  readonly status: number;
  readonly allow: string | undefined;
  /**
   * `GET /users/:id`, `OPTIONS`, or `none` where the service was reached without a route; null when it was not reached.
   */
  readonly reached: string | null;
}

/** A service for several tables. */
export interface Upstream {
  readonly url: string;
  stop(): Promise<void>;
}

/** Serves each router under its key as the name in `Host`; what was reached is told with a label in front. */
export async function startUpstream(routers: ReadonlyMap<string, Router>, label: string = ''): Promise<Upstream> {
  const server = createServer(
    { keepAliveTimeout: 30_000, requireHostHeader: false, insecureHTTPParser: false },
    (req, res) => {
      const router = routers.get((req.headers.host ?? '').replace(/:\d*$/, '')) ?? [...routers.values()][0];
      const target = (req.url ?? '').replace(/^https?:\/\/[^/?#]*/i, '');
      req.resume();
      res.setHeader(
        'x-reached',
        encodeURIComponent(
          label +
            (router === undefined
              ? 'none'
              : describe(router, req.method ?? '', `${target.startsWith('/') ? '' : '/'}${target}`)),
        ),
      );
      res.setHeader('x-forwarded', String(req.headers['x-forwarded-for'] ?? ''));
      res.end();
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

/** What the router makes of a request, the `OPTIONS` that a service answers for any route among it. */
export function describe(router: Router, method: string, target: string): string {
  const path = target.replace(/\?.*$/s, '');
  try {
    const { route } = router.match(method, path);
    if (route !== null) return `${route.method} ${route.path}`;
    return method === 'OPTIONS' && router.allowedMethods(path).length > 0 ? 'OPTIONS' : 'none';
  } catch {
    return 'none';
  }
}

/**
 * The route that a request may reach through a gateway, as {@link describe} writes it; null when it has to be refused.
 */
export function expectedRoute(router: Router, method: string, path: string): string | null {
  try {
    const { route } = router.match(method, path);
    if (route !== null) return route.exposure.public ? `${route.method} ${route.path}` : null;
    if (method !== 'OPTIONS') return null;
    const open = new Set(router.routes.filter((route) => route.public).map((route) => route.method));
    return [...open].some((name) => router.match(name, path).route?.exposure.public === true) ? 'OPTIONS' : null;
  } catch {
    return null;
  }
}

/** Sends one request as it is given, over a connection of its own. */
export function ask(
  port: number,
  method: string,
  target: string,
  host: string,
  version: string = '1.1',
): Promise<GatewayReply> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.setTimeout(10_000, () => socket.destroy(new Error(`${method} ${target}: no answer`)));
    socket.on('data', (chunk) => (received += chunk.toString('latin1')));
    socket.on('error', (error) => (received === '' ? reject(error) : undefined));
    socket.on('close', () => {
      const head = received.slice(0, received.indexOf('\r\n\r\n'));
      const reached = /^x-reached: (.*)$/im.exec(head)?.[1];
      resolve({
        status: Number(/^HTTP\/1\.[01] (\d+)/.exec(head)?.[1] ?? 0),
        allow: /^allow: (.*)$/im.exec(head)?.[1],
        reached: reached === undefined ? null : decodeURIComponent(reached),
      });
    });
    socket.write(
      Buffer.from(
        `${method} ${target} HTTP/${version}\r\nHost: ${host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
        'latin1',
      ),
    );
  });
}

/** Runs a task for each item, several at a time. */
export async function inParallel<T>(
  items: readonly T[],
  task: (item: T) => Promise<void>,
  width: number = 16,
): Promise<void> {
  const queue = items.values();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of queue) await task(item);
    }),
  );
}
