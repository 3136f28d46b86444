/** A whole application in the virtual time of a world; its clients have connections in memory. */

import { Duplex } from 'node:stream';
import type { Context, Postern, RouteOptions } from 'postern';
import { createRandom } from '../support/random.js';
import { enter } from './clock.js';
import { Request, type Work, type World } from './world.js';

/** One connection; its client sends one request at a time. */
class Connection extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  #received = '';
  #onReply: ((status: number) => void) | null = null;

  ask(text: string, onReply: (status: number) => void): void {
    this.#received = '';
    this.#onReply = onReply;
    this.push(text);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#received += chunk.toString('latin1');
    const [, status, length, body = ''] =
      /^HTTP\/1.1 (\d+)[^]*?\r\ncontent-length: (\d+)\r\n[^]*?\r\n\r\n([^]*)/i.exec(this.#received) ?? [];
    const onReply = this.#onReply;
    if (onReply !== null && body.length === Number(length)) {
      this.#onReply = null;
      onReply(Number(status));
    }
    done();
  }
}

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
  const idle: Connection[] = [];
  return served.map(({ work, options = {} }, i) => {
    app.get(`/${i}`, options, ({ signal }: Context) =>
      new Promise((resolve, reject) => {
        const request = new Request(Infinity, () => {});
        signal.addEventListener('abort', () => request.abort(), { once: true });
        work(request, (ending = 'done') => (ending === 'done' ? resolve('done') : reject(new HttpError(503))));
      }),
    );
    return { arrive: (request) => send(app, idle, `/${i}`, world, request, arrivalMs) };
  });
}

function send(app: Postern, idle: Connection[], path: string, world: World, request: Request, arrivalMs: number): void {
  world.now += arrivalMs;
  let connection = idle.pop();
  if (connection === undefined || connection.destroyed) {
    connection = new Connection();
    app.server.emit('connection', connection);
  }
  const used = connection;
  const { deadlineAt } = request;
  const patienceMs = Math.ceil(deadlineAt - world.dueAt);
  const patience = deadlineAt === Infinity ? '' : `x-envoy-expected-rq-timeout-ms: ${patienceMs}\r\n`;
  request.onAbort(() => used.destroy());
  used.ask(`GET ${path} HTTP/1.1\r\nhost: app\r\n${patience}\r\n`, (status) => {
    idle.push(used);
    request.reply(status);
  });
}
