/**
 * Picks the exposition format and the encoding that a scraper prefers; both in time linear to the header.
 *
 * Spec: RFC 9110, sections 12.4.2 (quality values), 12.5.1 (`Accept`) and 12.5.3 (`Accept-Encoding`);
 * Prometheus, "Scrape protocol content negotiation".
 */
import type { Format } from '../metrics/format.js';
import { parseList } from '../payload/accept.js';

/**
 * OpenMetrics if `accept` prefers it to text, else text, which is also for whoever accepts neither.
 *
 * Of two that are equally welcome the one named more exactly wins, then the one named first.
 */
export function negotiateFormat(accept: string | undefined): Format {
  if (accept === undefined) return 'text';
  let openMetrics: Preference = UNWANTED;
  let text: Preference = UNWANTED;
  let index = 0;
  for (const { name, parameters, quality } of parseList(accept)) {
    const preference = { quality, precision: precisionOf(name), index: (index += 1) };
    const version = parameters.get('version');
    if (matches(name, 'application/openmetrics-text') && OPENMETRICS_VERSIONS.has(version))
      openMetrics = better(openMetrics, preference);
    if (matches(name, 'text/plain') && TEXT_VERSIONS.has(version)) text = better(text, preference);
  }
  return openMetrics.quality > 0 && isPreferred(openMetrics, text) ? 'openmetrics' : 'text';
}

/** Whether `acceptEncoding` names gzip, and doesn't prefer the plain text. */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  let gzip = 0;
  let identity = 0;
  for (const { name, quality } of parseList(acceptEncoding)) {
    if (name === 'gzip' || name === 'x-gzip') gzip = Math.max(gzip, quality);
    else if (name === 'identity') identity = quality;
  }
  return gzip > 0 && gzip >= identity;
}

interface Preference {
  readonly quality: number;
  /** 2 for a full name, 1 for `type/*`, 0 for everything. */
  readonly precision: number;
  readonly index: number;
}

const UNWANTED: Preference = { quality: 0, precision: -1, index: Infinity };
/** Prometheus still asks for 0.0.1, and reads 1.0.0 when it does. */
const OPENMETRICS_VERSIONS: ReadonlySet<string | undefined> = new Set([undefined, '1.0.0', '0.0.1']);
const TEXT_VERSIONS: ReadonlySet<string | undefined> = new Set([undefined, '0.0.4']);

function precisionOf(range: string): number {
  return range === '*/*' ? 0 : range.endsWith('/*') ? 1 : 2;
}

function matches(range: string, type: string): boolean {
  return range === '*/*' || range === type || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)));
}

/** The most exact range decides about a type; of several that are as exact, the most welcome one. */
function better(current: Preference, next: Preference): Preference {
  if (next.precision !== current.precision) return next.precision > current.precision ? next : current;
  return next.quality > current.quality ? next : current;
}

function isPreferred(a: Preference, b: Preference): boolean {
  if (a.quality !== b.quality) return a.quality > b.quality;
  return a.precision !== b.precision ? a.precision > b.precision : a.index < b.index;
}
