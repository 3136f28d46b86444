/**
 * One garbage collection, as `node:perf_hooks` and V8's profiler tell of it.
 */

/** A performance entry of type `gc`; both times in milliseconds. */
export interface Collection {
  readonly startTime: number;
  readonly duration: number;
  /** `kind` is one of V8's `GCType`. */
  readonly detail?: unknown;
}

/** prom-client's names. */
export type CollectionKind = 'major' | 'minor' | 'incremental' | 'weakcb';
/** 0 is a scavenge, 1 an incremental step or minor mark-sweep, 2 a mark-compact. */
export type Generation = '0' | '1' | '2';

export interface CollectionType {
  readonly kind: CollectionKind;
  /** Weak callbacks have none: they free nothing themselves. */
  readonly generation?: Generation;
}

const SCAVENGE: CollectionType = { kind: 'minor', generation: '0' };
const MINOR_MARK: CollectionType = { kind: 'minor', generation: '1' };
export const INCREMENTAL: CollectionType = { kind: 'incremental', generation: '1' };
export const MARK_COMPACT: CollectionType = { kind: 'major', generation: '2' };
const WEAK_CALLBACKS: CollectionType = { kind: 'weakcb' };

/** By V8's `GCType`, of which `node:perf_hooks` names only some; `undefined` for one that is not known. */
export function typeOfKind({ detail }: Collection): CollectionType | undefined {
  switch ((detail as { readonly kind?: number } | undefined)?.kind) {
    case 1:
      return SCAVENGE;
    case 2:
      return MINOR_MARK;
    case 4:
      return MARK_COMPACT;
    case 8:
      return INCREMENTAL;
    case 16:
      return WEAK_CALLBACKS;
    default:
      return undefined;
  }
}

/** The same as V8's profiler names them. */
export function typeOfName(name: string): CollectionType | undefined {
  switch (name) {
    case 'Scavenge':
      return SCAVENGE;
    case 'MinorMarkCompact':
    case 'MinorMarkSweep':
      return MINOR_MARK;
    case 'MarkSweepCompact':
      return MARK_COMPACT;
    case 'IncrementalMarking':
      return INCREMENTAL;
    case 'ProcessWeakCallbacks':
      return WEAK_CALLBACKS;
    default:
      return undefined;
  }
}
