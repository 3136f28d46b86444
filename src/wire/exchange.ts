/* One request and its reply, with its one state. */

import type { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import { requestId } from '../propagation/mesh-headers.js';
import { IncomingBody } from './incoming-body.js';
import type { Outgoing } from './outgoing.js';
import { scopeOf, type Scope } from './scope.js';

/** nginx's status for a client that disconnected; never sent, only counted. */
export const CLIENT_CLOSED_REQUEST = 499;

type ExchangeState = 'waiting' | 'running' | 'sending' | 'left' | 'over';

/**
 * - `begin`: the reply is asked for.
 * - `send`: the reply is written by Postern, or left to the handler (`ctx.raw`, a mount).
 * - `fail`: no byte of the reply could be written; another reply takes its place.
 * - `leave`: nobody can receive the reply any more.
 * - `end`: the reply is handed to the socket as a whole, or nothing waits for the handler any more.
 */
type ExchangeEvent = 'begin' | 'send' | 'fail' | 'leave' | 'end';

/** For each state the events that end it, and the state after each. Any other event changes nothing. */
export const STATES: Readonly<Record<ExchangeState, Readonly<Partial<Record<ExchangeEvent, ExchangeState>>>>> = {
  // Earlier replies are not with the kernel yet, or the packet that the head came with is still being parsed.
  waiting: { begin: 'running', leave: 'over' },
  running: { send: 'sending', leave: 'left' },
  sending: { fail: 'running', leave: 'over', end: 'over' },
  // The client has disconnected. The handler still runs, and counts as active until it ends.
  left: { end: 'over' },
  over: {},
};

/** The connection of an exchange, as far as the exchange needs it. */
export interface Carrier {
  /** Whether the reply to this request is the last one, and so has to say `connection: close`. */
  endsWith(exchange: Exchange): boolean;
  /** To be called when something may wait for the client to read it. */
  watch(): void;
  /** Answers with an error in place of a reply of which no byte is sent. */
  replace(exchange: Exchange, thrown: unknown): void;
  /** Ends the exchange if its client has disconnected: a drain does not wait for the handler. */
  dismiss(exchange: Exchange): void;
}

const NOBODY: readonly (() => void)[] = [];

/** One request under way. `Handling` is the answering side's own record of it. */
export class Exchange<Handling = unknown> {
  /** As sent: middleware may change the method of `req`, but the reply is framed for this one. */
  readonly method: string;
  /** On the clock of `performance.now()`. */
  readonly startedAtMs: number = monotonicNow();
  /** Null if no body follows the head. */
  readonly body: IncomingBody | null;
  /** Who sent the request. */
  readonly scope: Scope;
  handling: Handling | null = null;
  /** The reply while it is sent; null while it is not known, and when a handler writes it. */
  outgoing: Outgoing | null = null;
  /** `exposed`: the handler has `req` and `res` of node:http (`ctx.raw`); `piped`: something was piped to `res`. */
  raw: 'unused' | 'exposed' | 'piped' = 'unused';
  /** Whether the connection was closed while the reply waited for its client, although node:http calls it finished. */
  isTorn = false;
  /** Whether it outlived the time limit of a drain, which then has closed its connection. */
  isCutByDrain = false;
  /** Called before each head, once a handler may write it itself (`ctx.raw`), with its status. */
  onHead: readonly ((status: number) => void)[] = NOBODY;
  #state: ExchangeState = 'waiting';
  #id: string | undefined;
  #isLost = false;
  #goneListeners: (() => void)[] | null = null;
  #context: AsyncResource | null = null;

  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly carrier: Carrier,
    awaitsContinue: boolean,
    /** The error to answer with in place of the handler; null to run the handler. */
    public refusal: unknown,
  ) {
    const { headers } = req;
    this.method = req.method as string;
    this.scope = scopeOf(req);
    const length = Number(headers['content-length'] ?? 0);
    const hasBody = length > 0 || headers['transfer-encoding'] !== undefined;
    this.body = hasBody ? new IncomingBody(req, res, length, awaitsContinue) : null;
    // node:http would send chunks to a client of HTTP/1.0 that names them in `TE`.
    if (req.httpVersionMinor === 0) res.useChunkedEncodingByDefault = false;
  }

  /** The request's `x-request-id` if it matches `[A-Za-z0-9._-]{1,128}`, else a new one. */
  get id(): string {
    return (this.#id ??= requestId(this.req));
  }

  get state(): ExchangeState {
    return this.#state;
  }

  /** @returns whether the event means something in the present state */
  move(event: ExchangeEvent): boolean {
    const after = STATES[this.#state][event];
    if (after === undefined) return false;
    this.#state = after;
    if (event === 'leave') this.#isLost = true;
    return true;
  }

  /** Whether nobody can receive the handler's reply: the client has disconnected, or the body broke off. */
  get isGone(): boolean {
    return this.#isLost || (this.body !== null && this.body.failure !== null);
  }

  /** Whether a handler has taken the reply into its own hands: it is written, being written, or destroyed. */
  get isHandedOver(): boolean {
    const { res, raw } = this;
    return raw === 'piped' || res.headersSent || res.destroyed || res.writableEnded;
  }

  /** Whether the whole reply is with the kernel. */
  get isWritten(): boolean {
    return this.res.writableFinished && !this.isTorn;
  }

  /** Whether the reply broke off: the client has disconnected, or the handler has destroyed the reply. */
  get isCut(): boolean {
    return this.res.destroyed && !this.isWritten;
  }

  /** Keeps the async context of the request for later: the context in which node:http emitted it. */
  keepContext(): void {
    const { AsyncResource } = builtin('node:async_hooks');
    this.#context ??= new AsyncResource('POSTERN_REQUEST', { requireManualDestroy: true });
  }

  /** Calls a function in the async context of the request, if that was kept. */
  inContext(run: () => void): void {
    if (this.#context === null) run();
    else this.#context.runInAsyncScope(run);
  }

  /** Calls back when nobody can receive the reply any more, or the body breaks off; at once if that has happened. */
  onGone(listener: () => void): void {
    if (this.isGone) listener();
    else (this.#goneListeners ??= []).push(listener);
  }

  /** Calls back when the exchange is over, at once if it is; perhaps more than once. */
  onOver(listener: () => void): void {
    if (this.res.closed) listener();
    else this.res.once('close', listener);
    this.onGone(listener);
  }

  /** Calls the listeners of {@link onGone}. */
  notifyGone(): void {
    const listeners = this.#goneListeners;
    this.#goneListeners = null;
    for (const listener of listeners ?? []) listener();
  }
}
