/**
 * Where the log lines of a service go: JSON on stderr, or a logger that takes its arguments in pino's order.
 */

/** Writes one entry: what it is about, then the message. */
export type LogMethod = (object: object, message?: string) => void;

/** What Postern logs to; `pino()` is one. */
export interface Logger {
  debug: LogMethod;
  info: LogMethod;
  warn: LogMethod;
  error: LogMethod;
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/**
 * Resolves the `logger` option.
 *
 * @param option a logger, `false` for none, or undefined for JSON lines on stderr from level `info` up
 * @throws {TypeError} when one of the four methods is missing
 */
export function createLogger(option: Logger | false | undefined, service: string): Logger {
  if (option === undefined) return createJsonLogger(service, (line) => process.stderr.write(line));
  if (option === false) return { debug: ignore, info: ignore, warn: ignore, error: ignore };
  for (const level of LEVELS) {
    if (typeof option?.[level] !== 'function') throw new TypeError(`logger has no method "${level}"; give debug, info, warn and error, or false`);
  }
  return option;
}

/**
 * A logger that writes one JSON object a line: `level`, `time` (ISO 8601), `service`, what was given, `msg`.
 * Errors keep their type, message and stack. Debug entries are dropped.
 */
export function createJsonLogger(service: string, write: (line: string) => void): Logger {
  const at =
    (level: string): LogMethod =>
    (object, message) => {
      write(`${formatEntry({ level, time: new Date().toISOString(), service }, object, message)}\n`);
    };
  return { debug: ignore, info: at('info'), warn: at('warn'), error: at('error') };
}

/** A logger that adds `bindings` to every entry. */
export function bindLogger(logger: Logger, bindings: object): Logger {
  const bound = (level: (typeof LEVELS)[number]): LogMethod => (object, message) => logger[level]({ ...bindings, ...fieldsOf(object) }, message);
  return { debug: bound('debug'), info: bound('info'), warn: bound('warn'), error: bound('error') };
}

/** Whether entries of a level go nowhere, so that none need be made. */
export function isSilent(logger: Logger, level: 'debug' | 'error'): boolean {
  return logger[level] === ignore;
}

/** Logs without ever throwing: a broken logger must not take a request down. */
export function logSafely(logger: Logger, level: 'debug' | 'warn' | 'error', object: object, message: string): void {
  try {
    const result: unknown = logger[level](object, message);
    if (result instanceof Promise) result.catch(ignore);
  } catch {
    // Nothing is left to tell anyone with.
  }
}

function ignore(): void {}

/** The head comes first, and nothing given can pose as it. */
function formatEntry(head: object, object: object, message: string | undefined): string {
  try {
    return JSON.stringify({ ...head, ...fieldsOf(object), ...head, ...(message === undefined ? {} : { msg: message }) }, replaceValue);
  } catch {
    // Cycles, throwing getters and the like.
    return JSON.stringify({ ...head, msg: message ?? '', entry: inspectSafely(object) });
  }
}

function inspectSafely(object: object): string {
  try {
    return process.getBuiltinModule('node:util').inspect(object, { depth: 2 });
  } catch {
    return 'unprintable';
  }
}

/** An error given as the object itself is logged as `err`, as pino does. */
function fieldsOf(object: object): object {
  return object instanceof Error ? { err: object } : object;
}

function replaceValue(_key: string, value: unknown): unknown {
  if (value instanceof Error) return describeError(value);
  return typeof value === 'bigint' ? String(value) : value;
}

function describeError(error: Error): object {
  const { cause } = error;
  return { type: error.name, ...error, message: error.message, stack: error.stack, ...(cause === undefined ? {} : { cause: cause instanceof Error ? describeError(cause) : cause }) };
}
