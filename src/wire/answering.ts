/* The interface between the connections of clients and what answers their requests. */

import type { IncomingMessage } from 'node:http';
import type { Exchange } from './exchange.js';
import type { Outgoing } from './outgoing.js';

/** Answers the requests that connections hand over. No method throws, and no promise rejects. */
export interface Answering<Handling> {
  /** Answers a request; null if the handler writes the reply itself, by `ctx.raw`. */
  answer(exchange: Exchange<Handling>): Outgoing | null | Promise<Outgoing | null>;
  /**
   * Returns and logs the reply to a failure outside of {@link answer}: a malformed body, a stream that fails before its
   * first byte, a header that cannot be sent.
   *
   * @param unsent the reply that could not be sent; null if it could be the reason
   */
  refuse(exchange: Exchange<Handling>, thrown: unknown, unsent: Outgoing | null): Outgoing;
  /**
   * Does the same for something that is not a request to answer: malformed bytes, CONNECT, an upgrade.
   *
   * @param req null for bytes that could not be parsed
   * @param isOpen whether the reply can be sent; if not, it is not logged as a failure
   */
  refuseSocket(req: IncomingMessage | null, error: Error, isOpen: boolean): Outgoing;
  /** The refusal of an upgrade; null if its listeners may have it. @throws the error to answer a malformed target with */
  refuseUpgrade(req: IncomingMessage): Error | null;
  /** Nobody can receive the reply to this request any more, whose handler still runs. */
  gone(exchange: Exchange<Handling>): void;
  /** The exchange is over; called once for each. @param status 499 for a client that disconnected */
  settled(exchange: Exchange<Handling>, status: number): void;
}
