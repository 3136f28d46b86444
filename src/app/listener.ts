/* One listener of an application, from opening to closed: the main one, or the private one for monitoring. */

import { builtin } from '../base/builtin.js';
import { Answers } from '../answer/answers.js';
import type { CompiledRoutes } from '../answer/compiled-routes.js';
import type { Context, ServingOptions } from '../answer/context.js';
import type { Observer } from '../answer/observers.js';
import { makePublic } from '../wire/scope.js';
import { WireServer } from '../wire/server.js';
import type { SlowClients } from '../wire/slow-clients.js';
import { addressOf, type Address, type ListenOptions, type PathAddress, type Where } from './address.js';
import { toListenError } from './listen-error.js';

/** Routes, and the server whose requests they answer. @internal */
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
  open(where: ListenOptions, from: string): Promise<Address>;
  open(where: Where, from: string): Promise<Address | PathAddress>;
  async open({ scope, ...where }: Where, from: string): Promise<Address | PathAddress> {
    const { server } = this.wire;
    try {
      if (where.host === 'localhost') await this.#openEach(where);
      else await this.wire.listen(where);
      if (scope === 'public') makePublic(server);
    } catch (error) {
      throw toListenError(error, where, from);
    }
    return addressOf(server.address());
  }

  /** Listens on each address of `localhost`, IPv4 and IPv6: a client may try either first, and another program have one. */
  async #openEach({ port, host }: Where): Promise<void> {
    const found = await builtin('node:dns').promises.lookup(host as string, { all: true });
    const addresses = [...new Set(found.map(({ address }) => address))];
    for (const [i, address] of addresses.entries()) {
      const bound = this.wire.server.address();
      const same = typeof bound === 'object' && bound !== null ? bound.port : port;
      try {
        await this.wire.listen({ port: same, host: address });
      } catch (error) {
        // A machine without IPv6 may have its address of localhost in its table of hosts.
        const isMissing = error instanceof Error && 'code' in error && error.code === 'EADDRNOTAVAIL';
        if (isMissing && (this.wire.server.listening || i < addresses.length - 1)) continue;
        await this.wire.revoke();
        throw error;
      }
    }
  }
}
