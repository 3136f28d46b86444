/**
 * The `postern` command: picks the subcommand, prints what it came to, and turns any error into one line and exit
 * code 2.
 */

import { createRequire } from 'node:module';
import { UsageError, type Command, type Outcome } from './command.js';
import { guardProcess } from './guard.js';
import { complain, messageOf, takeStdout } from './output.js';

/** What the overview says of a subcommand, and how it is loaded: when it is called, and not before. */
interface Entry {
  readonly operand: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** In the order of the overview. */
const COMMANDS: Readonly<Record<string, Entry>> = {
  routes: {
    operand: 'MODULE',
    summary: 'the routes of an application, and what became public',
    load: () => import('./routes-command.js'),
  },
  gateway: {
    operand: 'MODULE',
    summary: 'the public routes as the configuration of a gateway',
    load: () => import('./gateway-command.js'),
  },
  openapi: {
    operand: 'MODULE',
    summary: 'an OpenAPI document, and what broke for clients',
    load: () => import('./openapi-command.js'),
  },
  errors: {
    operand: 'MODULE',
    summary: 'the error codes, and whether services agree on them',
    load: () => import('./errors-command.js'),
  },
  k8s: {
    operand: 'MODULE',
    summary: 'an application as manifests for Kubernetes',
    load: () => import('./k8s-command.js'),
  },
  alerts: {
    operand: 'MODULE',
    summary: 'rules for Prometheus that watch an application',
    load: () => import('./alerts-command.js'),
  },
  ping: {
    operand: 'URL',
    summary: 'the mesh below a service, drawn',
    load: () => import('./ping-command.js'),
  },
  live: {
    operand: 'URL',
    summary: 'a page that keeps showing the mesh below a service',
    load: () => import('./live-command.js'),
  },
  demo: {
    operand: '',
    summary: 'three services that call each other, on loopback',
    load: () => import('./demo-command.js'),
  },
};

function overview(): string {
  const entries = Object.entries(COMMANDS).map(
    ([name, { operand, summary }]) => [`${name} ${operand}`, summary] as const,
  );
  const width = Math.max(...entries.map(([call]) => call.length));
  return `Usage: postern COMMAND [ARGUMENT]...

Commands:
${entries.map(([call, summary]) => `  ${call.padEnd(width)}   ${summary}`).join('\n')}

postern COMMAND --help explains one. Exit codes: 0, 1 for a finding, 2 for wrong
usage or a module that can't be loaded.
`;
}

async function dispatch(name: string | undefined, args: string[]): Promise<Outcome> {
  if (name === '--help' || name === '-h') return { text: overview(), exitCode: 0 };
  if (name === '--version' || name === '-v') return { text: `${ownVersion()}\n`, exitCode: 0 };
  if (name === undefined || !Object.hasOwn(COMMANDS, name))
    throw new Error(
      `${name === undefined ? 'no command' : `unknown command ${JSON.stringify(name)}`}; give one of ${Object.keys(COMMANDS).join(', ')}`,
    );
  const command = await (COMMANDS[name] as Entry).load();
  if (args.includes('--help') || args.includes('-h')) return { text: command.usage, exitCode: 0 };
  try {
    return await command.run(args);
  } catch (error) {
    throw error instanceof UsageError ? new Error(`${error.message}; see postern ${name} --help`) : error;
  }
}

/** @param args what stands behind `postern`; ends the process with 0, 1 for a finding, 2 for wrong usage */
export async function main(args: string[]): Promise<never> {
  // What a module started would keep the process alive.
  process.exit(await runCommand(args));
}

async function runCommand([name, ...args]: string[]): Promise<number> {
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
