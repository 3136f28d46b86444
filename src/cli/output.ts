/* Output of the command: text that can't steer a terminal, and colours where they are wanted. */

import { inspect, styleText } from 'node:util';

/** Control and format characters, line separators and lone surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Reserves stdout for the command: what anything else prints, such as a module as it is loaded, goes to stderr.
 *
 * @returns writes text to stdout, and resolves when it is out or nobody reads it any more
 */
export function takeStdout(): (text: string) => Promise<void> {
  const { stdout, stderr } = process;
  // Without a listener a failed write would end the process with a stack.
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  return (text) =>
    new Promise((resolve, reject) => {
      write(text, (error) => {
        if (error === null || error === undefined || ('code' in error && error.code === 'EPIPE')) resolve();
        else reject(error);
      });
    });
}

/** Writes one line to stderr, whatever the text holds. */
export function complain(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stderr.write(`postern: ${toVisible(text)}\n`, () => resolve());
  });
}

/** The first line of a thrown error's message, without its stack. */
export function messageOf(thrown: unknown): string {
  const given = thrown instanceof Error ? thrown.message : thrown;
  const text = typeof given === 'string' && given !== '' ? given : inspect(thrown);
  return text.trimStart().split('\n', 1)[0] ?? '';
}

/** Text with all that could move a cursor, start an escape sequence or turn the direction of writing as `\u001b`. */
export function toVisible(text: string): string {
  return text.replace(INVISIBLE, (char) =>
    Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** JSON for people and programs, newline included; with the escapes of {@link toVisible}, which JSON reads back. */
export function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2).split('\n').map(toVisible).join('\n')}\n`;
}

/** Rows of text in columns, made visible; a line each. */
export function toTable(rows: readonly (readonly string[])[]): string[] {
  const table = rows.map((row) => row.map(toVisible));
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const pad = (cell: string, column: number): string => cell.padEnd(widths[column] ?? 0);
  return table.map((row) => row.map(pad).join('  ').trimEnd());
}

/** Text in a colour, on a terminal and unless `NO_COLOR` is set (https://no-color.org). */
export function paint(color: 'red' | 'green' | 'yellow', text: string): string {
  // styleText would also colour a pipe, for FORCE_COLOR.
  return process.stdout.isTTY && !process.env['NO_COLOR'] ? styleText(color, text, { validateStream: false }) : text;
}
