/*
 * The environment variables of OpenTelemetry that configure the export of traces.
 *
 * Spec: OpenTelemetry, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter".
 */

import { show } from '../base/options-check.js';
import { isSampled, type TraceSpan } from '../propagation/trace-context.js';

/** Where spans are sent, which of them, and how. */
export interface ExportSettings {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Time limit of the export of one batch, repetitions included. */
  readonly timeoutMs: number;
  /** Attributes, which override those that the exporter sets. */
  readonly resource: ReadonlyMap<string, string>;
  /** Whether a request's trace is recorded. */
  readonly sample: (trace: TraceSpan) => boolean;
  readonly maxQueueSize: number;
  readonly maxBatchSize: number;
  readonly delayMs: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MAX_WHOLE = 2 ** 31 - 1;

/**
 * Reads the variables; an empty variable is ignored, and an invalid one as well, after a warning.
 *
 * @returns undefined if nothing must be exported
 */
export function readVariables(
  env: Environment,
  warn: (message: string) => void,
): ExportSettings | undefined {
  /** The first valid one of the variables. @param parse returns undefined for an invalid text */
  const read = <T>(variables: string[], give: string, parse: (text: string) => T | undefined): T | undefined => {
    for (const variable of variables) {
      const text = env[variable]?.trim() ?? '';
      const value = text === '' ? undefined : parse(text);
      if (value !== undefined) return value;
      if (text !== '') warn(`${variable} is ${show(text)} and is ignored; give ${give}`);
    }
    return undefined;
  };
  const readWhole = (variables: string[], least: number): number | undefined =>
    read(variables, `a whole number of ${least} or more`, (text) => {
      const value = /^\d+$/.test(text) ? Number(text) : NaN;
      return value >= least && value <= MAX_WHOLE ? value : undefined;
    });
  const readPairs = (variable: string, isValid: (name: string, value: string) => boolean): [string, string][] =>
    // The message must not contain the value: headers hold secrets.
    parsePairs(env[variable] ?? '', isValid) ??
    (warn(`${variable} is invalid and is ignored; give name=value,name=value, percent-encoded`), []);

  if (read(['OTEL_SDK_DISABLED'], 'true or false', toBoolean) === true) return undefined;
  if (read(['OTEL_TRACES_EXPORTER'], 'otlp or none', (text) => /^(?:otlp|none)$/.exec(text)?.[0]) === 'none')
    return undefined;
  for (const variable of ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL']) {
    const protocol = env[variable]?.trim() || undefined;
    if (protocol === 'http/json') break;
    if (protocol === undefined) continue;
    warn(`${variable} is ${show(protocol)}, so no traces are exported; give http/json`);
    return undefined;
  }
  const give = 'an http or https URL';
  const maxQueueSize = readWhole(['OTEL_BSP_MAX_QUEUE_SIZE'], 1) ?? 2048;
  const ratio = read(['OTEL_TRACES_SAMPLER_ARG'], 'a number from 0 to 1', toRatio) ?? 1;
  const attributes = new Map(readPairs('OTEL_RESOURCE_ATTRIBUTES', () => true));
  const name = env['OTEL_SERVICE_NAME']?.trim();
  if (name) attributes.set('service.name', name);
  return {
    url:
      read(['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'], give, toUrl) ??
      withPath(read(['OTEL_EXPORTER_OTLP_ENDPOINT'], give, toUrl) ?? new URL('http://localhost:4318')),
    headers: Object.fromEntries([
      ...readPairs('OTEL_EXPORTER_OTLP_HEADERS', isHeader),
      ...readPairs('OTEL_EXPORTER_OTLP_TRACES_HEADERS', isHeader),
    ]),
    timeoutMs: readWhole(['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', 'OTEL_EXPORTER_OTLP_TIMEOUT'], 1) ?? 10_000,
    resource: attributes,
    sample:
      read(['OTEL_TRACES_SAMPLER'], '[parentbased_]always_on, always_off or traceidratio', (text) =>
        toSampler(text, ratio),
      ) ?? (toSampler('parentbased_always_on', 1) as ExportSettings['sample']),
    maxQueueSize,
    maxBatchSize: Math.min(maxQueueSize, readWhole(['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'], 1) ?? 512),
    delayMs: readWhole(['OTEL_BSP_SCHEDULE_DELAY'], 0) ?? 5000,
  };
}

function toBoolean(text: string): boolean | undefined {
  return /^(?:true|false)$/i.test(text) ? text.toLowerCase() === 'true' : undefined;
}

function toRatio(text: string): number | undefined {
  const ratio = Number(text);
  return ratio >= 0 && ratio <= 1 ? ratio : undefined;
}

function toUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}

/** Appends the path for traces to the URL for all signals. */
function withPath(url: URL): URL {
  const traces = new URL(url);
  traces.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return traces;
}

function isHeader(name: string, value: string): boolean {
  return TOKEN.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}

/** Undefined for a text that is not `name=value,name=value`, percent-encoded. */
function parsePairs(text: string, isValid: (name: string, value: string) => boolean): [string, string][] | undefined {
  try {
    const entries = text.split(',').filter((entry) => entry.trim() !== '');
    const pairs = entries.map((entry): [string, string] => {
      const [, name = '', value = ''] = /^\s*([^=]*?)\s*=\s*(.*?)\s*$/.exec(entry) ?? [];
      return [decodeURIComponent(name), decodeURIComponent(value)];
    });
    return pairs.every(([name, value]) => name !== '' && isValid(name, value)) ? pairs : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined for an unknown name. */
function toSampler(name: string, ratio: number): ExportSettings['sample'] | undefined {
  const [, parentBased, root] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (root === undefined) return undefined;
  const share = root === 'always_on' ? 1 : root === 'always_off' ? 0 : ratio;
  // The 56 rightmost bits are random in every trace id (W3C Trace Context, level 2), so all services decide alike.
  const sampleRoot = ({ traceId }: TraceSpan): boolean => Number.parseInt(traceId.slice(18), 16) / 2 ** 56 >= 1 - share;
  return (trace) =>
    parentBased !== undefined && trace.parentId !== undefined ? isSampled(trace) : share > 0 && sampleRoot(trace);
}
