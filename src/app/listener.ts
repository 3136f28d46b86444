/* One listener of an application, from opening to closed: the main one, or the private one for monitoring. */

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Answers } from '../answer/answers.js';
import type { CompiledRoutes } from '../answer/compiled-routes.js';
import type { Context, ServingOptions } from '../answer/context.js';
import type { Observer } from '../answer/observers.js';
import { makePublic } from '../wire/scope.js';
import { WireServer } from '../wire/server.js';
import type { SlowClients } from '../wire/slow-clients.js';
import { addressOf, type Address, type Listening, type ListenOptions, type MonitorOptions } from './address.js';
import { toListenError } from './listen-error.js';

/** Routes, and the server whose requests they answer. */
export class Listener {
  readonly wire: WireServer<Context>;

  constructor(
    readonly routes: CompiledRoutes,
    options: ServingOptions,
    observers: readonly Observer[],
    slowClients: SlowClients,
  ) {
    this.wire = new WireServer(new Answers(routes, options, observers), options, slowClients);
  }

  /** Number of requests without a complete reply, also of those whose clients disconnected while their handlers run. */
  get active(): number {
    return this.wire.exchanges.size;
  }

  /**
   * @param from where the port came from
   * @throws {Error} with the server's code, such as `EADDRINUSE`; then it may be opened again
   */
  async open({ scope, ...where }: ListenOptions, from: string): Promise<Address> {
    const { server } = this.wire;
    try {
      server.listen(where);
      await once(server, 'listening');
      if (scope === 'public') makePublic(server);
    } catch (error) {
      throw toListenError(error, where, from);
    }
    return addressOf(server.address() as AddressInfo);
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
