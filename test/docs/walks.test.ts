/**
 * The sessions in the documents go as printed: on a page with files or commands, each file is written, each command is
 * typed, and what it prints is compared, from top to bottom in one folder.
 *
 * - `ts file=src/app.ts` writes a file (any language); `part=yes` adds to it.
 * - `sh` runs in a shell that stays open; the block `text` after it is what it prints.
 * - `sh terminal=2` types into another terminal and waits until its `text` has been printed there. What runs there is
 *   stopped with Ctrl+C before.
 * - `sh needs=nginx` is left out on a machine without that program, and where only root may run it.
 *
 * `npm install` takes the packed package and the libraries of test/package.json from the disk. Ports in the documents
 * are replaced by free ones.
 *
 * @module-tag package
 * @module-tag curl
 * @module-tag slow
 */

import { execFileSync, spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { findBlocks, findPages, isAsPrinted, ROOT } from '../support/markdown.js';
import { findNode24 } from '../support/node24.js';
import { packPackage } from '../support/packed.js';
import { freePorts } from '../support/ports.js';

/** Ports that the documents name. */
const PORTS = ['8000', '8001', '8002', '8080', '4318', '9090'];
const node24 = findNode24();
const pages = findPages().filter((page) => findBlocks(page).some(({ meta }) => meta['file'] !== undefined));

let tools = '';
beforeAll(async () => {
  tools = mkdtempSync(join(tmpdir(), 'postern-walk-'));
  const { tarball } = await packPackage();
  const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
  writeFileSync(join(tools, 'npm'), `#!/usr/bin/env bash
if [ "$1" = install ] || [ "$1" = i ]; then
  shift; words=()
  for word in "$@"; do
    case $word in
      postern) words+=(${tarball}) ;;
      -*) words+=("$word") ;;
      *) name=$word; [ -d "${ROOT}test/node_modules/$name" ] || name=../../node_modules/$word; words+=("file:${ROOT}test/node_modules/$name") ;;
    esac
  done
  exec ${npm} install --silent --no-audit --no-fund --prefer-offline "\${words[@]}" > /dev/null
fi
exec ${npm} "$@"
`);
  chmodSync(join(tools, 'npm'), 0o755);
}, 240_000);
afterAll(() => rmSync(tools, { recursive: true, force: true }));

/** Whether a program is there, and this user may start it as the page does. */
function canRun(program: string | undefined): boolean {
  if (program === undefined) return true;
  return process.getuid?.() === 0 && spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** Longer than a command takes on a machine that does much else: what cannot end is noticed by other means. */
const LIMIT_MS = 240_000;

/** One terminal: a shell that reads what is typed. */
class Terminal {
  readonly #shell: ChildProcessWithoutNullStreams;
  #printed = '';
  #isBusy = false;
  #hasEnded = false;

  constructor(cwd: string) {
    const path = [tools, node24, dirname(process.execPath), process.env['PATH']].join(delimiter);
    const env = { ...process.env, PATH: path, HOME: cwd, NO_COLOR: '1', CI: undefined, LOG_FORMAT: 'text' };
    this.#shell = spawn('bash', ['--norc'], { cwd, env, detached: true });
    this.#shell.once('close', () => (this.#hasEnded = true));
    // With a pipe for each, what is printed to stderr could arrive after the end of its command. A shell without a
    // terminal ends with the program that Ctrl+C ends, unless it has a trap.
    this.#shell.stdin.on('error', () => undefined).write('exec 2>&1; trap : INT\n');
    this.#shell.stdout.on('data', (chunk) => (this.#printed += String(chunk)));
  }

  /** Process group of the shell and of what it runs. */
  get #pid(): number {
    return this.#shell.pid ?? expect.unreachable('there is no bash');
  }

  /** Types a command, and waits for what is read from all that it has printed so far; undefined: not yet. */
  async #type<Result>(command: string, read: (printed: string) => Result | undefined): Promise<Result> {
    this.#printed = '';
    this.#shell.stdin.write(command);
    const isDone = (): boolean | string => read(this.#printed) !== undefined || this.#hasEnded || this.#printed;
    await expect.poll(isDone, { timeout: LIMIT_MS, message: command }).toBe(true);
    return read(this.#printed) ?? expect.unreachable(`the shell has ended: ${command}${this.#printed}`);
  }

  /** Types a command and waits until it has ended. */
  async run(command: string): Promise<string> {
    // A program that read its input would read the command for the end.
    const typed = `{\n${command}\n} < /dev/null\necho "<end $?>"\n`;
    const printed = await this.#type(typed, (text) => /^([^]*?)<end \d+>\n/.exec(text)?.[1]);
    // npm warns of the machine's own settings.
    return printed.replace(/^npm (?:warn|notice).*\n/gm, '');
  }

  /** Stops what runs with Ctrl+C, types a command that goes on, and waits until it has printed this. */
  async start(command: string, printed: string): Promise<void> {
    if (this.#isBusy) {
      process.kill(-this.#pid, 'SIGINT');
      await this.run('true');
    }
    this.#isBusy = true;
    await this.#type(`${command} < /dev/null\n`, (text) => isAsPrinted(text, printed) || undefined);
  }

  close(): void {
    process.kill(-this.#pid, 'SIGKILL');
  }
}

test.for(pages)('%s goes as printed', { timeout: 2 * LIMIT_MS }, async (page, { skip }) => {
  skip(node24 === undefined, 'npm has no Node.js 24 for this system');
  const free = await freePorts(PORTS.length);
  const replaced = (text: string): string =>
    text.replace(/\b(?:8000|8001|8002|8080|4318|9090)\b/g, (port) => String(free[PORTS.indexOf(port)]));
  const cwd = mkdtempSync(join(tmpdir(), 'postern-session-'));
  const terminals = new Map<string, Terminal>();
  onTestFinished(() => {
    for (const terminal of terminals.values()) terminal.close();
    rmSync(cwd, { recursive: true, force: true });
  });
  const terminalOf = (name: string): Terminal => {
    const terminal = terminals.get(name) ?? new Terminal(cwd);
    terminals.set(name, terminal);
    return terminal;
  };
  for (const { place, language, meta, code, output = '' } of findBlocks(page)) {
    if (meta['file'] !== undefined) {
      const file = join(cwd, meta['file']);
      mkdirSync(dirname(file), { recursive: true });
      (meta['part'] === undefined ? writeFileSync : appendFileSync)(file, replaced(code));
    } else if (language === 'sh' && meta['run'] !== 'no' && canRun(meta['needs'])) {
      const terminal = terminalOf(meta['terminal'] ?? '1');
      if (meta['terminal'] !== undefined) await terminal.start(replaced(code.trim()), replaced(output));
      else {
        const printed = await terminal.run(replaced(code.trim()));
        if (!isAsPrinted(printed, replaced(output))) expect(printed.trim(), place).toBe(replaced(output).trim());
      }
    }
  }
});
