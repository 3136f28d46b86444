/**
 * A network in memory: connections with latency that break, hang and refuse, and a balancer for each service that
 * notices late which instances there are.
 *
 * `node:http` gets its sockets here: those of clients by `Agent.createConnection`, those of servers by the event
 * `connection`. A socket's own timer is virtual, so that Node's agents and servers keep virtual time with it.
 */

import { Agent, type Server } from 'node:http';
import { Duplex } from 'node:stream';
import type { Postern } from 'postern';
import { world, type Host } from './world.js';

/** How long, in ms, TCP tries to open a connection. */
const CONNECT_MS = 20_000;

/** An application on a host of its own. */
export class Instance implements Host {
  pausedUntil = 0;
  hasCrashed = false;
  isReady = false;
  /** Whether the balancer of its service believes that it is ready. */
  isKnown = false;
  readonly app: Postern;

  constructor(readonly name: string, readonly service: string, create: () => Postern) {
    this.app = world.on(this, create);
  }
}

class Network {
  readonly instances: Instance[] = [];
  /** Ends of connections that are open. */
  readonly open = new Set<SimulatedSocket>();
  readonly cuts: { readonly between: readonly string[]; readonly until: number }[] = [];
  /** The greatest age at which a connection was written to, in ms. */
  oldestMs = 0;
  /** How many connections the balancer of a service has passed on. */
  readonly turns = new Map<string, number>();
}

/** The network of the current run. */
export let network: Network = new Network();

export function createNetwork(): void {
  network = new Network();
}

/** How long, in ms, a packet travels. */
const latency = (): number => 0.2 + 2.8 * world.random.next();
const errorOf = (message: string, code: string): Error => Object.assign(new Error(message), { code });

class SimulatedSocket extends Duplex {
  connecting = false;
  bytesRead = 0;
  bytesWritten = 0;
  timeout = 0;
  readonly remoteAddress = '10.0.0.1';
  peer: SimulatedSocket | undefined;
  readonly #openedAt = world.now;
  /** When the last packet that was sent arrives: packets keep their order. */
  #lastArrival = 0;
  #timer: { isCancelled: boolean } | undefined;

  constructor(readonly host: Host, allowHalfOpen: boolean) {
    super({ allowHalfOpen });
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
    if (this.timeout === 0 || this.destroyed) return;
    this.#timer = world.at(world.now + this.timeout, () => this.emit('timeout'), this.host);
  }

  /** Sends something to the other end. On a link that is cut it waits, because TCP repeats it. */
  send(arrive: (peer: SimulatedSocket) => void): void {
    const { peer, host } = this;
    if (peer === undefined || host.hasCrashed) return;
    const deliver = (): void => {
      const open = openAgain(host, peer.host);
      if (open > world.now) world.at(open, deliver, peer.host);
      else arrive(peer);
    };
    this.#lastArrival = Math.max(this.#lastArrival, openAgain(host, peer.host) + latency());
    world.at(this.#lastArrival, deliver, peer.host);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#touch();
    network.oldestMs = Math.max(network.oldestMs, world.now - this.#openedAt);
    this.bytesWritten += chunk.length;
    this.send((peer) => {
      // A packet for a connection that is gone is answered by a reset.
      if (peer.destroyed) return peer.send((sender) => sender.reset());
      peer.bytesRead += chunk.length;
      peer.#touch();
      peer.push(chunk);
    });
    done();
  }

  override _read(): void {}

  override _final(done: () => void): void {
    this.send((peer) => void peer.push(null));
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#timer !== undefined) this.#timer.isCancelled = true;
    network.open.delete(this);
    const isReset = error !== null || this.readableLength > 0;
    this.send((peer) => (isReset ? peer.reset() : void peer.push(null)));
    done(error);
  }

  reset(): void {
    if (!this.destroyed) this.destroy(errorOf('read ECONNRESET', 'ECONNRESET'));
  }
}

/** When packets pass between two hosts again: now, on a link that is not cut. */
function openAgain(a: Host, b: Host): number {
  const cuts = network.cuts.filter(({ between }) => between.includes(a.name) && between.includes(b.name));
  return Math.max(world.now, ...cuts.map(({ until }) => until));
}

/** Breaks every connection of a host, with a reset or, if its power fails, without a word. */
export function breakAll(host: Host, isSilent: boolean): void {
  for (const { peer } of [...network.open].filter((socket) => socket.host === host)) {
    if (!isSilent && peer !== undefined) world.at(world.now + latency(), () => peer.reset(), peer.host);
  }
}

/** Opens a connection from the current host to an instance of a service. */
function connect(service: string): Duplex {
  const { host } = world;
  const client = new SimulatedSocket(host, false);
  client.connecting = true;
  // Until it is connected, Node.js keeps what is written.
  client.cork();
  const known = network.instances.filter((instance) => instance.service === service && instance.isKnown);
  const turn = network.turns.get(service) ?? 0;
  network.turns.set(service, turn + 1);
  const instance = known[turn % known.length];
  world.write('open', service, { other: known.map(({ name }) => name).join(' ') });
  const fail = (code: string, ms = latency()): void => {
    world.at(world.now + ms, () => client.destroy(errorOf(`connect ${code} ${service}`, code)), host);
  };
  if (instance === undefined) fail('ECONNREFUSED');
  else if (instance.hasCrashed || openAgain(host, instance) > world.now + CONNECT_MS) fail('ETIMEDOUT', CONNECT_MS);
  else {
    const arrive = (): void => (instance.app.server.listening ? accept(client, instance) : fail('ECONNREFUSED'));
    world.at(openAgain(host, instance) + latency(), arrive, instance);
  }
  return client;
}

function accept(client: SimulatedSocket, instance: Instance): void {
  if (client.destroyed) return;
  const socket = new SimulatedSocket(instance, true);
  [client.peer, socket.peer] = [socket, client];
  network.open.add(client).add(socket);
  // As `net.Server` does for its own sockets: `close` waits for them.
  const counting = instance.app.server as unknown as { _connections: number; _emitCloseIfDrained(): void };
  counting._connections += 1;
  socket.on('close', () => {
    counting._connections -= 1;
    counting._emitCloseIfDrained();
  });
  instance.app.server.emit('connection', socket);
  socket.send((peer) => {
    peer.connecting = false;
    if (!peer.destroyed) peer.emit('connect');
    peer.uncork();
  });
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

Object.assign(Agent.prototype, { createConnection: ({ host }: { host: string }) => connect(host) });
