/**
 * A request on its way through the pipeline, with what is known of it so far.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpError } from '../errors.js';
import type { Context } from '../http/context.js';
import type { RequestTrace } from './tracing.js';
import type { RouteMetrics } from '../monitor/request-metrics.js';

/** One request under way. */
export class Exchange {
  readonly startedAt: number = performance.now();
  ctx: Context | null = null;
  trace: RequestTrace | null = null;
  /** Set with the reply: whatever the handler does later is ignored. */
  answered = false;
  /** Whether its reply ends the connection, whatever it is. */
  ends = false;

  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly awaitsContinue: boolean,
    public metrics: RouteMetrics,
    readonly refusal: HttpError | null = null,
  ) {}
}
