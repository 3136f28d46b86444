/*
 * One garbage collection, as `node:perf_hooks` and V8's profiler tell of it.
 */

/** A performance entry of type `gc`; both times in milliseconds. */
export interface Collection {
  readonly startTime: number;
  readonly duration: number;
  /** `kind` is one of V8's `GCType`. */
  readonly detail?: unknown;
}

/** V8's `GCType`, as `node:perf_hooks` gives it, though it names only some. */
export type CollectionType = number;
export const MARK_COMPACT: CollectionType = 4;
export const INCREMENTAL: CollectionType = 8;

/** prom-client's names. */
export type CollectionKind = 'major' | 'minor' | 'incremental' | 'weakcb';
/** 0 is a scavenge, 1 an incremental step or minor mark-sweep, 2 a mark-compact. */
export type Generation = '0' | '1' | '2';

/** What prom-client calls each type. */
export const KINDS: Readonly<Record<CollectionType, CollectionKind>> = {
  1: 'minor',
  2: 'minor',
  4: 'major',
  8: 'incremental',
  16: 'weakcb',
};
/** The generation of each type. Weak callbacks have none: they free nothing themselves. */
export const GENERATIONS: Readonly<Record<CollectionType, Generation>> = { 1: '0', 2: '1', 4: '2', 8: '1' };
/** The types by the names that V8's profiler gives them. */
export const NAMED: Readonly<Record<string, CollectionType>> = {
  Scavenge: 1,
  MinorMarkCompact: 2,
  MinorMarkSweep: 2,
  MarkSweepCompact: MARK_COMPACT,
  IncrementalMarking: INCREMENTAL,
  ProcessWeakCallbacks: 16,
};

/** The type of a collection; 0 where its entry does not tell. */
export function typeOf({ detail }: Collection): CollectionType {
  return (detail as { readonly kind?: number } | undefined)?.kind ?? 0;
}
