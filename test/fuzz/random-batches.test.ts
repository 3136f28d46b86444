/**
 * Random batches of every signal, in both forms: OpenTelemetry's definitions read them, and read the same from both.
 *
 * @module-tag package
 * @module-tag slow
 */

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'vitest';
import { startExporter, type Exporter } from '../../src/otlp/exporter.js';
import type { Form } from '../../src/payload/protobuf.js';
import { encodeMetrics } from '../../src/otlp/metrics.js';
import { encodeSpan, type SpanFields } from '../../src/otlp/spans.js';
import type { Signal } from '../../src/otlp/variables.js';
import { Registry } from '../../src/metrics/registry.js';
import { JsonLogger, LOG_LEVELS } from '../../src/base/log.js';
import { encodeRecord } from '../../src/otlp/logs.js';
import { startCollector } from '../support/collector.js';
import {
  byName, pointsOf, toPlainValue, type WireMetric, type WireRecord, type WireSpan,
} from '../support/otlp-messages.js';
import { createRandom, oneIn, several, type Random } from '../support/random.js';

const BATCHES = 2_000;
/** A request for each batch would take most of the time. */
const BATCHES_PER_REQUEST = 40;
const SEED = 20_261_126;
const NOW = Date.UTC(2026, 10, 26);

interface Batch {
  /** @returns its items */
  readonly encode: (form: Form) => string[];
  /** Fails unless these are the items. */
  readonly check: (items: readonly object[]) => void;
}

async function sendInBothForms(signal: Signal, create: (random: Random) => Batch): Promise<void> {
  const received = new EventEmitter();
  const collector = await startCollector((res) => {
    res.end();
    received.emit('batch');
  });
  const start = (form: Form): Exporter =>
    startExporter(
      {
        signal, form, url: new URL(`${collector.url}/v1/${signal}`), headers: {}, timeoutMs: 20_000,
        isCompressed: false, maxQueueSize: 2048, maxBatchSize: 512, delayMs: 0,
      },
      { 'service.name': 'random' },
      (count, reason) => void (count > 0 && received.emit('error', new Error(reason))),
    );
  const exporters = [start('json'), start('protobuf')];
  const random = createRandom(SEED);
  for (let first = 0; first < BATCHES; first += BATCHES_PER_REQUEST) {
    const batches = several(random, BATCHES_PER_REQUEST, BATCHES_PER_REQUEST, () => create(random));
    let lengths: number[] = [];
    for (const exporter of exporters) {
      const read = once(received, 'batch');
      const encoded = batches.map(({ encode }) => encode(exporter.settings.form));
      for (const item of encoded.flat()) exporter.add(item);
      lengths = encoded.map(({ length }) => length);
      await read;
    }
    const [json = [], protobuf] = collector.requests.splice(0).map(({ items }) => items);
    assert.equal(JSON.stringify(protobuf), JSON.stringify(json), `batches from ${first} of seed ${SEED}`);
    let at = 0;
    for (const [index, { check }] of batches.entries()) check(json.slice(at, (at += lengths[index] ?? 0)));
    assert.equal(at, json.length);
  }
  await Promise.all(exporters.map((exporter) => exporter.close()));
}

const hex = (random: Random, digits: 16 | 32): string =>
  several(random, digits / 8, digits / 8, () => (2 ** 31 + random.int(2 ** 31)).toString(16)).join('');
const UNITS = ['a', 'Z', '0', ' ', '"', '\\', '\n', '\0', '\x7f', 'é', 'ÿ', 'Ā', '漢', '\u{1f680}', '\ud83d', '\udc00'];
const text = (random: Random): string =>
  oneIn(random, 50)
    ? random.pick(UNITS).repeat(random.int(3_000))
    : several(random, 0, 12, () => random.pick(UNITS)).join('');
/** With a stack of its own: Vitest would map the real one to the sources. */
const errorOf = (random: Random, members: object): Error =>
  Object.assign(new Error(text(random)), { stack: `${text(random)}\n    at run (${text(random)}:1:2)`, ...members });
const WHOLE = [0, 1, 127, 128, 300, 16_384, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER, -1, -128, -(2 ** 40)];
const wellFormed = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, each: unknown) => (typeof each === 'string' ? each.toWellFormed() : each));

test('spans', { timeout: 300_000 }, async () => {
  await sendInBothForms('traces', (random) => {
    const spans = several(random, 1, 6, () => {
      const startMs = NOW + random.int(1e9) + random.next();
      const attributes = Object.fromEntries(
        several(random, 0, 8, (index) => [`key${index}`, oneIn(random, 2) ? random.pick(WHOLE) : text(random)]),
      );
      const fields: SpanFields = {
        name: `n${text(random)}`,
        attributes,
        isError: oneIn(random, 2),
        thrown: oneIn(random, 3) ? { error: errorOf(random, { name: text(random) }) } : undefined,
      };
      const trace = {
        traceId: hex(random, 32),
        spanId: hex(random, 16),
        parentId: oneIn(random, 2) ? hex(random, 16) : undefined,
        flags: `0${random.int(4)}`,
      };
      return { kind: random.pick([2, 3, 5]), trace, startMs, endMs: startMs + random.int(1e5) + random.next(), fields };
    });
    return {
      encode: (form) =>
        spans.map(({ kind, trace, startMs, endMs, fields }) => encodeSpan(form, kind, trace, startMs, endMs, fields)),
      check(items) {
        assert.equal(items.length, spans.length);
        for (const [index, { trace, kind, startMs, fields }] of spans.entries()) {
          const item = items[index] as WireSpan;
          assert.deepEqual(
            [item.traceId, item.spanId, item.parentSpanId, item.kind, item.name],
            [trace.traceId, trace.spanId, trace.parentId, kind, fields.name.toWellFormed()],
          );
          const ms = Math.floor(startMs);
          const fraction = Number(BigInt(item.startTimeUnixNano) - BigInt(ms) * 1_000_000n) / 1e6;
          assert(Math.abs(fraction - (startMs - ms)) < 0.001, `${item.startTimeUnixNano} is ${startMs}`);
          assert.deepEqual(byName(item.attributes), wellFormed(fields.attributes));
        }
      },
    };
  });
});

const NUMBERS = [0, 1, -1, 0.1, 1e21, 1e-7, Number.MAX_VALUE, 5e-324, 2 ** 53, -2.5, 42, Infinity, -Infinity, NaN];
const SUFFIXES = ['', '_total', '_seconds', '_bytes', '_seconds_total', '_ratio'];
const TIMES = { startTimeUnixNano: NOW, timeUnixNano: NOW + 60_000 };

/** A metric of a random kind, updated at random. */
function addMetric(registry: Registry, random: Random, index: number): void {
  const number = (): number => random.pick([...NUMBERS, random.next(), random.int(1e6)]);
  const finite = (): number => Math.min(1e300, Math.max(-1e300, number())) || 0;
  const labelled = several(random, 1, 5, () => ({ a: text(random).toWellFormed(), b: random.pick(['', 'x', 'y']) }));
  const name = `m${index}${random.pick(SUFFIXES)}`;
  const options = { name, help: `help ${text(random)}`, labelNames: ['a', 'b'] as const };
  const ids = { trace_id: hex(random, 32), span_id: hex(random, 16) };
  const exemplarLabels = oneIn(random, 4) ? undefined : random.pick([ids, { trace_id: ids.trace_id }, { user: 7 }]);
  const kinds = {
    counter() {
      const counter = registry.counter(options);
      for (const labels of labelled) counter.inc({ labels, value: Math.abs(finite()), exemplarLabels });
    },
    gauge() {
      const gauge = registry.gauge(options);
      for (const labels of labelled) gauge.set(labels, number());
    },
    histogram() {
      const buckets = [...new Set(several(random, 1, 8, finite))].sort((a, b) => a - b);
      const histogram = registry.histogram({ ...options, buckets });
      for (const labels of labelled)
        for (let count = random.int(4); count >= 0; count -= 1)
          histogram.observe({ labels, value: finite(), exemplarLabels });
    },
    summary() {
      const summary = registry.summary({ ...options, ...(oneIn(random, 2) && { maxAgeSeconds: 1e-9 }) });
      for (const labels of labelled) summary.observe(labels, finite());
    },
  };
  random.pick(Object.values(kinds))();
}

test('metrics', { timeout: 300_000 }, async () => {
  await sendInBothForms('metrics', (random) => {
    const registry = new Registry();
    several(random, 1, 5, (index) => addMetric(registry, random, index));
    if (oneIn(random, 3)) registry.setDefaultLabels({ zone: text(random).toWellFormed() });
    const maxBatchSize = 1 + random.int(6);
    const all = [...registry].flatMap(({ samples }) => [...samples.values()]);
    return {
      encode: (form) => encodeMetrics({ form, maxBatchSize }, registry, new Map(), TIMES).map(({ item }) => item),
      check(items) {
        const points = items.flatMap((item) => pointsOf(item as WireMetric));
        assert.equal(points.length, all.length);
        for (const [index, { labelValues, point }] of all.entries()) {
          const { attributes, asDouble, count, sum } = points[index] ?? {};
          const { a, b } = byName(attributes);
          assert.deepEqual([a, b], labelValues);
          assert.deepEqual(
            [asDouble === undefined ? undefined : Number(asDouble), count, sum],
            [point.asDouble, point.count === undefined ? undefined : String(point.count), point.sum],
          );
        }
      },
    };
  });
});

/** A value that anybody could log. */
function randomValue(random: Random, depth: number): unknown {
  const values = [
    () => text(random), () => random.pick(WHOLE), () => random.next() * 1e9, () => oneIn(random, 2), () => null,
    () => undefined, () => 10n, () => new Date(NOW), () => errorOf(random, { code: 'E' }),
    () => Symbol('s'), () => ({ toJSON: () => { throw new Error('no'); } }),
    () => several(random, 0, 4, () => randomValue(random, depth - 1)),
    () => randomMembers(random, depth - 1),
  ];
  return (depth > 0 ? random.pick(values) : random.pick(values.slice(0, 4)))();
}

function randomMembers(random: Random, depth: number): Record<string, unknown> {
  const names = ['a', 'b', 'err', 'msg', 'trace_id', 'span_id', 'level', '__proto__', 'é', '', 'toJSON'];
  return Object.fromEntries(several(random, 0, 6, () => [random.pick(names), randomValue(random, depth)]));
}

test('log records', { timeout: 300_000 }, async () => {
  await sendInBothForms('logs', (random) => {
    const lines: string[] = [];
    const logger = new JsonLogger('random', (line) => void lines.push(line), 'debug');
    several(random, 1, 6, () => {
      const ids = oneIn(random, 2) ? {} : { trace_id: hex(random, 32), span_id: hex(random, 16) };
      const entry = { ...randomMembers(random, random.pick([2, 3, 12])), ...ids };
      logger[random.pick(LOG_LEVELS)](entry, oneIn(random, 3) ? undefined : text(random));
    });
    return {
      encode: (form) => lines.map((line) => encodeRecord(form, line)),
      check(items) {
        assert.equal(items.length, lines.length);
        for (const [index, line] of lines.entries()) {
          const record = items[index] as WireRecord;
          const { level, time, service, msg, trace_id: trace, span_id: span, ...members } = JSON.parse(line) as Entry;
          assert.equal(service, 'random');
          assert.equal(record.severityText, level);
          assert.equal(Number(BigInt(record.timeUnixNano) / 1_000_000n), Date.parse(time));
          const attributes = byName(record.attributes);
          if (record.traceId !== undefined) assert.equal(record.traceId, trace);
          if (record.spanId !== undefined) assert.equal(record.spanId, span);
          if (record.droppedAttributesCount !== undefined) continue;
          const body = record.body && toPlainValue(record.body);
          const [logged, read] = [{ ...members, msg: msg ?? null }, { ...without(attributes), msg: body ?? null }];
          assert.deepEqual(wellFormed(read), wellFormed(logged));
        }
      },
    };
  });
});
interface Entry extends Record<string, unknown> {
  readonly level: string;
  readonly time: string;
}
const without = ({ trace_id: _trace, span_id: _span, ...attributes }: Record<string, unknown>): object => attributes;
