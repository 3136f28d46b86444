/*
 * Exports the entries that the default logger writes as log records of OpenTelemetry's protocol.
 * Spec: OpenTelemetry, "Logs Data Model".
 */

import { Date } from '../base/clock.js';
import type { JsonLogger, LogLevel } from '../base/log.js';
import { ITEM, type Exporter } from './exporter.js';
import {
  ATTRIBUTES, ID, message, NUMBER, TEXT, TIME, toId, VALUE, type Form, type Value,
} from '../payload/protobuf.js';

const RECORD = message({
  timeUnixNano: [1, TIME], observedTimeUnixNano: [11, TIME], severityNumber: [2, NUMBER], severityText: [3, TEXT],
  body: [5, VALUE], attributes: [6, ATTRIBUTES], droppedAttributesCount: [7, NUMBER],
  traceId: [9, ID], spanId: [10, ID],
});
const SEVERITIES: Readonly<Record<LogLevel, number>> = { debug: 5, info: 9, warn: 13, error: 17 };
/** Thousands of records may wait, and an entry may hold whatever a client has sent. */
const MAX_LENGTH = 16_384;
/** Some readers of protobuf allow 100 messages in each other, and each level of an entry takes three. */
const MAX_DEPTH = 8;

/** Begins to export what a logger writes, but while `isMuted()`. @returns a function that ends that */
export function exportLogs(logger: JsonLogger, exporter: Exporter, isMuted: () => boolean): () => void {
  const { write } = logger;
  logger.write = (line) => {
    write(line);
    if (!isMuted() && exporter.hasRoomOrDrops()) exporter.add(encodeRecord(exporter.settings.form, line));
  };
  return () => {
    logger.write = write;
  };
}

interface Entry {
  readonly level: LogLevel;
  readonly time: string;
  readonly service: string;
  readonly trace_id?: Value;
  readonly span_id?: Value;
  readonly [member: string]: Value | undefined;
}

/** @param line the JSON of an entry, which has only plain values @returns a LogRecord of the protocol */
export function encodeRecord(form: Form, line: string): string {
  const { level, time, service: _, trace_id: trace, span_id: span, ...members } = JSON.parse(line) as Entry;
  const [traceId, spanId] = [toId(trace, 32), toId(span, 16)];
  const ids = { ...(traceId === undefined && { trace_id: trace }), ...(spanId === undefined && { span_id: span }) };
  const kept: [string, Value][] = [];
  let droppedAttributesCount: number | undefined;
  let room = MAX_LENGTH;
  // The message is the first, to be kept.
  for (const [name, value] of Object.entries({ msg: undefined, ...members, ...ids })) {
    if (value === undefined) continue;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const isWhole = text.length <= room && isShallow(value, MAX_DEPTH);
    if (name !== '' && room > 0) kept.push([name, isWhole ? value : text.slice(0, room)]);
    if (!isWhole || name === '') droppedAttributesCount = (droppedAttributesCount ?? 0) + 1;
    room -= name.length + text.length;
  }
  const { msg: body, ...given }: Record<string, Value> = Object.fromEntries(kept);
  const timeUnixNano = Date.parse(time);
  const record = {
    timeUnixNano, observedTimeUnixNano: timeUnixNano, severityNumber: SEVERITIES[level], severityText: level,
    body, attributes: given, droppedAttributesCount, traceId, spanId,
  };
  return RECORD[form](record, ITEM);
}

function isShallow(value: Value, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((each: Value) => isShallow(each, depth - 1));
}
