/** A mesh of which one server tells, so that a test can say how it is from one moment to the next. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** What the services of the mesh are connected to, and those of them that are down. */
export interface FakeMesh {
  readonly edges: Record<string, readonly string[]>;
  /** Services that are unreachable; the asked one answers with 503. */
  readonly down: Set<string>;
  /** Status and description of services that fail otherwise. */
  readonly failures: Map<string, readonly [status: number, description: string]>;
  /** Milliseconds that a service is said to have taken. */
  readonly times: Map<string, number>;
  /** How often its first service was asked, and how many of these requests wait for their answer. */
  asked: number;
  /** Nothing is answered until it is settled. */
  held: Promise<void> | undefined;
  /** The most requests that were waiting for their answer at a time. */
  mostAtATime: number;
  url: string;
}

/** Starts a mesh; the first service is the one to ask. */
export async function startFakeMesh(edges: Record<string, readonly string[]>): Promise<FakeMesh> {
  const mesh: FakeMesh = {
    edges,
    down: new Set(),
    failures: new Map(),
    times: new Map(),
    asked: 0,
    held: undefined,
    mostAtATime: 0,
    url: '',
  };
  let waiting = 0;
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://mesh');
    mesh.asked += 1;
    mesh.mostAtATime = Math.max(mesh.mostAtATime, (waiting += 1));
    await mesh.held;
    waiting -= 1;
    const asked = decodeURIComponent(pathname.split('/')[1] ?? '');
    response.writeHead(mesh.down.has(asked) ? 503 : 200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify(mesh.down.has(asked) ? errorOf('down') : pingOf(mesh, asked, Number(searchParams.get('depth')))),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  mesh.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${Object.keys(edges)[0]}/`;
  return mesh;
}

function pingOf(mesh: FakeMesh, service: string, depth: number): object {
  const below = Object.hasOwn(mesh.edges, service) ? (mesh.edges[service] ?? []) : [];
  if (depth === 0 || below.length === 0) return { response: 'pong', process_time: '0 ms' };
  const entries = below.map((to) => {
    const request_time = `${mesh.times.get(to) ?? 3} ms`;
    const [status, description] = mesh.down.has(to)
      ? [503, `${to} is unreachable`]
      : (mesh.failures.get(to) ?? [200, '']);
    const response = status === 200 ? pingOf(mesh, to, depth - 1) : errorOf(description);
    return [to, { response, status_code: status, request_time }];
  });
  return { response: Object.fromEntries(entries), process_time: '1 ms' };
}

function errorOf(description: string): object {
  const error_code = { name: 'framework_error_unspecified', value: 999_998 };
  return { message: 'Service Unavailable', description, error_code };
}
