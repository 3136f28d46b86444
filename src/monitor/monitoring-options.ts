/* The options about what the monitoring endpoints serve. */

import { assertOptions, converted, isRecord, LIST, option, wholeNumber } from '../base/options-check.js';
import type { Kinds, OptionTable, Resolved } from '../base/options-check.js';
import { DEFAULT_BUCKETS, toBounds } from '../metrics/histogram.js';

/** Limits of pings, buckets of durations, and who may look into the process. */
export interface MonitoringOptions {
  /** Maximum `depth` of a ping. Default: 5. */
  maxPingDepth?: number | undefined;
  /** Maximum time of a ping, in ms, for each level of depth. Default: 1,000. */
  pingTimeout?: number | undefined;
  /**
   * Buckets of the durations of requests and of calls to other services: upper bounds in seconds, ascending. Default: 5
   * ms to 10 s.
   */
  durationBuckets?: readonly number[] | undefined;
  /**
   * Whether the process may be looked into: `POST /<name>/profile/` on the `monitor` listener, and a warning that names
   * the function which blocks the event loop for more than 300 ms (some 9 MiB). `{ token }` also lets others than
   * loopback peers ask for profiles, with `Authorization: Bearer`. Default: false.
   */
  diagnostics?: boolean | DiagnosticsOptions | undefined;
}

/** @internal */
export const MONITORING = {
  maxPingDepth: option(wholeNumber(0), 5),
  pingTimeout: option(wholeNumber(1), 1_000),
  durationBuckets: converted(LIST, toDurationBuckets),
  diagnostics: converted(
    { accepts: (value) => typeof value === 'boolean' || isRecord(value), give: 'true, false or an object' },
    toDiagnostics,
  ),
} satisfies OptionTable<MonitoringOptions>;

/** The values in use. @internal */
export interface MonitoringSettings extends Resolved<typeof MONITORING> {}

/** The option `diagnostics`. */
export interface DiagnosticsOptions {
  /** A secret, with which others than loopback peers may ask for profiles. Default: they may not. */
  token?: string | undefined;
}

const DIAGNOSTICS: Kinds<DiagnosticsOptions> = {
  token: { accepts: (value) => typeof value === 'string' && value !== '', give: 'a text that is not empty' },
};

/** @returns null if it is off */
function toDiagnostics(given: boolean | DiagnosticsOptions = false): DiagnosticsOptions | null {
  if (typeof given === 'boolean') return given ? {} : null;
  assertOptions('diagnostics', given, DIAGNOSTICS);
  return given;
}

/** Checks buckets as a histogram does, but throws a `TypeError`, as for other options. */
function toDurationBuckets(buckets: readonly number[] = DEFAULT_BUCKETS): readonly number[] {
  try {
    return toBounds(buckets, 'durationBuckets');
  } catch (error) {
    throw error instanceof RangeError ? new TypeError(error.message) : error;
  }
}
