/* A subcommand: a text that explains it, its options and its result. Reads arguments and saved files. */

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { nearestName } from '../base/nearest-name.js';
import { messageOf, paint, toVisible } from './output.js';

export interface Command {
  /** Text for `--help`; ends in a newline. */
  readonly usage: string;
  /** Rejects when it can't do what it is for: that is exit code 2. */
  readonly run: (args: string[]) => Promise<CommandResult>;
}

export interface CommandResult {
  /** For stdout; ends in a newline unless it is empty. */
  readonly text: string;
  /** Whether there is a finding: that is exit code 1. */
  readonly finding?: boolean;
  /** Ends a command that continues after its text; called at SIGINT or SIGTERM. */
  readonly close?: () => Promise<unknown>;
}

/** A finding that is all there is to say: exit code 1, and its message on stderr. */
export class FindingError extends Error {}

/** The command was called in a way that it does not understand. */
export class UsageError extends Error {}

/** Prints findings, one a line; none is good news, and no text. */
export function reportFindings(lines: readonly string[]): CommandResult {
  return { text: lines.map((line) => `${paint('red', toVisible(line))}\n`).join(''), finding: lines.length > 0 };
}

type Parsed = ReturnType<typeof parseArgs>;
type Given = Parsed['values'][string];

/** An option: its form for `parseArgs`, and the value that a command gets. */
interface CommandOption<V> {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  readonly read: (given: Given, name: string) => V;
}

export const flag: CommandOption<boolean> = { type: 'boolean', read: (given) => given === true };

/**
 * An option whose text must have a form; undefined if it is not given.
 *
 * @param parse returns undefined for a text that the option can't have; `remedy` says what to give then
 */
export function parsed<V>(remedy: string, parse: (text: string) => V | undefined): CommandOption<V | undefined> {
  const read = (given: Given, name: string): V | undefined => {
    const [text, second] = [given].flat();
    if (second !== undefined) throw new UsageError(`--${name} is given twice; leave one out`);
    if (text === undefined) return undefined;
    const value = parse(String(text));
    if (value === undefined) throw new UsageError(`--${name} is ${JSON.stringify(text)}; ${remedy}`);
    return value;
  };
  return { type: 'string', multiple: true, read };
}

export const text: CommandOption<string | undefined> = parsed('', String);

/** An option that may be given several times. */
export function repeated({ read }: CommandOption<string | undefined>): CommandOption<string[] | undefined> {
  const readAll = (given: Given, name: string): string[] | undefined =>
    Array.isArray(given) ? given.flatMap((each) => read(each, name) ?? []) : undefined;
  return { type: 'string', multiple: true, read: readAll };
}

export function whole(min: number, max: number): CommandOption<number | undefined> {
  return parsed(`give a number from ${min} to ${max}`, (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    return value >= min && value <= max ? value : undefined;
  });
}

export function choice<C extends string>(choices: readonly C[]): CommandOption<C | undefined> {
  return parsed(`give one of ${choices.join(', ')}`, (text) => choices.find((each) => each === text));
}

type Options = Readonly<Record<string, CommandOption<unknown>>>;
/** The values of options, by name. */
export type Values<O> = { readonly [Name in keyof O]: O[Name] extends CommandOption<infer V> ? V : never };

/**
 * A subcommand that is called with options and operands.
 *
 * @param operandsOf the names of its operands, with `...` at the end if the last one may be repeated; empty for none
 */
export function defineCommand<O extends Options>(
  usage: string,
  operandsOf: string | ((given: Parsed['values']) => string),
  options: O,
  act: (values: Values<O>, operand: string, ...others: string[]) => Promise<CommandResult>,
): Command {
  const run = async (args: string[]): Promise<CommandResult> => {
    const { values, positionals } = parse(args, options);
    const operands = typeof operandsOf === 'string' ? operandsOf : operandsOf(values);
    const names = operands.split(' ').filter(Boolean);
    const missing = names[positionals.length];
    if (missing !== undefined) throw new UsageError(`${missing.replace('...', '')} is missing`);
    const surplus = operands.endsWith('...') ? undefined : positionals[names.length];
    if (surplus !== undefined)
      throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}; ${describeOptions(options)}`);
    const read = Object.entries(options).map(([name, option]) => [name, option.read(values[name], name)]);
    const [first = '', ...others] = positionals;
    return act(Object.fromEntries(read) as Values<O>, first, ...others);
  };
  return { usage, run };
}

function parse(args: string[], options: Options): Parsed {
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    // The first sentence; the others explain how to begin an operand with a dash.
    const reason = messageOf(error).replace(/\.(?: .*)?$/, '');
    const [, unknown] = /^Unknown option '-*([^']*)'/.exec(reason) ?? [];
    if (unknown === undefined) throw new UsageError(reason);
    const nearest = nearestName(unknown, [...Object.keys(options), 'help']);
    const guess = nearest === undefined ? '' : `did you mean --${nearest}? `;
    throw new UsageError(`${reason}; ${guess}${describeOptions(options)}`);
  }
}

function describeOptions(options: Options): string {
  const names = Object.keys(options).map((name) => `--${name}`);
  return names.length === 0 ? 'it takes no options' : `the options are ${names.join(', ')}`;
}

/**
 * Returns a reader of files that another call has written.
 *
 * @param what a file must have, and `call` what prints it
 * @returns the reader; it throws when a file can't be read, or holds something else
 */
export function savedBy<T>(call: string, what: string, isValid: (value: unknown) => value is T): (file: string) => T {
  return (file) => {
    let value: unknown;
    try {
      value = JSON.parse(readFileSync(file, 'utf8'));
    } catch (error) {
      throw new Error(`${file} can't be read: ${messageOf(error)}`, { cause: error });
    }
    if (!isValid(value)) throw new Error(`${file} has no ${what}; make one with postern ${call}`);
    return value;
  };
}
