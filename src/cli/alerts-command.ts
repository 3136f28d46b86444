/* `postern alerts`: rules for Prometheus that watch an application. */

import { writeAlerts } from './alert-rules.js';
import { parseCommand, type Outcome, type Command } from './command.js';
import { loadMonitoredApp } from './module.js';

const usage = `Usage: postern alerts MODULE

Prints alerting rules for the application that MODULE exports as its default,
for rule_files of Prometheus. They watch the job of the application's name and
don't count its monitoring endpoints: the share of requests that fail, the
slowest hundredth by route, event loop lag, memory near its limit, failing
health, instances that don't answer, and calls of other services that fail.
`;

export const alerts: Command = { usage, run };

/** @throws {Error} when the module can't be used */
async function run(args: string[]): Promise<Outcome> {
  const { positionals } = parseCommand(args, {}, ['MODULE']);
  const { name } = await loadMonitoredApp(positionals[0] ?? '');
  return { text: writeAlerts(name) };
}
