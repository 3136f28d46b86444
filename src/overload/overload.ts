/*
 * Overload protection of one application, around its routes.
 */

import { monotonicNow } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { Context, Handler } from '../http/context.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import type { LoadShedding } from './options.js';
import { ProcessLimits } from './process-limits.js';
import { Refusals } from './refusals.js';

/** What protection reads of the application. */
export interface OverloadSources {
  readonly requests: RequestMetrics;
  /** The memory of the process, in percent of the memory that it may use. */
  readonly memoryPercent: () => number;
  readonly logger: Logger;
}

/** Decides which requests run. */
export class Overload {
  readonly #refusals: Refusals;
  readonly #limits: ProcessLimits | null;

  constructor(options: LoadShedding, { requests, memoryPercent, logger }: OverloadSources) {
    this.#refusals = new Refusals(requests, options);
    this.#limits = options.limitsProcess ? new ProcessLimits(options, memoryPercent, logger) : null;
  }

  /**
   * Goes around the middleware of groups and routes, and refuses requests before any of it runs.
   *
   * @param path of the route; empty without a route
   */
  guard(path: string, run: Handler): Handler {
    const limits = this.#limits;
    if (limits === null) return run;
    return (ctx) => {
      const { exceeded } = limits;
      return (exceeded === undefined ? undefined : this.#refusals.refuse(path, exceeded)) ?? run(ctx);
    };
  }

  /** Goes around the handler only, and refuses a request whose caller no longer waits. */
  inTime<Input, Result>(
    path: string,
    handler: (ctx: Context, input: Input) => Result,
  ): (ctx: Context, input: Input) => Result | Error {
    return (ctx, input) => {
      const { deadlineMs } = ctx;
      const isLate = deadlineMs !== undefined && monotonicNow() >= deadlineMs;
      return (isLate ? this.#refusals.refuse(path, 'deadline') : undefined) ?? handler(ctx, input);
    };
  }

  close(): void {
    this.#limits?.close();
  }
}
