/* Writes the log of a service: JSON or text on stderr, or what a logger with arguments in pino's order does with it. */

import { Date } from './clock.js';
import { ANYTHING, oneOf, option, type OptionTable } from './options-check.js';
import { toLogged } from './failed-call.js';
import { formatLine, inspectSafely, membersOf, plainEntry } from './log-line.js';
import { toTextLine } from './text-line.js';

/** Writes one entry: what it is about, then the message. */
export type LogMethod = (object: object, message?: string) => void;

/** A logger that Postern writes to, such as `pino()` or `console`. */
export interface Logger {
  /** Writes an entry that helps to find a fault. */
  debug: LogMethod;
  /** Writes an entry about what happens in normal service. */
  info: LogMethod;
  /** Writes an entry about a problem that harms no request yet. */
  warn: LogMethod;
  /** Writes an entry about a failure. */
  error: LogMethod;
}

/** Levels of entries, least urgent first. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Writes one entry, or only a text; never throws, for any value. */
export type SafeLogMethod = (entry: object | string, message?: string) => void;

/** A logger whose calls never throw. */
export interface SafeLogger extends Logger {
  /** Writes an entry that helps to find a fault. */
  debug: SafeLogMethod;
  /**
   * Writes an entry about what happens in normal service.
   *
   * @example
   * ctx.log.info({ order: 7 }, 'order was paid');
   */
  info: SafeLogMethod;
  /** Writes an entry about a problem that harms no request yet. */
  warn: SafeLogMethod;
  /** Writes an entry about a failure. */
  error: SafeLogMethod;
  /** A logger that adds the bindings to every entry, in addition to this logger's own. */
  child(bindings: object): SafeLogger;
}

/** @internal */
export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** The logger of a service, and its level. */
export interface LogOptions {
  /** A logger in pino's argument order; `false` logs nothing. Default: JSON (on a terminal: text) on stderr. */
  logger?: Logger | false | undefined;
  /** The lowest level that the default logger writes. Default: `LOG_LEVEL` from the environment, else `info`. */
  logLevel?: LogLevel | undefined;
}

/** @internal */
export const LOG = {
  logger: option(ANYTHING),
  logLevel: option(oneOf(LOG_LEVELS)),
} satisfies OptionTable<LogOptions>;

/**
 * Creates the logger of a service.
 *
 * @param env is read for the default logger only: for another logger, `LOG_LEVEL=trace` may be right
 * @throws {TypeError} as {@link assertLogger} does, and for an invalid `LOG_LEVEL` or `LOG_FORMAT`
 */
export function createLogger({ logger, logLevel }: LogOptions, service: string, env: NodeJS.ProcessEnv): Logger {
  if (logger === undefined) {
    const format = oneOfIn(env, 'LOG_FORMAT', ['json', 'text']) ?? (isRunByHand(env) ? 'text' : 'json');
    const isColored = !env['NO_COLOR'] && process.stderr.isTTY;
    const write = format === 'json' ? writeToStderr : (line: string) => writeToStderr(toTextLine(line, isColored));
    return new JsonLogger(service, write, logLevel ?? oneOfIn(env, 'LOG_LEVEL', LOG_LEVELS));
  }
  if (logger === false) return ofLevels(() => ignore);
  assertLogger(logger, 'logger', ', or false');
  return logger;
}

/**
 * A logger that writes one JSON object a line: `level`, `time` (ISO 8601), `service`, the fields of the entry, `msg`.
 * Errors keep their type, message and stack.
 */
export class JsonLogger implements Logger {
  readonly debug: LogMethod = this.#at('debug');
  readonly info: LogMethod = this.#at('info');
  readonly warn: LogMethod = this.#at('warn');
  readonly error: LogMethod = this.#at('error');

  constructor(
    readonly service: string,
    /** May be replaced, to see the lines as well. */
    public write: (line: string) => void,
    /** The least urgent level that is written; may be changed at any time. */
    public least: LogLevel = 'info',
  ) {}

  /** Whether entries of a level are written. */
  has(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(this.least);
  }

  #at(level: LogLevel): LogMethod {
    return (fields, message) => {
      if (!this.has(level)) return;
      this.write(formatLine({ level, time: new Date().toISOString(), service: this.service }, fields, message));
    };
  }
}

/** The framework's own log: another function gets its warnings and errors, too. What users log is not its own. */
export class OwnLog implements Logger {
  declare debug: LogMethod;
  declare info: LogMethod;
  declare warn: LogMethod;
  declare error: LogMethod;

  constructor(
    readonly given: Logger,
    note: (level: LogLevel, object: object, message: string) => void,
  ) {
    const at = (level: LogLevel): LogMethod => (object, message = '') => {
      if (level === 'warn' || level === 'error') note(level, object, message);
      writeSafely(given, level, object, message);
    };
    Object.assign(this, ofLevels(at));
  }
}

/** The default logger that a log writes to; undefined if it is a logger of the user's. */
export function defaultLoggerOf(log: Logger): JsonLogger | undefined {
  const given = givenOf(log);
  return given instanceof JsonLogger ? given : undefined;
}

function givenOf(log: Logger): Logger {
  return log instanceof OwnLog ? log.given : log;
}

/** A logger for users: adds `bindings` to every entry, and its calls never throw, whatever the logger does. */
export function bindLogger(to: Logger, bindings: object): SafeLogger {
  const logger = givenOf(to);
  const bound = (level: LogLevel): SafeLogMethod => {
    return (entry, message) => {
      // Asked each time: the level of the default logger may change.
      if (isSilent(logger, level)) return;
      // `log.info('text', object)`, as with some other loggers: the text is the message all the same.
      const [about, text] = typeof entry === 'string' ? [message, entry] : [entry, message];
      writeSafely(logger, level, { ...bindings, ...fieldsOf(about) }, messageOf(about, text));
    };
  };
  return {
    ...ofLevels(bound),
    child: (more) => bindLogger(logger, { ...bindings, ...fieldsOf(more) }),
  };
}

/** @throws {TypeError} when one of the four methods is missing, and for a logger that takes the message first */
export function assertLogger(logger: unknown, what: string, otherwise = ''): asserts logger is Logger {
  for (const level of LOG_LEVELS) {
    if (typeof (logger as Partial<Logger> | null)?.[level] !== 'function')
      throw new TypeError(`${what} has no method "${level}"; give debug, info, warn and error${otherwise}`);
  }
  const { log, level } = logger as { readonly log?: unknown; readonly level?: unknown };
  // winston and log4js; the level of consola, which takes both orders, is a number.
  if (typeof log === 'function' && level !== undefined && typeof level !== 'number')
    throw new TypeError(
      `${what} takes the message first, as winston and log4js do; swap the arguments of each method: ` +
        '{ info: (object, message) => logger.info(message, object), ... }; for winston, write object.err by inspect()',
    );
}

/** Whether entries of a level go nowhere, so that none need be made. */
export function isSilent(logger: Logger, level: LogLevel): boolean {
  const given = givenOf(logger);
  return given instanceof JsonLogger ? !given.has(level) : given[level] === ignore;
}

/** Logs an entry of the framework's own, which is short if its `err` is a failed call; never throws. */
export function logSafely(logger: Logger, level: LogLevel, object: object, message: string): void {
  let entry = object;
  try {
    if ('err' in object) entry = { ...object, err: toLogged(object.err) };
  } catch {
    // A Proxy that throws, or a getter.
  }
  writeSafely(logger, level, entry, message);
}

/**
 * Logs without ever throwing: a broken logger must not take a request down. A logger that throws gets the entry again,
 * as plain text: pino fails on an error that is frozen, or whose stack throws.
 */
function writeSafely(logger: Logger, level: LogLevel, object: object, message: string | undefined): void {
  try {
    write(logger, level, object, message);
  } catch {
    try {
      write(logger, level, plainEntry(object), message);
    } catch {
      // The failure of a logger can't be logged.
    }
  }
}

function write(logger: Logger, level: LogLevel, object: object, message: string | undefined): void {
  // Without the second argument rather than with undefined: console and bunyan would write that.
  const result: unknown = message === undefined ? logger[level](object) : logger[level](object, message);
  if (result instanceof Promise) result.catch(ignore);
}

/** Whether a person runs this process in a terminal. A pod may have a terminal that nobody watches. */
export function isRunByHand(env: NodeJS.ProcessEnv): boolean {
  return process.stderr.isTTY && !env['KUBERNETES_SERVICE_HOST'];
}

/** The value of a variable; undefined if it is unset or empty. @throws {TypeError} if it is not one of the values */
function oneOfIn<T extends string>(env: NodeJS.ProcessEnv, variable: string, values: readonly T[]): T | undefined {
  const given = env[variable] || undefined;
  const value = values.find((each) => each === given);
  if (value === given) return value;
  throw new TypeError(`${variable} is ${JSON.stringify(given)}; give one of ${values.join(', ')}`);
}

function ignore(): void {}

function ofLevels<Method>(method: (level: LogLevel) => Method): Record<LogLevel, Method> {
  return { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
}

/** An error given as the object itself is logged as `err`, as pino does. */
function fieldsOf(about: unknown): object {
  try {
    if (about instanceof Error) return { err: about };
  } catch {
    // A Proxy may refuse to show its prototype, which `instanceof` reads.
  }
  return typeof about === 'object' && about !== null ? membersOf(about) : {};
}

/** Anything but a text, such as a number, is described in words. An object has its members in the entry. */
function messageOf(about: unknown, text: unknown): string | undefined {
  const message = text ?? (typeof about === 'object' ? undefined : about);
  return message === undefined || typeof message === 'string' ? message : inspectSafely(message);
}

/** Errors of our own writes to stderr: the stream emits each of them after the callback of the write. */
const failedWrites = new WeakSet<Error>();

/** When the reader of stderr has gone (EPIPE), or its disk is full, lines are lost, and nothing else. */
function writeToStderr(line: string): void {
  process.stderr.write(line, (error) => {
    if (error == null) return;
    failedWrites.add(error);
    if (!process.stderr.listeners('error').includes(ignoreFailedWrite)) process.stderr.on('error', ignoreFailedWrite);
  });
}

/** An error of someone else's write still ends the process, as it would without this listener. */
function ignoreFailedWrite(error: Error): void {
  if (!failedWrites.has(error) && process.stderr.listenerCount('error') === 1) throw error;
}
