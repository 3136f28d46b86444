/*
 * The environment variables of OpenTelemetry that configure the export of traces.
 * Spec: OpenTelemetry, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter".
 */

import { builtin } from '../base/builtin.js';
import { MAX_TIMEOUT_MS } from '../base/deadline.js';
import { show } from '../base/options-check.js';
import { isSampled, type TraceSpan } from '../propagation/trace-context.js';

const { validateHeaderName, validateHeaderValue } = builtin('node:http');

/** Where spans are sent, which of them, and how. */
export interface ExportSettings {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Time limit of the export of one batch, repetitions included. */
  readonly timeoutMs: number;
  /** Attributes, which override those that the exporter sets. */
  readonly resource: Readonly<Record<string, string>>;
  /** Whether a trace is recorded. Undefined: as the caller decided; a trace that begins here is recorded. */
  readonly sample: ((trace: TraceSpan) => boolean) | undefined;
  readonly maxQueueSize: number;
  readonly maxBatchSize: number;
  readonly delayMs: number;
}

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap((root) => [`parentbased_${root}`, root]);

/**
 * Reads the variables; an empty variable is ignored, and an invalid one as well, after a warning.
 *
 * @returns undefined if nothing must be exported
 */
export function readVariables(env: NodeJS.ProcessEnv, warn: (message: string) => void): ExportSettings | undefined {
  const textOf = (variable: string): string => env[variable]?.trim() ?? '';
  /** @param parse returns undefined or throws for an invalid text */
  const read = <T>(variable: string, fallback: T, give: string, parse: (text: string) => T | undefined): T => {
    const text = textOf(variable);
    try {
      const value = text === '' ? fallback : parse(text);
      if (value !== undefined) return value;
    } catch {
      // Invalid, too.
    }
    // Headers hold secrets, and so does a URL with a password.
    const shown = variable.endsWith('_HEADERS') || /:.*@/.test(text) ? 'invalid' : show(text);
    warn(`${variable} is ${shown} and is ignored; give ${give}`);
    return fallback;
  };
  /** @param names the first one is the default */
  const readName = (variable: string, names: readonly string[]): string =>
    read(variable, names[0] ?? '', names.join(', '), (text) => names.find((name) => name === text.toLowerCase()));
  const readNumber = (variable: string, fallback: number, least: number, most = MAX_TIMEOUT_MS): number =>
    read(variable, fallback, `a number from ${least} to ${most}`, (text) => {
      const isValid = (most === 1 || /^\d+$/.test(text)) && Number(text) >= least && Number(text) <= most;
      return isValid ? Number(text) : undefined;
    });
  const readUrl = (variable: string, fallback: URL): URL =>
    read(variable, fallback, 'an http or https URL', (text) => {
      const url = new URL(text);
      // Throws for what node:http could not decode.
      decodeURIComponent(`${url.username}:${url.password}`);
      return /^https?:$/.test(url.protocol) ? url : undefined;
    });
  const readPairs = (variable: string): Record<string, string> =>
    read(variable, {}, 'name=value,name=value, percent-encoded', (text) => toPairs(text, variable.endsWith('_HEADERS')));

  if (readName('OTEL_SDK_DISABLED', ['false', 'true']) === 'true') return undefined;
  if (readName('OTEL_TRACES_EXPORTER', ['otlp', 'none']) === 'none') return undefined;
  const protocols = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];
  const protocol = protocols.find((variable) => textOf(variable) !== '');
  if (protocol !== undefined && textOf(protocol) !== 'http/json') {
    warn(`${protocol} is ${show(textOf(protocol))}, so no traces are exported; give http/json`);
    return undefined;
  }
  const base = readUrl('OTEL_EXPORTER_OTLP_ENDPOINT', new URL('http://localhost:4318'));
  base.pathname = base.pathname.replace(/\/?$/, '/v1/traces');
  const timeoutMs = readNumber('OTEL_EXPORTER_OTLP_TIMEOUT', 10_000, 0);
  const maxQueueSize = readNumber('OTEL_BSP_MAX_QUEUE_SIZE', 2048, 1);
  const ratio = readNumber('OTEL_TRACES_SAMPLER_ARG', 1, 0, 1);
  const name = textOf('OTEL_SERVICE_NAME');
  return {
    url: readUrl('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', base),
    headers: { ...readPairs('OTEL_EXPORTER_OTLP_HEADERS'), ...readPairs('OTEL_EXPORTER_OTLP_TRACES_HEADERS') },
    // 0: no limit (Environment Variable Specification, "Timeout").
    timeoutMs: readNumber('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', timeoutMs, 0) || MAX_TIMEOUT_MS,
    resource: { ...readPairs('OTEL_RESOURCE_ATTRIBUTES'), ...(name === '' ? {} : { 'service.name': name }) },
    sample: createSampler(readName('OTEL_TRACES_SAMPLER', SAMPLERS), ratio),
    maxQueueSize,
    maxBatchSize: Math.min(maxQueueSize, readNumber('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 1)),
    delayMs: readNumber('OTEL_BSP_SCHEDULE_DELAY', 5000, 0),
  };
}

/** @throws {Error} for a text that is not `name=value,name=value`, percent-encoded, and for what no header can have */
function toPairs(text: string, areHeaders: boolean): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const entry of text.split(',').filter((part) => part.trim() !== '')) {
    const [name, value] = entry.split(/=(.*)/s, 2).map((part) => decodeURIComponent(part.trim()));
    if (!name || value === undefined) throw new TypeError('not a pair');
    if (areHeaders) validateHeaderName(name);
    if (areHeaders) validateHeaderValue(name, value);
    pairs[name] = value;
  }
  return pairs;
}

function createSampler(name: string, ratio: number): ExportSettings['sample'] {
  if (name === 'parentbased_always_on') return undefined;
  const root = name.replace('parentbased_', '');
  const share = root === 'traceidratio' ? ratio : Number(root === 'always_on');
  return (trace) => {
    if (root !== name && trace.parentId !== undefined) return isSampled(trace);
    // The last 14 digits are random in every trace id (W3C Trace Context, level 2), so all services decide alike. A
    // number holds 13 of them.
    return Number.parseInt(trace.traceId.slice(18, 31), 16) >= (1 - share) * 2 ** 52;
  };
}
