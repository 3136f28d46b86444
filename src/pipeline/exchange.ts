/*
 * A request on its way through the pipeline, with what is known of it so far.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Place } from '../base/bag.js';
import type { HttpError } from '../base/errors.js';
import type { Connection } from '../http/connection.js';
import type { Context } from '../http/context.js';
import { Exchange } from '../http/exchange.js';
import { requestId } from '../http/request.js';
import type { Outcome } from '../http/writer.js';
import type { RouteMetrics } from '../monitor/request-metrics.js';
import type { RequestTrace } from '../http/request-tracing.js';

/** The steps of every request; none of them throws. */
export interface Steps {
  run(exchange: PipelineExchange): void;
  fail(exchange: PipelineExchange, thrown: unknown): void;
  settle(exchange: PipelineExchange, statusCode: number, outcome: Outcome): void;
  supersede(exchange: PipelineExchange, error: HttpError): void;
  abandon(exchange: PipelineExchange): void;
}

/** One request under way. */
export class PipelineExchange extends Exchange {
  ctx: Context | null = null;
  trace: RequestTrace | null = null;
  /** How much of its reply's body was written; 0 where nobody counts. */
  bytes: () => number = uncounted;
  /** How often writing a reply has failed. */
  failedWrites = 0;
  /** Among the requests whose clients have disconnected while their handlers run. */
  place: Place<PipelineExchange> | null = null;
  #id: string | undefined;

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

  get id(): string {
    return this.ctx?.id ?? (this.#id ??= requestId(this.req));
  }

  override run(): void {
    this.steps.run(this);
  }

  override refuse(error: HttpError): void {
    this.steps.supersede(this, error);
  }

  override abandon(): void {
    this.steps.abandon(this);
  }

  override watch(): void {
    this.connection.watch();
  }
}

function uncounted(): number {
  return 0;
}
