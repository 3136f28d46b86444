#!/usr/bin/env node
/** The `postern` command. */

import { parseArgs } from 'node:util';
import { startDemo } from './demo.js';

const USAGE = `Usage: postern COMMAND

Commands:
  demo [--port P]   three services that call each other, on loopback
`;

/** Wrong usage: one line on stderr, exit code 2. */
class UsageError extends Error {}

async function main([command, ...args]: string[]): Promise<void> {
  if (command === '--help' || command === '-h') process.stdout.write(USAGE);
  else if (command === 'demo') await demo(args);
  else throw new UsageError(command === undefined ? 'no command; see postern --help' : `unknown command "${command}"; see postern --help`);
}

async function demo(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { port: { type: 'string' } } });
  const port = values.port === undefined ? undefined : Number(values.port);
  if (port !== undefined && (!Number.isInteger(port) || port < 1 || port > 65_533)) throw new UsageError(`--port is ${values.port}; give a number from 1 to 65533`);
  const { text, close } = await startDemo(port);
  process.stdout.write(text);
  const stop = (): void => {
    void close().then(() => process.exit(0));
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`postern: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
});
