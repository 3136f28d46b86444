/* One request and its reply on a connection, as far as the connection is concerned. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import type { HttpError } from '../base/errors.js';
import type { Outgoing } from './reply.js';
import { requestId } from './request.js';
import { BODY, REPLY, type BodyEvent, type BodyState, type ReplyEvent, type ReplyState } from './life-cycle.js';

const { AsyncResource } = builtin('node:async_hooks');
/** nginx's status for a client that disconnected; never sent, only counted. */
export const CLIENT_CLOSED_REQUEST = 499;
const NEVER_DESTROYED = { requireManualDestroy: true } as const;

/** Maximum bytes that are read and dropped of a body that no handler wants; with more, the connection is closed. */
const DISCARD_BYTES = 64 * 1024 * 1024;

/** Is notified of events of a request while its handler runs. */
export interface Witness {
  /** Nobody can receive the reply any more. */
  left(): void;
  /** The handler has written the head of the reply itself. */
  headSent(): void;
}

/** The steps of a request that its connection asks the pipeline for; none of them throws. */
export interface ConnectionSteps<Request extends Exchange> {
  /** Whether replies end their connections: the application drains. */
  readonly isDraining: boolean;
  /** Runs the handler. */
  run(exchange: Request): void;
  /** Answers with an error of the connection, such as a malformed chunk, unless a reply is begun. */
  supersede(exchange: Request, error: HttpError): void;
  /** To be called when nobody can receive the reply any more. */
  abandon(exchange: Request): void;
}

/** A request under way; the pipeline runs it. */
export abstract class Exchange {
  abstract readonly steps: ConnectionSteps<this>;
  /** To be watched when something is written that Postern does not see. */
  abstract readonly connection: { watch(): void; endsWith(exchange: Exchange): boolean };
  /** On the clock of `performance.now()`. */
  readonly startedAtMs: number = monotonicNow();
  /** The `content-length` of the request; 0 without one. */
  readonly contentLength: number;
  /** Whether a body follows the head. */
  readonly hasBody: boolean;
  /** The reply, from when it is known until it is sent. */
  outgoing: Outgoing | null = null;
  /** The failure that middleware got an error reply for, until it is logged. Wrapped: `undefined` can be thrown, too. */
  failure: { readonly thrown: unknown } | null = null;
  /** `exposed`: the handler has `req` and `res` of node:http (`ctx.raw`); `piped`: something was piped to `res`. */
  raw: 'unused' | 'exposed' | 'piped' = 'unused';
  witness: Witness | null = null;
  #state: ReplyState = 'waiting';
  #body: BodyState = 'unread';
  #abortListeners: (() => void)[] = [];
  #id: string | undefined;
  readonly #context = new AsyncResource('POSTERN_REQUEST', NEVER_DESTROYED);

  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly awaitsContinue: boolean,
  ) {
    const { headers } = req;
    this.contentLength = Number(headers['content-length'] ?? 0);
    this.hasBody = headers['transfer-encoding'] !== undefined || this.contentLength > 0;
    // node:http would send chunks to a client of HTTP/1.0 that names them in `TE`.
    if (req.httpVersionMinor === 0) res.useChunkedEncodingByDefault = false;
  }

  /** The request's `x-request-id` if it matches `[A-Za-z0-9._-]{1,128}`, else a new one. */
  get id(): string {
    return (this.#id ??= requestId(this.req));
  }

  get state(): ReplyState {
    return this.#state;
  }

  /** Moves the reply as {@link REPLY} says. @returns whether the event means something in its state */
  move(event: ReplyEvent): boolean {
    const before = this.#state;
    this.#state = REPLY[before][event] ?? before;
    return this.#state !== before;
  }

  /** Whether the reply is handed to the socket, or never will be. */
  get isAnswered(): boolean {
    return this.#state === 'sent' || this.#state === 'over';
  }

  /** Whether its connection can let go of it: its whole reply is handed to the socket, its body is here or gone. */
  get isOut(): boolean {
    const { req, res } = this;
    if (!this.isAnswered && this.#state !== 'left') return false;
    if (isCut(res)) return true;
    const isWritten = res.writableFinished || (res.writableEnded && res.socket !== null);
    return isWritten && (req.complete || this.#body === 'broken');
  }

  /** Whether a part of the body was read or asked for, by Postern's methods or from `req` itself. */
  get isReading(): boolean {
    return this.#body === 'read' || this.#body === 'left' || this.req.readableDidRead;
  }

  /** Whether the client waits to be told to send its body (RFC 9110, section 10.1.1). */
  get isBodyHeldBack(): boolean {
    return this.awaitsContinue && !this.isReading;
  }

  /** Calls a function in the async context in which node:http emitted the request. */
  inContext(run: (exchange: this) => void): void {
    this.#context.runInAsyncScope(run, undefined, this);
  }

  /** Calls back when the client disconnects, or its body breaks off, before the reply is sent; at once if it has. */
  onAbort(listener: () => void): void {
    if (this.#body === 'broken' || this.#state === 'left' || this.#state === 'over') listener();
    else this.#abortListeners.push(listener);
  }

  /** To be called when nothing more is answered on the connection. */
  drop(): void {
    this.leave();
    this.dropBody();
  }

  /** To be called when the connection is gone. */
  disconnect(): void {
    const { req, res } = this;
    this.leave();
    // After the reply, node:http does not end a body whose connection is gone: its reader would wait for ever.
    if (!req.complete) req.destroy();
    // A response that waits for others has no socket yet; before Node.js 24, it does not learn that none will come.
    if (res.socket !== null || res.destroyed || res.writableFinished) return;
    Object.assign(res.destroy(), { _closed: true }).emit('close');
  }

  /** Calls back when the reply is sent, or nobody can receive it any more; perhaps more than once. */
  onOver(listener: () => void): void {
    const { res } = this;
    if (res.closed) listener();
    else res.once('close', listener);
    this.onAbort(listener);
  }

  /** To be called when nobody can receive the reply any more. */
  leave(): void {
    // A handler that has written its reply whole, by `ctx.raw`, may still run; its client had no reason to stay.
    if (this.res.writableFinished || !this.move('leave')) return;
    this.witness?.left();
    this.inContext(() => {
      this.abort();
      this.steps.abandon(this);
    });
  }

  /**
   * To be called when the rest of the body will never come: the request is answered with an error. If the body took too
   * long, what still arrives of it is dropped, even if a handler reads it.
   */
  breakBody(error: HttpError): void {
    if (!this.#moveBody('breakOff')) return;
    dropLateHeaders(this.res);
    this.inContext(() => {
      if (!this.isAnswered) this.abort();
      this.steps.supersede(this, error);
    });
    this.req.removeAllListeners('readable');
    this.#discard();
  }

  /** Calls the listeners of {@link onAbort}. */
  abort(): void {
    for (const listener of this.#abortListeners.splice(0)) listener();
  }

  /** Begins to read: a client that waits for `100 Continue` gets it as soon as the replies before this one are out. */
  beginReading(): void {
    const { res, isBodyHeldBack } = this;
    this.#moveBody('read');
    if (!isBodyHeldBack) return;
    const send = (): void => {
      if (!res.headersSent && !res.destroyed) res.writeContinue();
    };
    // As long as earlier replies are not out, this response has no socket. node:http would keep `100 Continue` back,
    // and may send it after the head of this reply, where the client takes it for the body.
    if (res.socket === null) res.once('socket', send);
    else send();
  }

  /**
   * Reads and drops the rest of a body that no handler wants any more. Unread, it would fill its buffer, and node:http
   * would stop reading from the socket: a disconnect while an earlier reply waits for its handler would go unnoticed.
   */
  dropBody(): void {
    if (!this.req.complete && this.#moveBody('drop')) this.#discard();
  }

  #discard(): void {
    const { req } = this;
    let budget = DISCARD_BYTES;
    const onData = (chunk: Buffer): void => {
      budget -= chunk.length;
      if (budget < 0) req.socket.destroy();
    };
    req.on('data', onData).unpipe().resume();
  }

  #moveBody(event: BodyEvent): boolean {
    const before = this.#body;
    this.#body = BODY[before][event] ?? before;
    return this.#body !== before;
  }
}

/**
 * Has a request end after its reply in fewer ticks than node:http takes (7 rather than 11 for a whole exchange on
 * Node.js 20, 7 rather than 9 on 24). node:http reads on what nobody has begun to read; begun before its end is parsed,
 * a request is not touched, and one more read ends it: `end` and `close` come where they always did.
 */
export function endWithReply({ req, res }: Exchange): void {
  if (req.complete) return;
  req.read();
  res.on('finish', readToEnd);
}

function readToEnd(this: ServerResponse): void {
  this.req.read(0);
}

/**
 * To be called before a request is answered in place of its handler. Whatever head the handler writes after that reply,
 * in a callback for one, is dropped: the error of node:http would end the process.
 */
export function dropLateHeaders(res: ServerResponse): void {
  for (const name of ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader', 'writeHead'] as const) {
    const method = res[name].bind(res) as (...given: unknown[]) => unknown;
    Reflect.set(res, name, (...given: unknown[]) => (res.headersSent ? res : method(...given)));
  }
}

/** Whether a reply broke off: its client has disconnected, or its handler has destroyed it. */
export function isCut({ destroyed, writableFinished }: ServerResponse): boolean {
  return destroyed && !writableFinished;
}

/**
 * Whether the head of a reply, once it is sent, says `connection: close`, by whatever means: node:http sets `_last` for
 * a given `connection: close` and for a reply without a length to HTTP/1.0.
 */
export function saysClose(res: ServerResponse & { readonly _last?: boolean }): boolean {
  return !res.shouldKeepAlive || res._last === true;
}
