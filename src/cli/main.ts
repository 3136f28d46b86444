/* The `postern` command: picks the subcommand, prints its result, and turns any error into one line and exit code 2. */

import { once } from 'node:events';
import { nearestName } from '../base/nearest-name.js';
import { FRAMEWORK_VERSION } from '../base/version.js';
import { GatewayError } from '../gateway/exporter-options.js';
import { OpenApiError } from '../openapi/operation.js';
import { alerts } from './alerts-command.js';
import { FindingError, UsageError, type Command, type CommandResult } from './command.js';
import { demo } from './demo-command.js';
import { errors } from './errors-command.js';
import { gateway } from './gateway-command.js';
import { k8s } from './k8s-command.js';
import { live } from './live-command.js';
import { logLevel } from './log-level-command.js';
import { newService } from './new-command.js';
import { openapi } from './openapi-command.js';
import { complain, messageOf, takeStdout } from './output.js';
import { ping } from './ping-command.js';
import { profile } from './profile-command.js';
import { routes } from './routes-command.js';
import { why } from './why-command.js';

/** Each command, in the order of the overview. */
const LISTED: readonly (readonly [call: string, about: string, command: Command])[] = [
  ['routes MODULE', 'the routes of an application, and what became public', routes],
  ['gateway MODULE', 'the public routes as the configuration of a gateway', gateway],
  ['openapi MODULE', 'an OpenAPI document, and what broke for clients', openapi],
  ['errors MODULE', 'the error codes, and whether services agree on them', errors],
  ['k8s MODULE', 'an application as manifests for Kubernetes', k8s],
  ['alerts MODULE', 'rules for Prometheus that watch an application', alerts],
  ['ping URL', 'the mesh below a service, drawn', ping],
  ['live URL', 'a page that keeps showing the mesh below a service', live],
  ['why URL...', 'what failed in the last 15 minutes, and what it follows from', why],
  ['profile URL', 'what a service computes, or what its heap holds, into a file', profile],
  ['log-level URL LEVEL', 'what a service writes to its log, for a while', logLevel],
  ['new DIR', 'a service to start from', newService],
  ['demo', 'three services that call each other, on loopback', demo],
];
const COMMANDS = new Map(LISTED.map(([call, , command]) => [call.replace(/ .*/, ''), command]));

const OVERVIEW = `Usage: postern COMMAND [ARGUMENT]...

Commands:
${LISTED.map(([call, about]) => `  ${call}${gapAfter(call)}${about}\n`).join('')}
postern COMMAND --help explains one. Exit codes: 0, 1 for a finding, 2 for wrong
usage or a module that can't be loaded.
`;

/** The space up to the second column, in a line of its own if the call is too long. */
function gapAfter(call: string): string {
  return call.length > 16 ? `\n${' '.repeat(19)}` : ' '.repeat(17 - call.length);
}

/** Errors that exit with 1, because they are findings about an application, rather than wrong usage. */
const FINDING_ERRORS = [FindingError, GatewayError, OpenApiError];

async function dispatch(name: string | undefined, args: string[]): Promise<CommandResult> {
  if (name === 'help' && args.length > 0) return dispatch(args[0], ['--help']);
  if (name === undefined || ['help', '--help', '-h'].includes(name)) return { text: OVERVIEW };
  if (name === '--version' || name === '-v') return { text: `${FRAMEWORK_VERSION}\n` };
  const command = COMMANDS.get(name);
  if (command === undefined) {
    const nearest = nearestName(name, [...COMMANDS.keys(), 'help', '--help', '--version']);
    const guess = nearest === undefined ? '' : `did you mean ${nearest}? `;
    throw new Error(`unknown command ${JSON.stringify(name)}; ${guess}give one of ${[...COMMANDS.keys()].join(', ')}`);
  }
  if (args.includes('--help') || args.includes('-h')) return { text: command.usage };
  return command.run(args);
}

/** @param args the arguments after `postern`; ends the process with 0, 1 for a finding, 2 for wrong usage */
export async function main(args: string[]): Promise<never> {
  // Timers or servers that a module started would keep the process alive.
  process.exit(await runCommand(args));
}

async function runCommand([name, ...args]: string[]): Promise<number> {
  const print = takeStdout();
  const release = guardProcess();
  try {
    const { text, finding = false, close } = await dispatch(name, args);
    const stopped = close && Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    await print(text);
    release();
    await stopped;
    await close?.();
    return finding ? 1 : 0;
  } catch (error) {
    const hint = error instanceof UsageError ? `; see postern ${name} --help` : '';
    await complain(`${messageOf(error)}${hint}`);
    release();
    return FINDING_ERRORS.some((type) => error instanceof type) ? 1 : 2;
  }
}

/**
 * Keeps a user's module, which runs in this process, from deciding how the command ends.
 *
 * Until the process is released, `process.exit` throws, and an error that nobody catches does not end the process: an
 * application whose port is taken can't listen, but still has its routes. If nothing keeps the process alive before the
 * command is done, it ends with exit code 2; it complains of the last such error, or of a module that waits for ever.
 *
 * @returns releases the process
 */
function guardProcess(): () => void {
  const { exit } = process;
  let failure: unknown = 'the module waits for what never comes';
  const onUncaught = (error: unknown): void => {
    failure = error;
  };
  const onExit = (): void => {
    void complain(messageOf(failure));
    process.exitCode = 2;
  };
  process.exit = () => {
    throw new Error('it called process.exit');
  };
  process.on('uncaughtException', onUncaught).once('exit', onExit);
  return () => {
    process.exit = exit;
    process.off('uncaughtException', onUncaught).off('exit', onExit);
  };
}
