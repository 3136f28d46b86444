/*
 * Keeps what failed or was slow in an application: the latest requests, how often each kind failed, and the warnings of
 * the framework. Bounded in number and bytes; nothing of it was sent by a client but method, id and the caller's name.
 */

import { Date, monotonicNow, setTimeout } from '../base/clock.js';
import { logSafely, OwnLog, type Logger, type LogLevel } from '../base/log.js';
import { leafOf, type Outcome } from './calls.js';

/** A request that failed or was slow. */
export interface RecentRequest extends Outcome {
  readonly id: string;
  readonly method: string;
  /** As registered; null where no route matched. */
  readonly route: string | null;
  /** The name of the service that sent the request; null for another client. */
  readonly caller: string | null;
  readonly error_code: string | null;
  /** When it ended, ISO 8601. */
  readonly at: string;
}

/** How often one kind of failure happened in the last 15 minutes. */
export interface FailureCount {
  readonly route: string | null;
  readonly status: number;
  readonly error_code: string | null;
  /** The service at the end of the failing calls; the application's own name if none of its calls explains it. */
  readonly service: string;
  readonly times: number;
  readonly first: string;
  readonly last: string;
}

/** A warning or an error of the framework, with the fields that the framework made. */
export interface StoryEvent {
  readonly at: string;
  readonly level: LogLevel;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const MINUTE_MS = 60_000;
/** How long, in ms, a failure counts. */
export const WINDOW_MS = 15 * MINUTE_MS;
const MAX_RECENT = 50;
const MAX_EVENTS = 100;
const MAX_KINDS = 100;
const LINES_PER_SECOND = 10;
/** Fields of log entries whose texts the framework, or the developer, has made. */
const OWN_TEXTS: ReadonlySet<string> = new Set(
  ['caller', 'check', 'file', 'function', 'job', 'log_level', 'method', 'metric', 'route', 'service', 'signal'],
);

/** The story of one application. */
export class Story {
  readonly recent: RecentRequest[] = [];
  readonly events: StoryEvent[] = [];
  /** The framework's own log. */
  readonly log: OwnLog;
  /** Whether a line `request failed` may be written now. Counts it. */
  readonly mayLogFailure: () => boolean;
  /** Whether a line `request slow` may be written now. Counts it. */
  readonly mayLogSlow: () => boolean;
  /** Kinds of failures by minute and key. */
  readonly #minutes = new Map<number, Map<string, FailureCount>>();

  /** @param logger what the application logs to */
  constructor(
    readonly name: string,
    logger: Logger,
  ) {
    this.log = new OwnLog(logger, this.note);
    this.mayLogFailure = limitLines(this.log, 'more requests failed');
    this.mayLogSlow = limitLines(this.log, 'more requests were slow');
  }

  add(request: RecentRequest): void {
    push(this.recent, request, MAX_RECENT);
    const { route, status, error_code, at } = request;
    if (status < 500) return;
    const service = leafOf(request)?.[0] ?? this.name;
    const minute = this.#minute();
    const kinds = this.#minutes.get(minute) ?? new Map<string, FailureCount>();
    this.#minutes.set(minute, kinds);
    count(kinds, { route, status, error_code, service, times: 1, first: at, last: at });
  }

  /** Adds an entry of the framework's log, but not what `recent` has: lines of requests would displace all others. */
  readonly note = (level: LogLevel, entry: object, msg: string): void => {
    if ('status_code' in entry || 'middleware' in entry) return;
    const fields = Object.entries(entry).filter(
      ([name, value]) => typeof value === 'number' || (typeof value === 'string' && OWN_TEXTS.has(name)),
    );
    push(this.events, { at: new Date().toISOString(), level, msg, ...Object.fromEntries(fields) }, MAX_EVENTS);
  };

  get counts(): FailureCount[] {
    this.#minute();
    const kinds = new Map<string, FailureCount>();
    for (const each of this.#minutes.values()) for (const kind of each.values()) count(kinds, kind);
    return [...kinds.values()].sort((a, b) => b.times - a.times);
  }

  /** The present minute; forgets those that are too old. */
  #minute(): number {
    const minute = Math.floor(monotonicNow() / MINUTE_MS);
    for (const old of this.#minutes.keys()) if (old <= minute - WINDOW_MS / MINUTE_MS) this.#minutes.delete(old);
    return minute;
  }
}

/** At most ten lines of one kind a second; one more says how many were left out. */
function limitLines(logger: Logger, message: string): () => boolean {
  /** Lines of the second that began with the first one. */
  let asked = 0;
  const report = (): void => {
    const left_out = asked - LINES_PER_SECOND;
    asked = 0;
    if (left_out > 0) logSafely(logger, 'warn', { left_out }, message);
  };
  return () => {
    if (asked === 0) setTimeout(report, 1000).unref();
    asked += 1;
    return asked <= LINES_PER_SECOND;
  };
}

function push<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max) list.shift();
}

/** Equal for failures of one kind. @param service at the end of the failing calls */
export function kindOf(
  { route, status, error_code }: Pick<FailureCount, 'route' | 'status' | 'error_code'>,
  service: string,
): string {
  return JSON.stringify([route, status, error_code, service]);
}

function count(kinds: Map<string, FailureCount>, kind: FailureCount): void {
  const key = kindOf(kind, kind.service);
  const known = kinds.get(key);
  if (known !== undefined) kinds.set(key, { ...known, times: known.times + kind.times, last: kind.last });
  else if (kinds.size < MAX_KINDS) kinds.set(key, kind);
}
