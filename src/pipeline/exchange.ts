/*
 * A request on its way through the pipeline, with what is known of it so far.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Place } from '../base/bag.js';
import type { HttpError } from '../base/errors.js';
import type { Connection } from '../http/connection.js';
import type { Context } from '../http/context.js';
import { Exchange } from '../http/exchange.js';
import type { Outgoing } from '../http/reply.js';
import { requestId } from '../http/request.js';
import type { RouteMetrics } from '../monitor/request-metrics.js';
import type { Route } from '../routing/router.js';
import type { RequestTrace } from './tracing.js';

/** What runs a request, and ends it. */
export interface Runner {
  begin(): void;
  run(exchange: PipelineExchange): void;
  fail(exchange: PipelineExchange, thrown: unknown): void;
  abandon(exchange: PipelineExchange): void;
}

/** One request under way. */
export class PipelineExchange extends Exchange {
  ctx: Context | null = null;
  trace: RequestTrace | null = null;
  route: Route | null = null;
  /** How much of its reply's body was written; 0 where nobody counts. */
  bytes: () => number = uncounted;
  /** Set as soon as its handler was called. */
  isStarted = false;
  /** Whether its reply is among those that the outbox writes at the end of the turn. */
  isQueued = false;
  /** Its place in `InFlight.waiting`, once it has waited for a promise or a stream. */
  place: Place<PipelineExchange> | null = null;
  /** The reply, when it is ready to be written. */
  outgoing: Outgoing | null = null;
  /** How often writing a reply has failed. */
  failedWrites = 0;

  #id: string | undefined;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    awaitsContinue: boolean,
    readonly connection: Connection,
    readonly runner: Runner,
    public metrics: RouteMetrics,
    /** The error that it is answered with instead of being run; null to run it. */
    readonly refusal: unknown,
  ) {
    super(req, res, awaitsContinue);
  }

  get id(): string {
    return this.ctx?.id ?? (this.#id ??= requestId(this.req));
  }

  override run(): void {
    this.runner.run(this);
  }

  override fail(error: HttpError): void {
    // The error takes the place of a reply that is not written yet.
    this.outgoing = null;
    this.runner.fail(this, error);
  }

  override abandon(): void {
    this.runner.abandon(this);
  }
}

function uncounted(): number {
  return 0;
}
