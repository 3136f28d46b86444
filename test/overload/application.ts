/** A whole application in the virtual time of a world; its clients have connections in memory. */

import type { Context, RouteOptions } from 'postern';
import { MemoryClients } from '../support/memory-clients.js';
import { createRandom } from '../support/random.js';
import { enter } from './clock.js';
import { Request, type Work, type World } from './world.js';

/** What a route does. */
export interface Served {
  readonly work: Work;
  readonly options?: RouteOptions;
}

/** A route as its clients reach it. */
export interface Target {
  arrive(request: Request): void;
}

/**
 * @param arrivalMs how long the CPU needs to read one request
 * @returns a target for each route
 */
export function createApplication(
  { Postern: Application, HttpError }: typeof import('postern'),
  world: World,
  served: readonly Served[],
  isProtected: boolean,
  arrivalMs = 0,
): Target[] {
  // Chance of its own: a request's id must not change what the clients and services of a seed do.
  enter({ get now() { return world.now; }, random: createRandom(0), at: (at, run) => world.at(at, run) });
  const app = new Application('app', { logger: false, ...(isProtected ? {} : { loadShedding: false }) });
  const clients = new MemoryClients(app);
  return served.map(({ work, options = {} }, i) => {
    app.get(`/${i}`, options, ({ signal }: Context) =>
      new Promise((resolve, reject) => {
        const request = new Request(Infinity, () => {});
        signal.addEventListener('abort', () => request.abort(), { once: true });
        work(request, (ending = 'done') => (ending === 'done' ? resolve('done') : reject(new HttpError(503))));
      }),
    );
    return { arrive: (request) => send(clients, `/${i}`, world, request, arrivalMs) };
  });
}

function send(clients: MemoryClients, path: string, world: World, request: Request, arrivalMs: number): void {
  world.now += arrivalMs;
  const { deadlineAt } = request;
  const patienceMs = Math.ceil(deadlineAt - world.dueAt);
  const headers = deadlineAt === Infinity ? {} : { 'x-envoy-expected-rq-timeout-ms': String(patienceMs) };
  const connection = clients.get(path, headers, (status) => request.reply(status));
  request.onAbort(() => connection.destroy());
}
