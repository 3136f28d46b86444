/* One entry of the log as a line for people at a terminal. Loaded for that only. */

import { Date } from './clock.js';
import { escapeControls } from './log-line.js';
import { isRecord } from './options-check.js';

const COLORS: Readonly<Record<string, number>> = { debug: 90, info: 32, warn: 33, error: 31 };
const DIM = 90;

/** @param line an entry as a line of JSON @returns `12:00:00.000 INFO  users listening port=8000`, its end included */
export function toTextLine(line: string, isColored: boolean): string {
  const { level, time, service, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const paint = (color: number, text: string): string => (isColored ? `\u001b[${color}m${text}\u001b[39m` : text);
  const color = COLORS[String(level)] ?? DIM;
  const parts = [
    paint(DIM, localTime(String(time))),
    paint(color, String(level).toUpperCase().padEnd(5)),
    paint(DIM, escapeControls(String(service))),
    ...(msg === undefined ? [] : [escapeControls(String(msg))]),
    ...Object.entries(fields).map(([key, value]) => `${paint(DIM, `${escapeControls(key)}=`)}${textOf(value)}`),
    ...(err === undefined ? [] : [paint(color, escapeControls(errorText(err)))]),
  ];
  return `${parts.join(' ')}\n`;
}

function localTime(iso: string): string {
  const date = new Date(iso);
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** A plain word unchanged; anything else as JSON, so that a reader sees where it ends. */
function textOf(value: unknown): string {
  const isWord = typeof value === 'string' && /^[^\s"=\\{[]+$/.test(value);
  return escapeControls(isWord ? value : JSON.stringify(value));
}

/** The stack on one line, then the other members and the cause. */
function errorText(error: unknown): string {
  if (!isRecord(error)) return textOf(error);
  const { type, message, stack, cause, errors, ...others } = error;
  const head = typeof stack === 'string' ? stack.replace(/\s*\n\s+at /g, ' at ') : `${String(type)}: ${String(message)}`;
  const inner = [...(cause === undefined ? [] : [cause]), ...(Array.isArray(errors) ? (errors as unknown[]) : [])];
  const members = Object.entries(others).map(([key, value]) => `${key}=${textOf(value)}`);
  return [head, ...members, ...inner.map((each) => `caused by ${errorText(each)}`)].join(' ');
}
