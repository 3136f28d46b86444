/*
 * The environment variables of OpenTelemetry that configure the export.
 * Spec: OpenTelemetry, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter".
 */

import { builtin } from '../base/builtin.js';
import { MAX_TIMEOUT_MS } from '../base/deadline.js';
import { show } from '../base/options-check.js';
import { isSampled, type Sampler } from '../propagation/trace-context.js';
import type { Form } from '../payload/protobuf.js';

const { validateHeaderName, validateHeaderValue } = builtin('node:http');

/** A kind of telemetry. */
export type Signal = 'traces' | 'logs' | 'metrics';

/** The export of one signal. */
export interface SignalSettings {
  readonly signal: Signal;
  readonly url: URL;
  readonly form: Form;
  readonly headers: Readonly<Record<string, string>>;
  /** Time limit of the export of one batch, repetitions included. */
  readonly timeoutMs: number;
  readonly isCompressed: boolean;
  readonly maxQueueSize: number;
  readonly maxBatchSize: number;
  readonly delayMs: number;
}

/** Signals to export, and facts that they share. */
export interface ExportSettings {
  readonly signals: readonly SignalSettings[];
  /** Attributes, which override those that the exporter sets. */
  readonly resource: Readonly<Record<string, string>>;
  readonly sample: Sampler;
  /** How often metrics are exported. */
  readonly intervalMs: number;
}

/** The values of variables that are there for all signals and for each. */
type Target = Pick<SignalSettings, 'url' | 'headers' | 'timeoutMs'> & Record<'protocol' | 'compression', string>;

/** Begins the names of the variables for all signals. */
const ALL = 'OTEL_EXPORTER_OTLP';
const DEFAULTS: Target = {
  url: new URL('http://localhost:4318'), protocol: 'http/protobuf', headers: {}, timeoutMs: 10_000, compression: 'none',
};
const SIGNALS: readonly Signal[] = ['traces', 'logs', 'metrics'];
const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap((root) => [`parentbased_${root}`, root]);
const PROTOCOLS = ['http/protobuf', 'http/json', 'grpc'];

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
  const readName = (variable: string, names: readonly string[], fallback = names[0] ?? ''): string =>
    read(variable, fallback, names.join(', '), (text) => names.find((name) => name === text.toLowerCase()));
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

  const readTarget = (prefix: string, base: Target): Target => ({
    url: readUrl(`${prefix}_ENDPOINT`, base.url),
    protocol: readName(`${prefix}_PROTOCOL`, PROTOCOLS, base.protocol),
    headers: { ...base.headers, ...readPairs(`${prefix}_HEADERS`) },
    timeoutMs: readNumber(`${prefix}_TIMEOUT`, base.timeoutMs, 0),
    compression: readName(`${prefix}_COMPRESSION`, ['none', 'gzip'], base.compression),
  });

  const isDisabled = readName('OTEL_SDK_DISABLED', ['false', 'true']) === 'true';
  const wanted = SIGNALS.filter((signal) => {
    const hasEndpoint = [ALL, `${ALL}_${signal.toUpperCase()}`].some((prefix) => textOf(`${prefix}_ENDPOINT`) !== '');
    if (isDisabled || !hasEndpoint) return false;
    return readName(`OTEL_${signal.toUpperCase()}_EXPORTER`, ['otlp', 'none']) === 'otlp';
  });
  if (wanted.length === 0) return undefined;
  const base = readTarget(ALL, DEFAULTS);
  const maxQueueSize = readNumber('OTEL_BSP_MAX_QUEUE_SIZE', 2048, 1);
  const maxBatchSize = Math.min(maxQueueSize, readNumber('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 1));
  const delayMs = readNumber('OTEL_BSP_SCHEDULE_DELAY', 5000, 0);
  const unsupported = new Map<string, Signal[]>();
  const signals = wanted.flatMap((signal) => {
    const url = new URL(base.url);
    url.pathname = url.pathname.replace(/\/?$/, `/v1/${signal}`);
    const prefix = `${ALL}_${signal.toUpperCase()}`;
    const { protocol, compression, timeoutMs, ...target } = readTarget(prefix, { ...base, url });
    if (protocol === 'grpc') {
      const variable = `${textOf(`${prefix}_PROTOCOL`) === '' ? ALL : prefix}_PROTOCOL`;
      unsupported.set(variable, [...(unsupported.get(variable) ?? []), signal]);
      return [];
    }
    const form: Form = protocol === 'http/json' ? 'json' : 'protobuf';
    // 0: no limit (Environment Variable Specification, "Timeout").
    const limits = { timeoutMs: timeoutMs || MAX_TIMEOUT_MS, maxQueueSize, maxBatchSize, delayMs };
    return [{ signal, form, isCompressed: compression === 'gzip', ...target, ...limits }];
  });
  for (const [variable, of] of unsupported)
    warn(`${variable} is "grpc", so no ${of.join(', ')} are exported; give http/protobuf or http/json`);
  // With another temporality, each export would have to remember the one before it.
  readName('OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE', ['cumulative']);
  const ratio = readNumber('OTEL_TRACES_SAMPLER_ARG', 1, 0, 1);
  const name = textOf('OTEL_SERVICE_NAME');
  return {
    signals,
    resource: { ...readPairs('OTEL_RESOURCE_ATTRIBUTES'), ...(name === '' ? {} : { 'service.name': name }) },
    sample: createSampler(readName('OTEL_TRACES_SAMPLER', SAMPLERS), ratio),
    intervalMs: readNumber('OTEL_METRIC_EXPORT_INTERVAL', 60_000, 1),
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

function createSampler(name: string, ratio: number): Sampler {
  if (name === 'parentbased_always_on') return undefined;
  const root = name.replace('parentbased_', '');
  const share = root === 'traceidratio' ? ratio : Number(root === 'always_on');
  return (span) =>
    root !== name && span.parentId !== undefined ? isSampled(span) : span.chance >= (1 - share) * 2 ** 48;
}
