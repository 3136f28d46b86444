/*
 * The option `loadShedding`.
 */

import { BOOLEAN, option, wholeNumber, withDefaults, type Kind } from '../base/options-check.js';

/** Limits of the process; while one is exceeded, requests are refused with 503. */
export interface LoadSheddingOptions {
  /** Whether requests are only counted and logged instead of refused. Default: false. */
  observe?: boolean;
  /** Maximum ms that the event loop may be late. Default: 500. */
  maxEventLoopDelay?: number;
  /** Maximum memory of the process, in percent of the cgroup's limit, else of the machine's memory. Default: 95. */
  maxMemoryPercent?: number;
  /** Seconds after which clients may come back, sent as `retry-after`. Default: 1. */
  retryAfter?: number;
}

const OPTIONS = {
  observe: option(BOOLEAN, false),
  maxEventLoopDelay: option(wholeNumber(1), 500),
  maxMemoryPercent: option(wholeNumber(1, 100), 95),
  retryAfter: option(wholeNumber(0), 1),
};

/** An object, or `false`. @internal */
export const LOAD_SHEDDING: Kind = {
  accepts: (value) => value === false || (typeof value === 'object' && value !== null && !Array.isArray(value)),
  give: 'false or an object',
};

/** The option with its defaults. */
export interface LoadShedding extends Readonly<Required<LoadSheddingOptions>> {
  /** Whether the limits of the process apply: they do if the option is an object. */
  readonly limitsProcess: boolean;
}

/**
 * Checks the option `loadShedding`, and fills in its defaults.
 *
 * @returns null if nothing may be refused
 * @throws {TypeError} if a member is invalid
 *
 * @internal
 */
export function resolveLoadShedding(given: LoadSheddingOptions | false | undefined): LoadShedding | null {
  if (given === false) return null;
  const options = withDefaults<LoadSheddingOptions, typeof OPTIONS>('loadShedding', given ?? {}, OPTIONS);
  return { ...options, limitsProcess: given !== undefined };
}
