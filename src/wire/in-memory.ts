/*
 * Sends a request to a server through the real HTTP parser, over a stream in memory: no port, no mock.
 */

import type { ClientRequest, IncomingMessage, Server } from 'node:http';
import { Duplex } from 'node:stream';
import { builtin } from '../base/builtin.js';
import { setImmediate } from '../base/clock.js';
import { isBodiless } from '../payload/bodiless.js';
import { toReadable } from '../payload/bytes.js';
import { fromHeaderList } from '../payload/headers.js';

const NativeRequest = findClientRequest();

/**
 * @param request the host of its URL becomes the `Host` header
 * @param isStreamed whether its body is sent piece by piece, without a length
 * @returns the response, whatever its status; redirects are not followed
 * @throws the reason of `init.signal` when it aborts, and whatever a stream given as the body fails with
 */
export async function requestInMemory(server: Server, request: Request, isStreamed: boolean): Promise<Response> {
  const url = new URL(request.url);
  const { method, signal } = request;
  if (signal.aborted) request.body?.cancel(signal.reason).catch(() => undefined);
  signal.throwIfAborted();
  const body = isStreamed || request.body === null ? request.body : Buffer.from(await request.arrayBuffer());
  signal.throwIfAborted();

  const clientSide = new MemorySocket(url.protocol === 'https:');
  server.emit('connection', clientSide.peer);
  const headers: Record<string, string> = { host: url.host, ...Object.fromEntries(request.headers) };
  // The headers that frame the body are made from the body that is really sent, whatever the caller says.
  delete headers['content-length'];
  delete headers['transfer-encoding'];
  if (Buffer.isBuffer(body)) headers['content-length'] = String(body.length);
  // node:http does not chunk the body of some methods by itself.
  else if (body !== null) headers['transfer-encoding'] = 'chunked';

  return new Promise((resolve, reject) => {
    const path = url.pathname + url.search;
    const outgoing = new NativeRequest({ createConnection: () => clientSide, method, path, headers, signal });
    const source = body === null || Buffer.isBuffer(body) ? null : toReadable(body);
    const fail = (error: unknown): void => {
      reject(error);
      outgoing.destroy();
    };
    clientSide.once('close', () => source?.destroy());
    let incoming: IncomingMessage | undefined;
    // The reply is complete, whether or not it is read: nobody reads the rest of the body.
    const onData = (): void => void (incoming?.complete === true && source?.destroy());
    // After the listener of node:http, which parses what arrives.
    outgoing.on('socket', () => clientSide.on('data', onData));
    // By way of the request: its signal follows the caller's only for as long as something holds the request.
    outgoing.on('error', (error) => reject(request.signal.aborted ? request.signal.reason : error));
    outgoing.on('response', (response) => {
      incoming = response;
      try {
        resolve(toResponse(response, method, signal));
      } catch (unfit) {
        // A handler may write any status by `ctx.raw`; a `Response` has no 101 and none above 599.
        fail(unfit);
      }
    });
    // Changes nothing after a reply. There is no event of its own for an upgrade that nobody listens for.
    outgoing.on('close', () => reject(new Error('the connection was closed or upgraded; for that, listen on a port')));
    if (source === null) outgoing.end(body ?? undefined);
    else source.on('error', fail).pipe(outgoing);
  });
}

/** Finds the class of Node.js itself: nock and msw put others in its place, which would ask the network. */
function findClientRequest(): typeof ClientRequest {
  const { ClientRequest, OutgoingMessage } = builtin('node:http');
  let { prototype } = ClientRequest;
  let above: unknown = prototype;
  while (above instanceof OutgoingMessage) {
    prototype = above as ClientRequest;
    above = Object.getPrototypeOf(above);
  }
  return prototype.constructor as typeof ClientRequest;
}

/** Creates a request: also a GET or HEAD with a body, which HTTP has (RFC 9110, section 9.3.1) and Fetch refuses. */
export function createRequest(url: string, init: RequestInit): Request {
  const { method = 'GET', body } = init;
  if (body == null || !/^(get|head)$/i.test(method)) return new Request(url, init);
  const request = new Request(url, { ...init, method: 'POST' });
  return Object.defineProperty(request, 'method', { value: method.toUpperCase() });
}

function toResponse(incoming: IncomingMessage, method: string, signal: AbortSignal): Response {
  const status = incoming.statusCode as number;
  const bodiless = method === 'HEAD' || isBodiless(status);
  if (bodiless) incoming.resume();
  return new Response(bodiless ? null : toBody(incoming, signal), {
    status,
    statusText: incoming.statusMessage ?? '',
    headers: fromHeaderList(incoming.rawHeaders),
  });
}

/** The body of a response. Reading it rejects with the reason of the signal when that aborts. */
function toBody(incoming: IncomingMessage, signal: AbortSignal): ReadableStream<Uint8Array> {
  const chunks = incoming[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const { done, value } = await chunks.next().finally(() => signal.throwIfAborted());
    if (done === true) controller.close();
    else controller.enqueue(value);
  };
  return new ReadableStream({ pull, cancel: () => void incoming.destroy() }, { highWaterMark: 0 });
}

/**
 * One end of a connection in memory; what is written to it is read at the other. With `duplexPair` of `node:stream` a
 * write would not be done before it is read: a client that leaves as soon as it has the whole reply would count as one
 * that left without it.
 */
class MemorySocket extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  /** Keeps its requests out of the scope of a server that is public (`makePublic`). */
  readonly isInMemory = true;
  readonly peer: MemorySocket;

  /**
   * @param encrypted whether it counts as a connection of TLS
   * @param peer the other end; made if it is not given
   */
  constructor(
    readonly encrypted: boolean,
    peer?: MemorySocket,
  ) {
    super();
    this.peer = peer ?? new MemorySocket(encrypted, this);
  }

  override _read(): void {
    this.emit('wanted');
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.peer.push(chunk)) done();
    else this.peer.once('wanted', done);
  }

  override _final(done: () => void): void {
    this.peer.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { peer } = this;
    // The next turn, as with a network: the other end may still be reading what came before.
    if (!peer.destroyed) setImmediate(() => peer.destroy());
    done(error);
  }
}
