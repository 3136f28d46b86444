/*
 * A subcommand: a text that explains it, and a function from arguments to an outcome. Reads arguments and saved files.
 */

import { readFileSync } from 'node:fs';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { nearestName } from '../base/nearest-name.js';
import { messageOf, paint, toVisible } from './output.js';

/** One subcommand. */
export interface Command {
  /** Text for `--help`; ends in a newline. */
  readonly usage: string;
  /** Rejects when it can't do what it is for: that is exit code 2. */
  readonly run: (args: string[]) => Promise<Outcome>;
}

/** Result of a subcommand. */
export interface Outcome {
  /** For stdout; ends in a newline unless it is empty. */
  readonly text: string;
  /** Whether there is a finding: that is exit code 1. */
  readonly finding?: boolean;
  /** Settles when the process may end, for a command that continues after its text. */
  readonly running?: Promise<void>;
}

/** A finding that is all there is to say: exit code 1, and its message on stderr. */
export class Finding extends Error {}

/** The command was called in a way that it does not understand. */
export class UsageError extends Error {}

/** Prints findings, one a line; none is good news, and no text. */
export function reportFindings(lines: readonly string[]): Outcome {
  return { text: lines.map((line) => `${paint('red', toVisible(line))}\n`).join(''), finding: lines.length > 0 };
}

type Options = NonNullable<ParseArgsConfig['options']>;
type Parsed<T extends Options> = ReturnType<typeof parseArgs<{ args: string[]; options: T; allowPositionals: true }>>;

/**
 * Parses the arguments of a subcommand.
 *
 * @param operands what must be there besides options, by name; the last one may be repeated if it ends in `...`
 * @throws {UsageError} for an unknown option, and for operands that are missing or too many
 */
export function parseCommand<T extends Options>(args: string[], options: T, operands: readonly string[]): Parsed<T> {
  let parsed: Parsed<T>;
  try {
    parsed = parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    // The first sentence; the others explain how to begin an operand with a dash.
    const reason = messageOf(error).replace(/\.(?: .*)?$/, '');
    const [, unknown] = /^Unknown option '-*([^']*)'/.exec(reason) ?? [];
    if (unknown === undefined) throw new UsageError(reason);
    const nearest = nearestName(unknown, Object.keys(options));
    const guess = nearest === undefined ? '' : `did you mean --${nearest}? `;
    throw new UsageError(`${reason}; ${guess}${describeOptions(options)}`);
  }
  const given = parsed.positionals;
  const repeats = operands.at(-1)?.endsWith('...') === true;
  if (given.length < operands.length)
    throw new UsageError(`${operands[given.length]?.replace('...', '') ?? ''} is missing`);
  if (given.length > operands.length && !repeats)
    throw new UsageError(`unexpected argument ${JSON.stringify(given[operands.length])}; ${describeOptions(options)}`);
  return parsed;
}

function describeOptions(options: Options): string {
  const names = Object.keys(options).map((name) => `--${name}`);
  return names.length === 0 ? 'it takes no options' : `the options are ${names.join(', ')}`;
}

/**
 * A whole number given as text.
 *
 * @throws {UsageError} when it is not a whole number, or out of range
 */
export function parseWhole(option: string, text: string, min: number, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
  if (!(value >= min && value <= max))
    throw new UsageError(`--${option} is ${JSON.stringify(text)}; give a number from ${min} to ${max}`);
  return value;
}

/**
 * One of several words.
 *
 * @throws {UsageError} when it is none of them
 */
export function parseChoice<T extends string>(option: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((each) => each === text);
  if (choice === undefined)
    throw new UsageError(`--${option} is ${JSON.stringify(text)}; give one of ${choices.join(', ')}`);
  return choice;
}

/** Waits for SIGINT or SIGTERM, and closes then. */
export function untilSignal(close: () => Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => resolve(close());
    process.once('SIGINT', stop).once('SIGTERM', stop);
  });
}

/**
 * @param read undefined for anything but what is looked for
 * @param what it is, and `call` what prints it
 * @throws {Error} when the file can't be read, or holds something else
 */
export function readSaved<T>(file: string, read: (value: unknown) => T | undefined, what: string, call: string): T {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file} can't be read: ${messageOf(error)}`, { cause: error });
  }
  const saved = read(value);
  if (saved === undefined) throw new Error(`${file} has no ${what}; make one with postern ${call}`);
  return saved;
}
