/**
 * A network in memory: connections with latency that break, hang and refuse, and a balancer for each service that
 * notices late which instances there are.
 *
 * `node:http` gets its sockets here: those of clients by `Agent.createConnection`, those of servers by the event
 * `connection`. A socket's own timer is virtual, so that Node's agents and servers keep virtual time with it.
 */

import { Agent, type Server } from 'node:http';
import { Duplex } from 'node:stream';
import type { Host, World } from './world.js';

/** How long, in ms, a packet travels. */
const LATENCY_MS = [0.2, 3] as const;
/** Bytes on their way in one direction before a writer waits. */
const WINDOW_BYTES = 65_536;
/** How long, in ms, TCP tries to open a connection. */
const CONNECT_MS = 20_000;

/** A host that accepts connections. */
export interface Instance {
  readonly host: Host;
  readonly server: Server;
}

class SimulatedSocket extends Duplex {
  connecting = false;
  bytesRead = 0;
  bytesWritten = 0;
  timeout = 0;
  readonly #openedAt: number;
  readonly remoteAddress = '10.0.0.1';
  readonly remoteFamily = 'IPv4';
  peer: SimulatedSocket | undefined;
  /** When the last packet that was sent arrives: packets keep their order. */
  #lastArrival = 0;
  #travelling = 0;
  #isPeerFull = false;
  #whenTaken: (() => void) | undefined;
  #timer: { isCancelled: boolean } | undefined;

  constructor(readonly network: Network, readonly host: Host, allowHalfOpen: boolean) {
    super({ allowHalfOpen, emitClose: true });
    this.#openedAt = network.world.now;
  }

  setTimeout(ms: number, listener?: () => void): this {
    if (listener !== undefined) this[ms === 0 ? 'off' : 'once']('timeout', listener);
    this.timeout = ms;
    this.#touch();
    return this;
  }

  setNoDelay(): this { return this; }
  setKeepAlive(): this { return this; }
  ref(): this { return this; }
  unref(): this { return this; }

  #touch(): void {
    if (this.#timer !== undefined) this.#timer.isCancelled = true;
    this.#timer = undefined;
    const { world } = this.network;
    if (this.timeout > 0 && !this.destroyed)
      this.#timer = world.at(world.now + this.timeout, () => this.emit('timeout'), this.host);
  }

  /** Sends something to the other end; on a link that is cut it waits, for TCP repeats it. */
  send(arrive: (peer: SimulatedSocket) => void): void {
    const { peer, network } = this;
    if (peer === undefined || this.host.hasCrashed) return;
    const { world } = network;
    const at = Math.max(this.#lastArrival, network.openAgain(this.host, peer.host) + network.latency());
    this.#lastArrival = at;
    world.at(at, () => {
      const open = network.openAgain(this.host, peer.host);
      if (open > world.now) world.at(open, () => arrive(peer), peer.host);
      else arrive(peer);
    }, peer.host);
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: () => void): void {
    if (this.connecting) {
      this.once('connect', () => this._write(chunk, encoding, done));
      return;
    }
    this.#touch();
    this.network.oldestMs = Math.max(this.network.oldestMs, this.network.world.now - this.#openedAt);
    this.bytesWritten += chunk.length;
    this.#travelling += chunk.length;
    this.send((peer) => {
      this.#travelling -= chunk.length;
      if (peer.destroyed) {
        // A packet for a connection that is gone is answered by a reset.
        peer.send((sender) => sender.reset());
        return;
      }
      peer.bytesRead += chunk.length;
      peer.#touch();
      this.#isPeerFull = !peer.push(chunk);
      this.#goOn();
    });
    if (this.#travelling < WINDOW_BYTES && !this.#isPeerFull) done();
    else this.#whenTaken = done;
  }

  #goOn(): void {
    if (this.#travelling >= WINDOW_BYTES || this.#isPeerFull) return;
    const done = this.#whenTaken;
    this.#whenTaken = undefined;
    done?.();
  }

  override _read(): void {
    const { peer } = this;
    if (peer === undefined || !peer.#isPeerFull) return;
    peer.#isPeerFull = false;
    peer.#goOn();
  }

  override _final(done: () => void): void {
    if (this.connecting) {
      this.once('connect', () => this._final(done));
      return;
    }
    this.send((peer) => void peer.push(null));
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#timer !== undefined) this.#timer.isCancelled = true;
    this.network.open.delete(this);
    const isReset = error !== null || this.readableLength > 0;
    if (!this.host.hasCrashed) this.send((peer) => (isReset ? peer.reset() : peer.push(null)));
    done(error);
  }

  reset(): void {
    if (!this.destroyed) this.destroy(errorOf('read ECONNRESET', 'ECONNRESET'));
  }
}

export class Network {
  /** Ends of connections that are open. */
  readonly open = new Set<SimulatedSocket>();
  /** The greatest age at which a connection was written to, in ms. */
  oldestMs = 0;
  /** What the balancer of a service believes. */
  readonly #views = new Map<string, Instance[]>();
  readonly #next = new Map<string, number>();
  readonly #cuts: { readonly between: readonly [string, string]; readonly until: number }[] = [];

  constructor(readonly world: World) {}

  latency(): number {
    const [least, most] = LATENCY_MS;
    return least + this.world.random.next() * (most - least);
  }

  /** Tells the balancer; it notices after a while. */
  announce(service: string, instance: Instance, isReady: boolean, noticeMs: number): void {
    this.world.at(this.world.now + noticeMs, () => {
      const others = (this.#views.get(service) ?? []).filter((each) => each !== instance);
      this.#views.set(service, isReady ? [...others, instance] : others);
    }, undefined);
  }

  /** Cuts a link: packets wait until it is mended. */
  cut(a: string, b: string, ms: number): void {
    this.#cuts.push({ between: [a, b], until: this.world.now + ms });
  }

  /** When packets pass between two hosts again: now, on a link that is not cut. */
  openAgain(a: Host, b: Host): number {
    const { now } = this.world;
    return this.#cuts.reduce(
      (at, { between, until }) => (between.includes(a.name) && between.includes(b.name) ? Math.max(at, until) : at),
      now,
    );
  }

  /** Breaks every connection of a host, with a reset or, if its power fails, without a word. */
  breakAll(host: Host, isSilent: boolean): void {
    for (const socket of this.open) {
      if (socket.host !== host) continue;
      const { peer } = socket;
      if (!isSilent && peer !== undefined)
        this.world.at(this.world.now + this.latency(), () => peer.reset(), peer.host);
      this.open.delete(socket);
    }
  }

  /** How many sockets a host has open. */
  countOf(host: Host): number {
    return [...this.open].filter((socket) => socket.host === host).length;
  }

  /** Opens a connection from the current host to an instance of a service. */
  connect(service: string): Duplex {
    const { world } = this;
    const host = world.host as Host;
    const client = new SimulatedSocket(this, host, false);
    client.connecting = true;
    const view = this.#views.get(service) ?? [];
    const turn = this.#next.get(service) ?? 0;
    this.#next.set(service, turn + 1);
    const instance = view[turn % view.length];
    const fail = (code: string) => () => void client.destroy(errorOf(`connect ${code} ${service}`, code));
    if (instance === undefined) {
      world.at(world.now + this.latency(), fail('ECONNREFUSED'), host);
      return client;
    }
    const at = this.openAgain(host, instance.host) + this.latency();
    if (at > world.now + CONNECT_MS || instance.host.hasCrashed) {
      world.at(world.now + CONNECT_MS, fail('ETIMEDOUT'), host);
      return client;
    }
    world.at(at, () => {
      if (instance.server.listening) this.#accept(client, instance);
      else world.at(world.now + this.latency(), fail('ECONNREFUSED'), host);
    }, instance.host);
    return client;
  }

  #accept(client: SimulatedSocket, { host, server }: Instance): void {
    if (client.destroyed) return;
    const socket = new SimulatedSocket(this, host, true);
    [client.peer, socket.peer] = [socket, client];
    this.open.add(client).add(socket);
    const counting = server as unknown as { _connections: number; _emitCloseIfDrained(): void };
    counting._connections += 1;
    socket.on('close', () => {
      counting._connections -= 1;
      counting._emitCloseIfDrained();
    });
    server.emit('connection', socket);
    socket.send((peer) => {
      peer.connecting = false;
      if (peer.destroyed) return;
      peer.emit('connect');
      peer.emit('ready');
    });
  }
}

function errorOf(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Has every agent of `node:http` open its connections here. */
export function replaceConnections(networkOf: () => Network): void {
  const prototype = Agent.prototype as unknown as { createConnection: (options: { host: string }) => Duplex };
  prototype.createConnection = ({ host }) => networkOf().connect(host);
}

/** Has a server listen without a port. */
export function listenInMemory(server: Server): void {
  server.listen = (() => {
    const handle = { close() {}, ref() {}, unref() {} };
    Object.assign(server, { _handle: handle, address: () => ({ address: '10.0.0.1', family: 'IPv4', port: 8000 }) });
    process.nextTick(() => server.emit('listening'));
    return server;
  }) as Server['listen'];
}
