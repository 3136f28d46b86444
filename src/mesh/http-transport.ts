/* Sends requests to a service over HTTP, with a pool of kept-alive connections. */

import type { Agent, AgentOptions, ClientRequest } from 'node:http';
import type { LookupFunction, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { builtin } from '../base/builtin.js';
import { monotonicNow, random } from '../base/clock.js';
import { DEADLINE_HEADER, readDeadlineHeader } from '../propagation/mesh-headers.js';
import { toReadable } from '../payload/bytes.js';
import { callError } from './service-error.js';
import { Answer } from './answer.js';
import type { Limit } from './limit.js';
import type { ServiceStream } from './call-options.js';
import { isRepeatable, type ServiceRequest, type Transport } from './request.js';

/** Errors of a kept-alive connection that the other side closed while it was idle. */
const STALE_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);

const MAX_HEAD_BYTES = 16_384;

/** @param address without query and trailing slash @param maxAgeMs age at which a connection is retired, ± 10 % */
export function createHttpTransport(address: string, maxAgeMs: number): Transport {
  const url = new URL(address);
  const protocol = url.protocol === 'https:' ? builtin('node:https') : builtin('node:http');
  const { hostname, port } = builtin('node:url').urlToHttpOptions(url);
  const connection = { hostname, port, lookup: createLookup(), autoSelectFamily: true, maxHeaderSize: MAX_HEAD_BYTES };
  let agent: Agent | undefined;

  /** @param fresh asks for a new connection */
  const begin = ({ method, target, headers }: ServiceRequest, fresh: boolean): ClientRequest => {
    agent ??= createAgent(protocol.Agent, maxAgeMs);
    const path = url.pathname === '/' ? target : url.pathname + target;
    const req = protocol.request({ method, path, headers, agent: fresh ? false : agent, ...connection });
    // Header fields beyond the default limit would be dropped in silence: `content-length` could be one of them.
    req.maxHeadersCount = 0;
    return req;
  };

  /** Sends a request; once more on a fresh connection if an idle one was closed meanwhile, and it is idempotent. */
  const open = (request: ServiceRequest, limit: Limit): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const startedAtMs = monotonicNow();
      let answer: Answer | undefined;
      let req = begin(request, false);
      const pool = agent;
      limit.whenEnded((reason) => {
        reject(reason);
        req.destroy();
      });
      const send = (mayResend: boolean): void => {
        const sent = req;
        let bytesBefore = 0;
        sent.on('socket', ({ bytesRead }) => (bytesBefore = bytesRead));
        // The listener stays: an uncaught error after the outcome would end the process.
        sent.on('error', (error: NodeJS.ErrnoException) => {
          if (sent !== req) return;
          const isStale = sent.reusedSocket && sent.socket?.bytesRead === bytesBefore && STALE_CODES.has(error.code);
          // Not sent again if this side closed its connection, by `close` or the limit.
          if (mayResend && isStale && answer === undefined && agent === pool && !limit.isOver) {
            req = begin(after(monotonicNow() - startedAtMs, request), true);
            send(false);
          } else limit.end(connectionError(request, error, answer !== undefined));
        });
        sent.on('upgrade', (_res, socket) => {
          socket.destroy();
          limit.end(callError(request, 502, `${request.service} switched to another protocol`));
        });
        sent.on('response', (res) => {
          answer = new Answer(request, res, limit);
          // A service that has answered does not read the rest of a body that is still being sent.
          res.on('end', () => {
            if (!sent.writableEnded) sent.destroy();
          });
          resolve(answer);
        });
        const content = request.body?.content;
        if (content === undefined || content instanceof Uint8Array) sent.end(content);
        else writeStream(content, sent, limit.end);
      };
      send(isRepeatable(request));
    });

  return {
    url: address,
    open,
    close() {
      agent?.destroy();
      agent = undefined;
    },
  };
}

/**
 * Resolves the name of a service for each new connection, and puts another one of its addresses first each
 * time; an address that refuses is followed by the next. The order of the system's resolver may always be the same, or
 * differ from one time to the next; the first turn is random, so that the callers of a service begin differently.
 */
function createLookup(): LookupFunction {
  let turn = Math.floor(random() * 2 ** 16);
  return (hostname, options, done) =>
    builtin('node:dns').lookup(hostname, { ...options, all: true }, (error, found) => {
      const ordered = (found ?? []).sort((a, b) => (a.address < b.address ? -1 : 1));
      const first = ordered.length === 0 ? 0 : (turn += 1) % ordered.length;
      done(error, [...ordered.slice(first), ...ordered.slice(0, first)]);
    });
}

/** A request that is sent again: less is left of its deadline. */
function after(passedMs: number, request: ServiceRequest): ServiceRequest {
  const { headers } = request;
  const deadlineMs = readDeadlineHeader(headers);
  if (deadlineMs === undefined) return request;
  const leftMs = Math.max(1, Math.floor(deadlineMs - passedMs));
  return { ...request, headers: { ...headers, [DEADLINE_HEADER]: String(leftMs) } };
}

function connectionError(request: ServiceRequest, cause: NodeJS.ErrnoException, isAnswering: boolean): Error {
  const { service } = request;
  if (cause.code?.startsWith('HPE_'))
    return callError(request, 502, `${service} answered with malformed HTTP`, { cause });
  const what = isAnswering ? 'broke off its answer' : 'is unreachable';
  return callError(request, 503, `${service} ${what}`, { cause });
}

/** Sends a streamed body, no faster than it is read; destroys its source with the request. */
function writeStream(stream: ServiceStream, req: ClientRequest, fail: (reason: unknown) => void): void {
  const source = toReadable(stream);
  const destroyed = "the body's stream was destroyed before its end";
  // It emits nothing any more.
  if (source.destroyed) return fail(source.errored ?? new TypeError(destroyed));
  let hasEnded = false;
  source.on('error', fail);
  source.on('data', (chunk: unknown) => {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array))
      fail(new TypeError(`the body's stream yielded a chunk of type ${typeof chunk}; yield strings or bytes`));
    else if (chunk.length > 0 && !req.destroyed && !req.write(chunk)) source.pause();
  });
  source.on('end', () => {
    hasEnded = true;
    req.end();
  });
  source.on('close', () => {
    // Not `readableEnded`: a stream that had ended before the call has nothing to send.
    if (!hasEnded && !req.destroyed) fail(new TypeError(destroyed));
  });
  req.on('drain', () => source.resume());
  req.on('close', () => source.destroy());
}

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
 * @param Class the agent of `node:http` or `node:https`
 * @param maxAgeMs of a connection, ± 10 %
 */
export function createAgent(Class: new (options: AgentOptions) => Agent, maxAgeMs: number): Agent {
  const agent = new Class({ keepAlive: true, timeout: IDLE_MS });
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
