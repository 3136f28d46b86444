/** Runs the built `postern` command. */

import { fork, spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** What a run of the command left behind. */
export interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where and with what it runs; variables that are undefined are unset. */
export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The built command. */
export const COMMAND: string = join(ROOT, 'dist/cli.js');

/** Starts the command; it is killed when the test ends. */
export function startCommand(
  args: readonly string[],
  { cwd, env = {} }: RunOptions = {},
): ChildProcessByStdio<null, Readable, Readable> {
  if (!existsSync(COMMAND)) throw new Error(`${COMMAND} is missing; npm run build makes it`);
  const child = spawn(process.execPath, [COMMAND, ...args], {
    cwd,
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** Runs the command to its end as a user does: in a process of its own. */
export async function runProcess(args: readonly string[], options: RunOptions = {}): Promise<Result> {
  return readAll(startCommand(args, options));
}

let host: ChildProcess | undefined;
let lastRun: Promise<unknown> = Promise.resolve();

/**
 * Runs the command to its end in a process that all runs share: a tenth of the work of {@link runProcess}.
 *
 * Not for what the end of a process decides, such as a module that listens, exits, or waits for ever.
 */
export function runCommand(
  args: readonly string[],
  { cwd = process.cwd(), env = {} }: RunOptions = {},
): Promise<Result> {
  const run = lastRun.then(async () => {
    host ??= startHost();
    host.send({ command: COMMAND, args, cwd, env: environment(env) });
    const [result] = (await once(host, 'message')) as [Result];
    return result;
  });
  lastRun = run.catch(() => undefined);
  return run;
}

/** Starts the process of {@link runCommand}; it ends with this one, and does not keep it alive. */
function startHost(): ChildProcess {
  const child = fork(join(ROOT, 'test/support/command-host.mjs'), { execArgv: [] });
  child.unref();
  child.channel?.unref();
  // This rejects the run that waits for it.
  child.once('exit', () => child.emit('error', new Error('a run ended the process of all runs; use runProcess')));
  return child;
}

/** Runs the command on a terminal, with `script` of util-linux; stdout has what stderr got as well. */
export async function runOnTerminal(args: readonly string[], { cwd, env = {} }: RunOptions = {}): Promise<Result> {
  const line = [process.execPath, COMMAND, ...args].map((word) => `'${word}'`).join(' ');
  const result = await readAll(
    spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
      cwd,
      env: environment(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  return { ...result, stdout: result.stdout.replaceAll('\r\n', '\n') };
}

/**
 * A folder with files in it, in which `postern` can be imported; removed when the test ends.
 *
 * @param copied whether the package there is another copy of it
 */
export function createProject(files: Readonly<Record<string, string>>, copied = false): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-command-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const installed = join(folder, 'node_modules/postern');
  mkdirSync(dirname(installed));
  if (copied)
    for (const part of ['dist', 'package.json']) cpSync(join(ROOT, part), join(installed, part), { recursive: true });
  else symlinkSync(ROOT, installed);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** The version that the package has. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;
}

async function readAll(child: ChildProcessByStdio<null, Readable, Readable>): Promise<Result> {
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  const code = await new Promise<number | null>((resolve, reject) => child.on('close', resolve).on('error', reject));
  return { code, stdout, stderr };
}

function environment(env: NonNullable<RunOptions['env']>): NodeJS.ProcessEnv {
  return { ...process.env, NO_COLOR: undefined, FORCE_COLOR: undefined, ...env };
}
