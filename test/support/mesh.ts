/** Real meshes on loopback: the servers listen first, so that every service can be told where the others live. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { Postern, type Logger, type PosternOptions } from 'postern';
import { watch } from './serve.js';

/** One service of a mesh. */
export interface MeshService {
  readonly app: Postern;
  readonly url: string;
  /** Connections that its server accepted. */
  readonly sockets: readonly Socket[];
  /** Targets of the requests that it saw, in order. */
  readonly seen: readonly string[];
}

/**
 * Starts a mesh.
 *
 * @param edges each service with the services that it is connected to; `name=URL` for one outside the mesh
 */
export async function startMesh<Name extends string>(
  edges: Record<Name, readonly string[]>,
  options: PosternOptions = {},
  loggers: Partial<Record<Name, Logger>> = {},
): Promise<Record<Name, MeshService>> {
  const names = Object.keys(edges) as Name[];
  const servers = new Map<string, { server: Server; url: string; sockets: Socket[] }>();
  for (const name of names) servers.set(name, await listen());
  const services = names.map((name): [Name, MeshService] => {
    const connections = edges[name].map((edge) => (edge.includes('=') ? edge : `${edge}=${servers.get(edge)?.url}`));
    const app = watch(
      (logger) =>
        new Postern(name, {
          ...options,
          logger,
          settings: { SERVICE_CONNECTIONS: connections, REQUIRED_SERVICE_CONNECTIONS: connections.slice(0, 1) },
        }),
      loggers[name] ?? options.logger,
    );
    const seen: string[] = [];
    app.use((ctx, next) => {
      seen.push(ctx.raw.req.url ?? '');
      return next();
    });
    const { server, url, sockets } = servers.get(name) ?? listenFirst();
    app.attach(server);
    return [name, { app, url, sockets, seen }];
  });
  return Object.fromEntries(services) as Record<Name, MeshService>;
}

async function listen(): Promise<{ server: Server; url: string; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer().on('connection', (socket: Socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}

function listenFirst(): never {
  throw new Error('every service of the mesh listens before its application is made');
}
