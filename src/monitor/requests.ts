/* The endpoint that says what is in flight, and what failed or was slow lately. Only the `monitor` listener has it. */

import type { Context } from '../answer/context.js';
import { summarize, type RequestSummary } from '../answer/story.js';
import { monotonicNow } from '../base/clock.js';
import type { FailureCount, RecentRequest, Story, StoryEvent } from '../story/story.js';
import type { Exchange } from '../wire/exchange.js';

/** A request without its reply. */
interface ActiveRequest extends RequestSummary {
  readonly age_ms: number;
}

/** The document of the endpoint. */
export interface RequestsDocument {
  /** Requests in flight, oldest first; at most 200. */
  readonly active: ActiveRequest[];
  /** The last 50 requests that failed or were slow, oldest first. */
  readonly recent: readonly RecentRequest[];
  /** How often each kind of failure happened in the last 15 minutes, most frequent first; at most 100 kinds. */
  readonly counts: readonly FailureCount[];
  /** The last 100 warnings and errors of the framework, oldest first. */
  readonly events: readonly StoryEvent[];
}

const MAX_ACTIVE = 200;

/** @param exchanges in the order in which they began */
export function createRequests(story: Story, exchanges: ReadonlySet<Exchange<Context>>): () => RequestsDocument {
  return () => {
    const active: ActiveRequest[] = [];
    for (const { handling, startedAtMs } of exchanges) {
      if (active.length === MAX_ACTIVE) break;
      if (handling !== null)
        active.push({ ...summarize(handling), age_ms: Math.round(monotonicNow() - startedAtMs) });
    }
    // Copies: middleware may change the reply.
    return { active, recent: [...story.recent], counts: story.counts, events: [...story.events] };
  };
}
