/*
 * The requests of a pipeline that have no complete reply yet.
 */

import { Bag } from '../base/bag.js';
import type { PipelineExchange } from './exchange.js';

/** How many there are, and which of them wait. */
export class InFlight {
  count = 0;
  /** What waits for a promise or a stream. */
  readonly waiting: Bag<PipelineExchange> = new Bag();
  #whenIdle: (() => void)[] = [];

  /** The request waits for a promise or a stream from now on. */
  wait(exchange: PipelineExchange): void {
    exchange.place ??= this.waiting.add(exchange);
  }

  /** The request is over. */
  end(exchange: PipelineExchange): void {
    this.count -= 1;
    if (exchange.place !== null) this.waiting.delete(exchange.place);
    if (this.count === 0 && this.#whenIdle.length > 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  /** Resolves as soon as there is none. */
  idle(): Promise<void> {
    if (this.count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }
}
