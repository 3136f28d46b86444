/*
 * Metrics as text, in the format and the encoding that a scraper prefers; both are found in time linear to the header.
 *
 * Spec: RFC 9110, sections 12.4.2 (quality values), 12.5.1 (`Accept`) and 12.5.3 (`Accept-Encoding`);
 * Prometheus, "Scrape protocol content negotiation".
 */

import type { IncomingHttpHeaders } from 'node:http';
import { builtin } from '../base/builtin.js';
import { reply, type Reply } from '../answer/reply.js';
import type { Format } from '../metrics/metric.js';
import type { Registry } from '../metrics/registry.js';
import { parseList, qualityOf } from '../payload/accept.js';

/** The reply to a scrape. */
export async function metricsText(registry: Registry, headers: IncomingHttpHeaders): Promise<Reply> {
  const format = negotiateFormat(headers.accept);
  const bytes = Buffer.from(registry.expose(format));
  const fields = { 'content-type': registry.contentTypeOf(format), vary: 'accept, accept-encoding' };
  if (!acceptsGzip(headers['accept-encoding']?.toString())) return reply(bytes, { headers: fields });
  const zipped = await builtin('node:util').promisify(builtin('node:zlib').gzip)(bytes);
  return reply(zipped, { headers: { ...fields, 'content-encoding': 'gzip' } });
}

/**
 * OpenMetrics if `accept` prefers it to text, else text, also for a client that accepts neither.
 *
 * Between formats of equal quality, the one named more exactly wins, then the one named first.
 */
export function negotiateFormat(accept = ''): Format {
  // Prometheus still asks for 0.0.1, and reads 1.0.0 when it does.
  const openMetrics = preferenceFor(accept, 'application', 'openmetrics-text', ['1.0.0', '0.0.1']);
  const text = preferenceFor(accept, 'text', 'plain', ['0.0.4']);
  const advantage =
    openMetrics.quality - text.quality || openMetrics.precision - text.precision || text.index - openMetrics.index;
  return openMetrics.quality > 0 && advantage > 0 ? 'openmetrics' : 'text';
}

/** Whether `acceptEncoding` names gzip, and doesn't prefer the plain text. */
export function acceptsGzip(acceptEncoding = ''): boolean {
  const gzip = qualityOf(acceptEncoding, 'gzip', 'x-gzip');
  return gzip > 0 && gzip >= qualityOf(acceptEncoding, 'identity');
}

interface Preference {
  readonly quality: number;
  /** 2 for a full name, 1 for `type/*`, 0 for everything. */
  readonly precision: number;
  readonly index: number;
}

/** The most exact range decides about a type; of several that are as exact, the one with the highest quality. */
function preferenceFor(accept: string, type: string, subtype: string, versions: readonly string[]): Preference {
  const ranges = ['*/*', `${type}/*`, `${type}/${subtype}`];
  let best: Preference = { quality: 0, precision: -1, index: Infinity };
  let index = 0;
  for (const { name, parameters, quality } of parseList(accept)) {
    index += 1;
    const precision = ranges.indexOf(name);
    const version = parameters.get('version');
    if (precision === -1 || (version !== undefined && !versions.includes(version))) continue;
    if (precision > best.precision || (precision === best.precision && quality > best.quality))
      best = { quality, precision, index };
  }
  return best;
}
