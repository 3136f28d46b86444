/**
 * Messages of OpenTelemetry's protocol, read with OpenTelemetry's own definitions; what the protocol's specification
 * does not allow is refused.
 */

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

/** A type of the definitions. */
interface Definition {
  decode(bytes: Uint8Array): object;
  encode(message: object): { finish(): Uint8Array };
  fromObject(object: object): object;
  toObject(message: object, options: object): object;
}
export interface AnyValue {
  readonly stringValue?: string;
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values: readonly AnyValue[] };
  readonly kvlistValue?: { readonly values: readonly Attribute[] };
}
export interface Attribute {
  readonly key: string;
  readonly value: AnyValue;
}
export interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly flags: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly droppedAttributesCount?: number;
  readonly status: { readonly code?: number };
  readonly events?: readonly {
    readonly name: string;
    readonly timeUnixNano: string;
    readonly attributes: readonly Attribute[];
  }[];
}
export interface WireRecord {
  readonly timeUnixNano: string;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body?: AnyValue;
  readonly attributes?: readonly Attribute[];
  readonly droppedAttributesCount?: number;
  readonly traceId?: string;
  readonly spanId?: string;
}
export interface WirePoint {
  readonly startTimeUnixNano: string;
  readonly timeUnixNano: string;
  readonly attributes?: readonly Attribute[];
  readonly asDouble?: number | string;
  readonly count?: string;
  readonly sum?: number;
  readonly bucketCounts?: readonly string[];
  readonly explicitBounds?: readonly number[];
  readonly quantileValues?: readonly { readonly quantile: number; readonly value: number }[];
  readonly exemplars?: readonly {
    readonly traceId?: string;
    readonly spanId?: string;
    readonly timeUnixNano: string;
    readonly asDouble: number;
    readonly filteredAttributes?: readonly Attribute[];
  }[];
}
interface WireData {
  readonly dataPoints: readonly WirePoint[];
  readonly aggregationTemporality?: number;
  readonly isMonotonic?: boolean;
}
export interface WireMetric {
  readonly name: string;
  readonly description: string;
  readonly unit?: string;
  readonly gauge?: WireData;
  readonly sum?: WireData;
  readonly histogram?: WireData;
  readonly summary?: WireData;
}
/** A message, whatever its signal: lists are named by position. */
export interface Decoded {
  readonly resource: { readonly attributes: readonly Attribute[] };
  readonly items: readonly object[];
}
export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };

export type Signal = 'traces' | 'logs' | 'metrics';
interface Service {
  readonly v1: Readonly<Record<string, Definition>>;
}
const require = createRequire(import.meta.url);
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js') as {
  opentelemetry: { proto: { collector: Readonly<Record<'trace' | 'logs' | 'metrics', Service>> } };
};
const { trace, logs, metrics } = opentelemetry.proto.collector;
/** For each signal its definition, the names of its lists, and what the specification says of its items. */
const SIGNALS: Readonly<Record<Signal, [Definition | undefined, string, string, string, (item: never) => void]>> = {
  traces: [trace.v1['ExportTraceServiceRequest'], 'resourceSpans', 'scopeSpans', 'spans', checkSpan],
  logs: [logs.v1['ExportLogsServiceRequest'], 'resourceLogs', 'scopeLogs', 'logRecords', checkRecord],
  metrics: [metrics.v1['ExportMetricsServiceRequest'], 'resourceMetrics', 'scopeMetrics', 'metrics', checkMetric],
};
// Members are found in the text: a reviver is called for every value. Quotes inside of strings have a backslash before.
const BASE64_ID = /("(?:traceId|spanId|parentSpanId)":")([^"]*)/g;
/** A member that is an empty list, with a comma: the definitions cannot tell it from none. */
const EMPTY_LIST = /,"\w+":\[\]|"\w+":\[\],?/g;

/**
 * Reads a message; fails for anything that the definitions do not have, or have in another form, and for what the
 * specification does not allow.
 */
export function decode(signal: Signal, contentType: string | undefined, body: Buffer): Decoded[] {
  const [definition, outer, inner, items, check] = SIGNALS[signal];
  if (definition === undefined) throw new Error(`no definition of ${signal}`);
  const toPlain = (message: object): object =>
    definition.toObject(message, { longs: String, bytes: String, json: true });
  let plain: object;
  if (contentType === 'application/json') {
    const text = body.toString();
    // Hexadecimal ids are base64, too: of other bytes, but they come back as they were.
    plain = toPlain(definition.fromObject(JSON.parse(text) as object));
    assert.deepEqual(plain, JSON.parse(text.replace(EMPTY_LIST, '')));
  } else {
    assert.equal(contentType, 'application/x-protobuf');
    const message = definition.decode(body);
    const toHex = (_: string, before: string, id: string): string => before + Buffer.from(id, 'base64').toString('hex');
    plain = JSON.parse(JSON.stringify(toPlain(message)).replace(BASE64_ID, toHex)) as object;
    assert.equal(definition.encode(message).finish().length, body.length, 'something that the definitions do not have');
  }
  const member = <T>(of: object, name: string): T => Reflect.get(of, name) as T;
  return member<{ resource: Decoded['resource'] }[]>(plain, outer).map((resource) => ({
    resource: resource.resource,
    items: member<object[]>(resource, inner).flatMap((scope) => {
      assert.equal(member<{ name: string }>(scope, 'scope').name, 'postern');
      const all = member<object[]>(scope, items);
      for (const item of all) check(item as never);
      return all;
    }),
  }));
}

/** The answer of a collector that rejects items, in protobuf. */
export function toAnswer(partialSuccess: object): Uint8Array {
  const definition = trace.v1['ExportTraceServiceResponse'];
  return definition?.encode(definition.fromObject({ partialSuccess })).finish() ?? new Uint8Array();
}

function checkSpan(span: WireSpan): void {
  const { traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano } = span;
  assert.match(traceId, /^(?!0{32})[0-9a-f]{32}$/);
  for (const id of [spanId, parentSpanId ?? spanId]) assert.match(id, /^(?!0{16})[0-9a-f]{16}$/);
  assert.notEqual(name, '');
  assert(kind >= 1 && kind <= 5, `kind ${kind}`);
  assert(BigInt(startTimeUnixNano) > 0n && BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano), 'times');
  for (const { attributes } of [span, ...(span.events ?? [])]) byName(attributes);
}

/** The data points of a metric. */
export function pointsOf({ gauge, sum, histogram, summary }: WireMetric): readonly WirePoint[] {
  return (gauge ?? sum ?? histogram ?? summary)?.dataPoints ?? [];
}

function checkRecord({ timeUnixNano, severityNumber, attributes, traceId, spanId, body }: WireRecord): void {
  assert(BigInt(timeUnixNano) > 0n, 'times');
  assert(severityNumber >= 1 && severityNumber <= 24, `severity ${severityNumber}`);
  assert.match(traceId ?? '1'.repeat(32), /^(?!0*$)[0-9a-f]{32}$/);
  assert.match(spanId ?? '1'.repeat(16), /^(?!0*$)[0-9a-f]{16}$/);
  byName(attributes);
  if (body !== undefined) toPlainValue(body);
}

function checkMetric({ name, description, unit, ...data }: WireMetric): void {
  assert.match(name, /^[a-zA-Z][\w./-]{0,254}$/);
  assert(description !== '' && unit !== '', 'an empty text');
  const [[kind = '', { dataPoints, ...rest }] = ['', { dataPoints: [] }], ...more] = Object.entries(data);
  assert.deepEqual(more, [], 'one kind of data');
  assert(dataPoints.length > 0, 'no data point');
  if (kind === 'sum' || kind === 'histogram') assert.equal(rest.aggregationTemporality, 2);
  const series = dataPoints.map(({ attributes = [] }) => JSON.stringify(byName(attributes)));
  assert.equal(new Set(series).size, series.length, `${name} has a series twice`);
  for (const { startTimeUnixNano, timeUnixNano, ...point } of dataPoints) {
    assert(BigInt(timeUnixNano) >= BigInt(startTimeUnixNano) && BigInt(startTimeUnixNano) > 0n, 'times');
    for (const { traceId = '1'.repeat(32), spanId = '1'.repeat(16), timeUnixNano: at } of point.exemplars ?? []) {
      assert.match(traceId + spanId, /^[0-9a-f]{48}$/);
      assert(BigInt(at) > 0n, 'times');
    }
    for (const { quantile, value } of point.quantileValues ?? []) assert(quantile >= 0 && quantile <= 1 && value >= 0);
    if (kind !== 'histogram') continue;
    const { bucketCounts = [], explicitBounds = [] } = point;
    assert.equal(bucketCounts.length, explicitBounds.length + 1);
    assert.equal(bucketCounts.reduce((sum, count) => sum + BigInt(count), 0n), BigInt(point.count ?? -1));
    assert(explicitBounds.every((bound, index) => index === 0 || bound > (explicitBounds[index - 1] ?? 0)), 'bounds');
  }
}

/** Attributes by name; fails for an empty name and for a name that is there twice. */
export function byName(attributes: readonly Attribute[] = []): Record<string, Plain> {
  assert(attributes.every(({ key }) => key !== ''), 'an attribute without a name');
  return membersOf(attributes);
}

function membersOf(attributes: readonly Attribute[] = []): Record<string, Plain> {
  const names = attributes.map(({ key }) => key);
  assert.equal(new Set(names).size, names.length, `an attribute is there twice: ${names.join()}`);
  return Object.fromEntries(attributes.map(({ key, value }) => [key, toPlainValue(value)]));
}

/** The value of an attribute, or a body. */
export function toPlainValue(value: AnyValue): Plain {
  if (value.intValue !== undefined) return Number(value.intValue);
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(toPlainValue);
  if (value.kvlistValue !== undefined) return membersOf(value.kvlistValue.values);
  return value.stringValue ?? value.doubleValue ?? value.boolValue ?? null;
}
