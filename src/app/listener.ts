/* One server of an application, from opening to closed: the main one, or the private one for monitoring. */

import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HttpError } from '../base/errors.js';
import { clearInterval, setImmediate, setInterval } from '../base/clock.js';
import { within } from '../base/deadline.js';
import { show } from '../base/options-check.js';
import type { ServingOptions } from '../http/context.js';
import type { ParserError } from '../http/error-mapper.js';
import { guardUpgrades, makePublic, mayLackFields, type ScopeOptions } from '../http/scope.js';
import { Connections, createHttpServer, type ServerLimits } from '../http/server.js';
import { addressOf, type Address, type Listening, type ListenOptions, type MonitorOptions } from './address.js';
import { toListenError } from './listen-error.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import type { CompiledRoutes } from '../pipeline/compiled-routes.js';
import { Pipeline } from '../pipeline/pipeline.js';

const SWEEP_MS = 100;

/** A server, and the pipeline that answers its requests. */
export class Listener {
  readonly server: Server;
  readonly pipeline: Pipeline;
  readonly #connections: Connections;

  constructor(
    readonly routes: CompiledRoutes,
    requests: RequestMetrics,
    options: ServingOptions,
  ) {
    this.server = createHttpServer(options);
    this.pipeline = new Pipeline(routes, requests, options);
    this.#connections = new Connections(this.server);
    attachPipeline(this.server, this.pipeline, options);
  }

  /**
   * @param from where the port came from
   * @throws {Error} with the server's code, such as `EADDRINUSE`; then it may be opened again
   */
  async open({ scope, ...where }: ListenOptions, from: string): Promise<Address> {
    try {
      this.server.listen(where);
      await once(this.server, 'listening');
      if (scope === 'public') makePublic(this.server);
    } catch (error) {
      throw toListenError(error, where, from);
    }
    return addressOf(this.server.address() as AddressInfo);
  }

  /** Closes at once what was opened, for an application that can't be opened as a whole. */
  async revoke(): Promise<void> {
    const stopped = stopListening(this.server);
    await this.#connections.closeAll();
    await stopped;
  }

  /**
   * Accepts no connection any more, and closes the connections that are open when the time is over.
   *
   * @returns whether everything in flight could finish
   */
  async close(timeoutMs: number): Promise<boolean> {
    // In the next turn: node:http takes a connection for idle as soon as `end` of its reply was called, and would cut
    // one whose reply is written in this turn before it is sent.
    const stopped = new Promise<void>((resolve) => setImmediate(() => resolve(stopListening(this.server))));
    this.#connections.closeSilent();
    // Replies that were queued before the drain began don't say `connection: close`: theirs are closed when idle.
    const sweep = setInterval(() => this.server.closeIdleConnections(), SWEEP_MS);
    await within(timeoutMs, Promise.all([this.pipeline.idle(), stopped]));
    clearInterval(sweep);
    const clean = this.pipeline.active === 0;
    await this.#connections.closeAll();
    await stopped;
    return clean;
  }
}

/**
 * Opens the listener for monitoring first, so that a start can be watched. If one cannot be opened, the other may be.
 *
 * @param from where the port of the main listener came from, for messages
 */
export async function openListeners(
  main: Listener,
  where: ListenOptions,
  from: string,
  monitor: Listener | null,
  monitorWhere: MonitorOptions | null,
): Promise<Listening> {
  if (monitor === null || monitorWhere === null) return main.open(where, from);
  const address = await monitor.open(monitorWhere, 'monitor.port or MONITOR_PORT');
  return { ...(await main.open(where, from)), monitor: address };
}

/** Answers requests of a server that someone else created, which may keep fewer header fields than Postern's own. */
export function createHandler(pipeline: Pipeline): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    const error = mayLackFields(req) ? new HttpError(431, 'The request has too many header fields.') : null;
    pipeline.handle(req, res, false, error);
  };
}

/** Lets a pipeline answer all that a server receives, and refuse the upgrades that the public may not make. */
export function attachPipeline(
  server: Server,
  pipeline: Pipeline,
  { maxHeadersCount }: ServerLimits,
  { scope }: ScopeOptions = {},
): void {
  if (typeof server?.on !== 'function')
    throw new TypeError(`attach() takes a server of node:http, not ${show(server)}`);
  // One more than allowed: node:http drops fields beyond this count, and a request with one too many must be refused.
  server.maxHeadersCount = maxHeadersCount + 1;
  // node:http would answer a request without `Host` itself.
  Reflect.set(server, 'requireHostHeader', false);
  server.on('request', pipeline.handle);
  const refuseExpectation = (req: IncomingMessage, res: ServerResponse): void =>
    pipeline.handle(req, res, false, new HttpError(417, 'The only expectation that is met is 100-continue.'));
  server.on('checkExpectation', refuseExpectation);
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    // For node:http it is enough that 100-continue is one expectation of several (RFC 9110, section 10.1.1).
    if (/^[ ,\t]*100-continue[ ,\t]*$/i.test(req.headers.expect ?? '')) pipeline.handle(req, res, true);
    else refuseExpectation(req, res);
  });
  server.on('connect', (req) => pipeline.refuseSocket(req, new HttpError(501, 'CONNECT is not served.')));
  server.on('clientError', (error: ParserError, socket) => pipeline.handleParserError(error, socket));
  guardUpgrades(server, (req, proceed) => pipeline.upgrade(req, proceed));
  if (scope === 'public') makePublic(server);
}

/** Resolves when the server has no connection left; at once for one that never listened. */
function stopListening(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve();
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
