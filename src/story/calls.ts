/*
 * The calls that were made for one request, and the calls below them: what a failing reply says about its cause.
 *
 * Each service adds its own calls to those in the answers that it got, and sends them up with its reply. So the story
 * needs no store, and arrives through any balancer.
 */

/** One attempt of a call. The route is the path pattern of a typed call, else empty; `ms` is its duration. */
export type CallTuple = [
  service: string,
  method: string,
  route: string,
  status: number,
  ms: number,
  errorCode: string | null,
  calls: CallTuple[],
];

/** A request or a job, which makes calls. */
export interface CallMaker {
  /** The attempts so far; null or missing before the first one. */
  calls?: CallTuple[] | null;
}

/** The end of a request, with the calls that were made for it. */
export interface Outcome {
  readonly status: number;
  readonly ms: number;
  readonly calls: readonly CallTuple[];
}

const MAX_CALLS = 32;
const MAX_BYTES = 2048;
const MAX_DEPTH = 8;
const MAX_MS = 1e9;
const SERVICE = /^[A-Za-z0-9._~-]{1,128}$/;
const METHOD = /^[A-Z-]{1,32}$/;
/** Names of codes are another service's text: what does not look like a name is left out. */
const CODE = /^[\w.~-]{1,64}$/;
const ROUTE = /^[^\x00-\x1f\x7f]{0,512}$/;

/** Adds an attempt. Of more than 32 the slowest and the failed ones are kept. */
export function noteCall(by: CallMaker, call: CallTuple): void {
  const calls = (by.calls ??= []);
  if (call[5] !== null && !CODE.test(call[5])) call[5] = null;
  calls.push(call);
  if (calls.length <= MAX_CALLS) return;
  const least = calls.reduce((a, b) => (weightOf(b) < weightOf(a) ? b : a));
  calls.splice(calls.indexOf(least), 1);
}

/**
 * The value of the header: compact JSON in ASCII. Of what does not fit the quickest calls are left out first, and calls
 * that failed last, so that the cause stays.
 */
export function formatCalls(calls: readonly CallTuple[]): string {
  const weights = new Map<CallTuple, number>();
  for (const call of calls) weigh(call, weights);
  const kept = new Set<CallTuple>();
  let bytes = 2;
  for (const [call] of [...weights].sort(([, a], [, b]) => b - a)) {
    // The calls below it have their own bytes; a comma follows.
    bytes += toAscii([...call.slice(0, 6), []]).length + 1;
    if (bytes > MAX_BYTES) break;
    kept.add(call);
  }
  const keep = (list: readonly CallTuple[]): unknown[] =>
    list.filter((call) => kept.has(call)).map((call) => [...call.slice(0, 6), keep(call[6])]);
  return toAscii(keep(calls));
}

/** Reads the header of an answer. What is malformed, or deeper than 8 levels, is left out. */
export function parseCalls(text: string | undefined): CallTuple[] {
  if (text === undefined || text.length > MAX_BYTES) return [];
  try {
    return readCalls(JSON.parse(text), 1);
  } catch {
    return [];
  }
}

/** The call at the end of the failing, or else the slow, path; undefined if no call explains the outcome. */
export function leafOf({ calls, status, ms }: Outcome): CallTuple | undefined {
  const culprit = isFailed(status)
    ? calls.findLast((call) => isFailed(call[3]))
    : calls.reduce<CallTuple | undefined>((max, call) => (call[4] > (max?.[4] ?? ms / 2) ? call : max), undefined);
  return culprit && (leafOf({ calls: culprit[6], status: culprit[3], ms: culprit[4] }) ?? culprit);
}

/** Whether a call failed, and not by its caller's mistake. @param status 0: no answer */
function isFailed(status: number): boolean {
  return status >= 500 || status === 0;
}

/** A call that failed weighs more than any that did not. */
function weightOf(call: CallTuple): number {
  return isFailed(call[3]) ? MAX_MS + call[4] : call[4];
}

/** Weighs a call as the heaviest one of its tree. It comes before the calls below it, so none is kept without it. */
function weigh(call: CallTuple, weights: Map<CallTuple, number>): number {
  weights.set(call, 0);
  const weight = Math.max(weightOf(call), ...call[6].map((each) => weigh(each, weights)));
  weights.set(call, weight);
  return weight;
}

/** Calls of any origin. @param depth of the value; beyond 8 nothing is read */
export function readCalls(value: unknown, depth: number): CallTuple[] {
  if (!Array.isArray(value) || depth > MAX_DEPTH) return [];
  return value.slice(0, MAX_CALLS).flatMap((each: unknown): CallTuple[] => {
    if (!Array.isArray(each)) return [];
    const [service, method, route, status, ms, code, calls] = each as unknown[];
    if (!matches(SERVICE, service) || !matches(METHOD, method) || !matches(ROUTE, route)) return [];
    if (!isCount(status, 599) || !isCount(ms, MAX_MS) || !(code === null || matches(CODE, code))) return [];
    return [[service, method, route, status, ms, code, readCalls(calls, depth + 1)]];
  });
}

function matches(pattern: RegExp, value: unknown): value is string {
  return typeof value === 'string' && pattern.test(value);
}

function isCount(value: unknown, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max;
}

function toAscii(value: unknown): string {
  const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, escape);
}
