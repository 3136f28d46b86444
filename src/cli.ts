#!/usr/bin/env node
/** The `postern` command: picks the subcommand, prints what it came to, and turns any error into one line and exit code 2. */

import { createRequire } from 'node:module';
import { UsageError, type Command, type Outcome } from './cli/command.js';
import { guardProcess } from './cli/guard.js';
import { complain, messageOf, takeStdout } from './cli/output.js';

const USAGE = `Usage: postern COMMAND [ARGUMENT]...

Commands:
  routes MODULE    the routes of an application, and what became public
  gateway MODULE   the public routes as the configuration of a gateway
  ping URL         the mesh below a service, drawn
  demo             three services that call each other, on loopback

postern COMMAND --help explains one. Exit codes: 0, 1 for a finding, 2 for wrong
usage or a module that can't be loaded.
`;

/** Each is loaded when it is called. */
const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map<string, () => Promise<Command>>([
  ['routes', () => import('./cli/routes-command.js')],
  ['gateway', () => import('./cli/gateway.js')],
  ['ping', () => import('./cli/ping-command.js')],
  ['demo', () => import('./cli/demo.js')],
]);

async function dispatch(name: string | undefined, args: string[]): Promise<Outcome> {
  if (name === '--help' || name === '-h') return { text: USAGE, exitCode: 0 };
  if (name === '--version' || name === '-v') return { text: `${ownVersion()}\n`, exitCode: 0 };
  const command = await COMMANDS.get(name ?? '')?.();
  if (command === undefined) throw new Error(`${name === undefined ? 'no command' : `unknown command ${JSON.stringify(name)}`}; see postern --help`);
  if (args.includes('--help') || args.includes('-h')) return { text: command.usage, exitCode: 0 };
  try {
    return await command.run(args);
  } catch (error) {
    throw error instanceof UsageError ? new Error(`${error.message}; see postern ${name} --help`) : error;
  }
}

async function main([name, ...args]: string[]): Promise<number> {
  const print = takeStdout();
  const release = guardProcess();
  try {
    const { text, complaint, exitCode, running } = await dispatch(name, args);
    await print(text);
    if (complaint !== undefined) await complain(complaint);
    release();
    await running;
    return exitCode;
  } catch (error) {
    await complain(messageOf(error));
    release();
    return 2;
  }
}

/** Read here, so that the framework's chunk stays whole: importing the package costs a file less. */
function ownVersion(): string {
  const { version } = createRequire(import.meta.url)('../package.json') as { version: string };
  return version;
}

// What a module started would keep the process alive.
void main(process.argv.slice(2)).then((code) => process.exit(code));
