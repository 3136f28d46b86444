/*
 * The services that an application is connected to: clients for them, and pings of them.
 */

import type { Answer } from './answer.js';
import { ServiceClient } from './client.js';
import { createHttpPeer } from './http-peer.js';
import type { Peer } from './peer.js';
import { createRetryBudget } from './retry.js';
import { callError } from './service-error.js';
import type { Caller, Service, ServiceLimits } from './service.js';
import { createStandInPeer, type ServiceStandIn } from './stand-in.js';
import { TryLimit } from './try-limit.js';

/** How the services are called; what is left out has its default. */
export interface DirectoryOptions extends Partial<ServiceLimits> {
  /** Age at which a connection is retired, ± 10 %; 60,000 unless given. */
  readonly maxConnectionAge?: number;
  /** What answers in memory, by the name of the service. */
  readonly services?: ReadonlyMap<string, ServiceStandIn>;
}

/** A ping of another service. */
export interface PingRequest {
  readonly method: string;
  /** From the `/` on, query included. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** From before the connection to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

const MAX_CONNECTION_AGE_MS = 60_000;
const LIMITS: ServiceLimits = { maxBytes: 10 * 1024 * 1024, maxServiceRequests: 1024, observe: () => undefined };

/** The connected services, each with one pool of connections, which opens when it is first used. */
export class ServiceDirectory {
  readonly #services = new Map<string, Service>();

  /** @param connections names and URLs, as `connectionsOf` gives them; a stand-in goes before the URL of its name */
  constructor(connections: ReadonlyMap<string, string>, options: DirectoryOptions = {}) {
    const { maxConnectionAge = MAX_CONNECTION_AGE_MS, services = new Map(), ...given } = options;
    const limits = { ...LIMITS, ...given };
    const connect = (name: string, peer: Peer): void => {
      this.#services.set(name, { name, peer, limits, budget: createRetryBudget(), active: 0 });
    };
    for (const [name, url] of connections) connect(name, createHttpPeer(url, maxConnectionAge));
    for (const [name, standIn] of services) connect(name, createStandInPeer(standIn));
  }

  /** In order of first mention. */
  get names(): string[] {
    return [...this.#services.keys()];
  }

  /**
   * @param caller the request on whose behalf calls are made: its id and trace are passed on, and calls end with it
   * @throws {TypeError} when no connection of that name is configured
   */
  client(name: string, caller?: Caller): ServiceClient {
    return new ServiceClient(this.#service(name), caller);
  }

  /**
   * Sends one request as it is, and gives the answer whatever its status. It counts for no limit and no metric.
   *
   * @throws {TypeError} when no connection of that name is configured
   * @throws {ServiceError} 502 to 504, as a {@link Peer} does
   */
  async exchange(name: string, { method, path, headers, timeoutMs, maxBytes }: PingRequest): Promise<Answer> {
    const { peer } = this.#service(name);
    const callee = { service: name, method, path };
    const toTimeout = (): Error => callError(callee, 504, `${name} did not answer within ${timeoutMs} ms`);
    const limit = new TryLimit(timeoutMs, toTimeout, [], () => undefined);
    const answer = await peer.open({ ...callee, target: path, headers, body: undefined }, limit);
    return { status: answer.status, headers: answer.headers, body: await answer.bytes(maxBytes) };
  }

  /** Cuts every connection. */
  close(): void {
    for (const { peer } of this.#services.values()) peer.close();
  }

  #service(name: string): Service {
    const service = this.#services.get(name);
    if (service === undefined)
      throw new TypeError(`service ${JSON.stringify(name)} is not connected; add it to SERVICE_CONNECTIONS`);
    return service;
  }
}
