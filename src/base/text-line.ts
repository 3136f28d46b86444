/* One entry of the log for people at a terminal: a line, and below it the stack of an error. */

import { Date } from './clock.js';
import { escapeControls } from './log-line.js';
import { isRecord } from './options-check.js';

const COLORS: Readonly<Record<string, number>> = { debug: 90, info: 32, warn: 33, error: 31 };
const DIM = 90;

/**
 * @param line an entry as a line of JSON
 * @returns `12:00:00.000 INFO  users listening port=8000`, and an error on indented lines below; the end is included
 */
export function toTextLine(line: string, isColored: boolean): string {
  const { level, time, service, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const paint = (color: number, text: string): string => (isColored ? `\u001b[${color}m${text}\u001b[39m` : text);
  const color = COLORS[String(level)] ?? DIM;
  const hasRows = isLoggedError(err);
  const below = hasRows ? errorRows(err).map((row) => `\n    ${paint(row.startsWith(' ') ? DIM : color, row)}`) : [];
  const parts = [
    paint(DIM, localTime(String(time))),
    paint(color, String(level).toUpperCase().padEnd(5)),
    paint(DIM, escapeControls(String(service))),
    ...(msg === undefined ? [] : [escapeControls(String(msg))]),
    ...Object.entries(fields).map(([key, value]) => `${paint(DIM, `${escapeControls(key)}=`)}${textOf(value)}`),
    ...(err === undefined || hasRows ? [] : [paint(color, textOf(err))]),
  ];
  return `${parts.join(' ')}${below.join('')}\n`;
}

/** `12:00:00.000`, where the reader is. */
export function localTime(iso: string): string {
  const date = new Date(iso);
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** A plain word unchanged; anything else as JSON, so that a reader sees where it ends. */
function textOf(value: unknown): string {
  const isWord = typeof value === 'string' && /^[^\s"=\\{[]+$/.test(value);
  return escapeControls(isWord ? value : JSON.stringify(value));
}

/** Whether it was an error; any object can be logged as `err`. */
function isLoggedError(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && typeof value['type'] === 'string' && typeof value['message'] === 'string';
}

/** The stack, a line each, then the other members and the causes. */
function errorRows(error: unknown): string[] {
  if (!isLoggedError(error)) return [textOf(error)];
  const { type, message, stack, cause, errors, ...others } = error;
  const head = typeof stack === 'string' ? stack : `${String(type)}: ${String(message)}`;
  // Only before a frame: a line break in the message could pretend to be anything.
  const [first = '', ...frames] = head.split(/\n\s+(?=at )/).map(escapeControls);
  const members = Object.entries(others).map(([key, value]) => `${escapeControls(key)}=${textOf(value)}`);
  const inner = [...(cause === undefined ? [] : [cause]), ...(Array.isArray(errors) ? (errors as unknown[]) : [])];
  const causes = inner.map(errorRows).flatMap(([row = '', ...rows]) => [`caused by ${row}`, ...rows]);
  return [[first, ...members].join(' '), ...frames.map((frame) => `    ${frame}`), ...causes];
}
