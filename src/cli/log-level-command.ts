/* `postern log-level`: changes for a while what a running service writes to its log. */

import { LOG_LEVELS } from '../base/log.js';
import { DEFAULT_LEVEL_SECONDS, MAX_LEVEL_SECONDS } from '../monitor/log-level.js';
import { defineCommand, text, UsageError, whole, type Command } from './command.js';
import { askMonitor } from './monitor.js';

const usage = `Usage: postern log-level URL LEVEL [--for SECONDS] [--token TOKEN]

Changes the level of a service's default logger for a while. Then it is what it
was before.

  URL             http://host:port/<service>/ of its monitor listener
  LEVEL           the least urgent level: debug, info, warn or error
  --for SECONDS   how long, from 1 to ${MAX_LEVEL_SECONDS}; default: ${DEFAULT_LEVEL_SECONDS}
  --token TOKEN   the token of the service's option diagnostics, to ask from
                  elsewhere than its own machine
`;

const OPTIONS = { for: whole(1, MAX_LEVEL_SECONDS), token: text };

export const logLevel: Command = defineCommand(usage, 'URL LEVEL', OPTIONS, async (values, given, level) => {
  const { for: seconds = DEFAULT_LEVEL_SECONDS, token } = values;
  if (!LOG_LEVELS.some((each) => each === level))
    throw new UsageError(`LEVEL is ${JSON.stringify(level)}; give one of ${LOG_LEVELS.join(', ')}`);
  const target = `log-level/?level=${level}&seconds=${seconds}`;
  const remedies = { 404: 'give the URL of its monitor listener; a logger of its own has levels of its own' };
  const { service } = await askMonitor(given, 'PUT', target, token, remedies);
  return { text: `${service} logs from ${level} up for ${seconds} s\n` };
});
