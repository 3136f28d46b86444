/* Changes the level of the default logger for a while: `guard` decides who may ask. */

import type { Handler } from '../answer/context.js';
import { clearTimeout, setTimeout } from '../base/clock.js';
import { BadRequest } from '../base/errors.js';
import { defaultLoggerOf, LOG_LEVELS, logSafely, type Logger, type LogLevel } from '../base/log.js';

/** Maximum and default of how long the level may be another one. */
export const MAX_LEVEL_SECONDS = 3600;
export const DEFAULT_LEVEL_SECONDS = 600;

/** The handler of `PUT /<name>/log-level/?level=debug&seconds=600`; null for a logger of the user's own. */
export function createLogLevel(logger: Logger): Handler | null {
  const changed = defaultLoggerOf(logger);
  if (changed === undefined) return null;
  const usual = changed.least;
  let timer: NodeJS.Timeout | undefined;
  const change = (level: LogLevel, entry: object, message: string): void => {
    // The line is written also if neither the level before nor the one after has it.
    changed.least = 'warn';
    logSafely(logger, 'warn', { log_level: level, ...entry }, message);
    changed.least = level;
  };
  return ({ id, query }) => {
    const level = LOG_LEVELS.find((each) => each === query.get('level'));
    const given = query.get('seconds') ?? String(DEFAULT_LEVEL_SECONDS);
    const seconds = /^\d+$/.test(given) ? Number(given) : 0;
    if (level === undefined || seconds < 1 || seconds > MAX_LEVEL_SECONDS)
      throw new BadRequest(
        `Give ?level=LEVEL, one of ${LOG_LEVELS.join(', ')}, and &seconds=1 to ${MAX_LEVEL_SECONDS}.`,
      );
    clearTimeout(timer);
    change(level, { seconds, request_id: id }, 'log level changed');
    timer = setTimeout(() => change(usual, {}, 'log level restored'), seconds * 1000).unref();
    return { level, seconds };
  };
}
