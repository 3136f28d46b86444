/*
 * The environment variables of OpenTelemetry that configure the export of traces.
 *
 * Spec: OpenTelemetry, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter".
 */

import { validateHeaderName, validateHeaderValue } from 'node:http';
import { MAX_TIMEOUT_MS } from '../base/deadline.js';
import { ANYTHING, oneOf, show, wholeNumber, type Kind } from '../base/options-check.js';
import { isSampled, type TraceSpan } from '../propagation/trace-context.js';

/** Where spans are sent, which of them, and how. */
export interface ExportSettings {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Time limit of the export of one batch, repetitions included. */
  readonly timeoutMs: number;
  /** Attributes, which override those that the exporter sets. */
  readonly resource: Readonly<Record<string, string>>;
  /** Whether a request's trace is recorded. */
  readonly sample: (trace: TraceSpan) => boolean;
  readonly maxQueueSize: number;
  readonly maxBatchSize: number;
  readonly delayMs: number;
}

const COUNT = wholeNumber(1, MAX_TIMEOUT_MS);
const DELAY = wholeNumber(0, MAX_TIMEOUT_MS);
const RATIO: Kind = { accepts: (value) => Number(value) >= 0 && Number(value) <= 1, give: 'a number from 0 to 1' };
const SAMPLER = oneOf(['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]));
const PAIRS: Kind = { ...ANYTHING, give: 'name=value,name=value, percent-encoded' };
const HTTP_URL: Kind = {
  accepts: (value) => value instanceof URL && /^https?:$/.test(value.protocol),
  give: 'an http or https URL',
};

/**
 * Reads the variables; an empty variable is ignored, and an invalid one as well, after a warning.
 *
 * @returns undefined if nothing must be exported
 */
export function readVariables(
  env: Readonly<Record<string, string | undefined>>,
  warn: (message: string) => void,
): ExportSettings | undefined {
  const textOf = (variable: string): string => env[variable]?.trim() ?? '';
  /** @param parse may throw */
  const read = <T>(variable: string, fallback: T, kind: Kind, parse: (text: string) => T): T => {
    const text = textOf(variable);
    if (text === '') return fallback;
    try {
      const value = parse(text);
      if (kind.accepts(value)) return value;
    } catch {
      // Invalid, too.
    }
    // Headers hold secrets.
    const shown = variable.endsWith('_HEADERS') ? 'invalid' : show(text);
    warn(`${variable} is ${shown} and is ignored; give ${kind.give}`);
    return fallback;
  };
  const readName = (variable: string, fallback: string, kind: Kind): string =>
    read(variable, fallback, kind, (text) => text.toLowerCase());

  if (readName('OTEL_SDK_DISABLED', 'false', oneOf(['true', 'false'])) === 'true') return undefined;
  if (readName('OTEL_TRACES_EXPORTER', 'otlp', oneOf(['otlp', 'none'])) === 'none') return undefined;
  const protocols = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];
  const protocol = protocols.find((variable) => textOf(variable) !== '') ?? '';
  if (!['', 'http/json'].includes(textOf(protocol))) {
    warn(`${protocol} is ${show(textOf(protocol))}, so no traces are exported; give http/json`);
    return undefined;
  }
  const readUrl = (variable: string, fallback: URL): URL => read(variable, fallback, HTTP_URL, (text) => new URL(text));
  const base = readUrl('OTEL_EXPORTER_OTLP_ENDPOINT', new URL('http://localhost:4318'));
  base.pathname = base.pathname.replace(/\/?$/, '/v1/traces');
  const timeoutMs = read('OTEL_EXPORTER_OTLP_TIMEOUT', 10_000, COUNT, Number);
  const maxQueueSize = read('OTEL_BSP_MAX_QUEUE_SIZE', 2048, COUNT, Number);
  const ratio = read('OTEL_TRACES_SAMPLER_ARG', 1, RATIO, Number);
  const resource = read('OTEL_RESOURCE_ATTRIBUTES', {}, PAIRS, toPairs);
  const serviceName = textOf('OTEL_SERVICE_NAME');
  return {
    url: readUrl('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', base),
    headers: {
      ...read('OTEL_EXPORTER_OTLP_HEADERS', {}, PAIRS, toHeaders),
      ...read('OTEL_EXPORTER_OTLP_TRACES_HEADERS', {}, PAIRS, toHeaders),
    },
    timeoutMs: read('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', timeoutMs, COUNT, Number),
    resource: serviceName === '' ? resource : { ...resource, 'service.name': serviceName },
    sample: createSampler(readName('OTEL_TRACES_SAMPLER', 'parentbased_always_on', SAMPLER), ratio),
    maxQueueSize,
    maxBatchSize: Math.min(maxQueueSize, read('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, COUNT, Number)),
    delayMs: read('OTEL_BSP_SCHEDULE_DELAY', 5000, DELAY, Number),
  };
}

/** @throws {Error} for a text that is not `name=value,name=value`, percent-encoded */
function toPairs(text: string): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const entry of text.split(',')) {
    const [, name = '', value = ''] = /^\s*([^=]*?)\s*=\s*(.*?)\s*$/.exec(entry) ?? [];
    if (name !== '') pairs[decodeURIComponent(name)] = decodeURIComponent(value);
    else if (entry.trim() !== '') throw new TypeError('a pair has no name');
  }
  return pairs;
}

/** @throws {Error} also for names and values that no header can have */
function toHeaders(text: string): Record<string, string> {
  const headers = toPairs(text);
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  return headers;
}

function createSampler(name: string, ratio: number): ExportSettings['sample'] {
  const root = name.replace('parentbased_', '');
  const share = root === 'traceidratio' ? ratio : Number(root === 'always_on');
  return (trace) => {
    if (root !== name && trace.parentId !== undefined) return isSampled(trace);
    // The last 14 digits are random in every trace id (W3C Trace Context, level 2), so all services decide alike. A
    // number holds 13 of them.
    return Number.parseInt(trace.traceId.slice(18, 31), 16) >= (1 - share) * 2 ** 52;
  };
}
