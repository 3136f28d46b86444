/*
 * What an application closes behind its last request: databases, queues and the like.
 */

import { within } from '../base/deadline.js';
import { logSafely, type Logger } from '../base/log.js';

/**
 * Runs the hooks one after the other. One that fails does not keep the next from running; one that hangs must not keep
 * the process.
 *
 * @param timeoutMs for all of them
 * @returns whether each has ended
 */
export async function runCloseHooks(
  hooks: readonly (() => unknown)[],
  timeoutMs: number,
  logger: Logger,
): Promise<boolean> {
  let ended = 0;
  const run = async (): Promise<void> => {
    for (const hook of hooks) {
      try {
        await hook();
      } catch (error) {
        logSafely(logger, 'error', { err: error }, 'close hook failed');
      }
      ended += 1;
    }
  };
  await within(timeoutMs, run());
  if (ended < hooks.length) logSafely(logger, 'error', { hook: ended + 1, timeout_ms: timeoutMs }, 'close hook hangs');
  return ended === hooks.length;
}
