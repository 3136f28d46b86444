/**
 * Pools of kept-alive connections, one for each service.
 */

import { Agent } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * How long an idle connection is kept. Below the 5 s after which `node:http` servers close theirs, so that no request
 * is sent into a connection that is about to go; a shorter `Keep-Alive: timeout` of the server counts first.
 */
const IDLE_MS = 4000;

/**
 * A pool whose idle connections keep no process alive. One that receives data while idle is closed: what came could
 * pass for the answer to the next request.
 *
 * @param tls loads `node:https`
 */
export function createAgent(tls: boolean): Agent {
  const agent = tls ? new (process.getBuiltinModule('node:https').Agent)({ keepAlive: true, timeout: IDLE_MS }) : new Agent({ keepAlive: true, timeout: IDLE_MS });
  const keepSocketAlive = agent.keepSocketAlive.bind(agent);
  const reuseSocket = agent.reuseSocket.bind(agent);
  agent.keepSocketAlive = (socket) => {
    socket.on('data', destroyIdle);
    return keepSocketAlive(socket);
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
