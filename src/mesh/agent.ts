/*
 * Pools of kept-alive connections, one for each service.
 */

import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { monotonicNow, random } from '../base/clock.js';
import { builtin } from '../base/builtin.js';

/**
 * How long an idle connection is kept. Below the 5 s after which `node:http` servers close theirs, so that no request
 * is sent into a connection that is about to go; a shorter `Keep-Alive: timeout` of the server counts first.
 */
const IDLE_MS = 4000;

/** Ages differ by this much, so that connections that were opened together don't all end together. */
const AGE_SPREAD = 0.1;

/**
 * A pool whose idle connections keep no process alive. A connection that receives data while idle is closed: those
 * bytes could pass for the answer to the next request. One that has reached its age is closed between two requests: a
 * load balancer that spreads connections, rather than requests, gets to choose an instance again.
 *
 * @param tls loads `node:https`
 * @param maxAgeMs of a connection, ± 10 %
 */
export function createAgent(tls: boolean, maxAgeMs: number): Agent {
  const options = { keepAlive: true, timeout: IDLE_MS };
  const agent = tls ? new (builtin('node:https').Agent)(options) : new Agent(options);
  const keepSocketAlive: (socket: Duplex) => unknown = agent.keepSocketAlive.bind(agent);
  const reuseSocket = agent.reuseSocket.bind(agent);
  const retireAt = new WeakMap<Duplex, number>();
  const createConnection: typeof agent.createConnection = agent.createConnection.bind(agent);
  agent.createConnection = (...args) => {
    const socket = createConnection(...args);
    const spread = 1 - AGE_SPREAD + 2 * AGE_SPREAD * random();
    if (socket != null) retireAt.set(socket, monotonicNow() + maxAgeMs * spread);
    return socket;
  };
  agent.keepSocketAlive = (socket) => {
    const leftMs = (retireAt.get(socket) ?? Infinity) - monotonicNow();
    if (leftMs < 1 || keepSocketAlive(socket) === false) return false;
    // The agent closes a free connection when its timer fires.
    const { timeout = 0 } = socket as Socket;
    if (leftMs < timeout) (socket as Socket).setTimeout(leftMs);
    socket.on('data', destroyIdle);
    return true;
  };
  agent.reuseSocket = (socket, request) => {
    socket.off('data', destroyIdle);
    reuseSocket(socket, request);
  };
  return agent;
}

function destroyIdle(this: Duplex): void {
  this.destroy();
}
