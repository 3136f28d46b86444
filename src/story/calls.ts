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

/** The header of a reply that has the calls of its request, as JSON. */
export const CALLS_HEADER = 'x-postern-calls';

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
  const ranked = rank(calls);
  let bytes = 2 + ranked.reduce((sum, { bytes }) => sum + bytes, 0);
  const dropped = new Set<CallTuple>();
  for (const { call, bytes: own } of ranked) {
    if (bytes <= MAX_BYTES) break;
    dropped.add(call);
    bytes -= own;
  }
  const keep = (list: readonly CallTuple[]): unknown[] =>
    list.filter((call) => !dropped.has(call)).map((call) => [...call.slice(0, 6), keep(call[6])]);
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
export function leafOf(calls: readonly CallTuple[], hasFailed: boolean, ms: number): CallTuple | undefined {
  const culprit = hasFailed
    ? calls.findLast(isFailed)
    : calls.reduce<CallTuple | undefined>((max, call) => (call[4] > (max?.[4] ?? ms / 2) ? call : max), undefined);
  return culprit && (leafOf(culprit[6], isFailed(culprit), culprit[4]) ?? culprit);
}

/** Whether a call failed by a fault that is not the caller's. */
export function isFailed([, , , status]: CallTuple): boolean {
  return status >= 500 || status === 0;
}

/** A call that failed weighs more than any that did not. */
function weightOf(call: CallTuple): number {
  return isFailed(call) ? MAX_MS + call[4] : call[4];
}

interface Ranked {
  readonly call: CallTuple;
  /** Length of the call without the calls below it, with a comma. */
  readonly bytes: number;
  readonly hasFailed: boolean;
  readonly ms: number;
  readonly depth: number;
}

/** All calls of a tree, those to leave out first at the begin: a call comes after every call below it. */
function rank(calls: readonly CallTuple[]): Ranked[] {
  const all: Ranked[] = [];
  const visit = (call: CallTuple, depth: number): Ranked => {
    const below = call[6].map((each) => visit(each, depth + 1));
    const bytes = toAscii([...call.slice(0, 6), []]).length + 1;
    const hasFailed = isFailed(call) || below.some((each) => each.hasFailed);
    const ranked = { call, bytes, hasFailed, ms: Math.max(call[4], ...below.map(({ ms }) => ms)), depth };
    all.push(ranked);
    return ranked;
  };
  for (const call of calls) visit(call, 1);
  return all.sort((a, b) => Number(a.hasFailed) - Number(b.hasFailed) || a.ms - b.ms || b.depth - a.depth);
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
