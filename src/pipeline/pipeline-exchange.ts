/*
 * One request on its way through the pipeline, with what the pipeline notes of it.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Place } from '../base/bag.js';
import type { Connection } from '../http/connection.js';
import type { Context } from '../http/context.js';
import { Exchange, type ConnectionSteps } from '../http/exchange.js';
import type { RequestTrace } from '../http/request-tracing.js';
import type { Outcome } from '../http/writer.js';
import type { RouteMetrics } from '../monitor/request-metrics.js';

/** The steps of every request; none of them throws. */
export interface Steps extends ConnectionSteps<PipelineExchange> {
  fail(exchange: PipelineExchange, thrown: unknown): void;
  settle(exchange: PipelineExchange, statusCode: number, outcome: Outcome): void;
}

/** One request under way. */
export class PipelineExchange extends Exchange {
  ctx: Context | null = null;
  trace: RequestTrace | null = null;
  /** Returns how much of its reply's body was written; null where nobody counts. */
  bytes: (() => number) | null = null;
  /** How often writing a reply has failed. */
  failedWrites = 0;
  /** Among the requests whose clients have disconnected while their handlers run. */
  place: Place<PipelineExchange> | null = null;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    awaitsContinue: boolean,
    readonly connection: Connection,
    readonly steps: Steps,
    public metrics: RouteMetrics,
    /** The error that it is answered with instead of being run; null to run it. */
    readonly refusal: unknown,
  ) {
    super(req, res, awaitsContinue);
  }
}
