/** Puts the service into an empty folder, with the packed package, and checks it while a process of its own runs it. */

import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import { checkAnswers, checkDrain, checkLog, openClients, startCollector, type Addresses } from './checks.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = ['service', 'main', 'checks', 'in-process'];
/** Libraries of the service besides Postern, with their own. */
const LIBRARIES = ['zod', 'cors', 'object-assign', 'vary'];
/** How TypeScript of each form names a file that it imports. */
const EXTENSIONS: Partial<Record<Form, string>> = { ts: '.js', 'ts-cjs': '', erasable: '.ts' };
/** Files of the libraries that nothing executes: most of their files. */
const NOT_RUN = /\/zod\/src\b|\.d\.[mc]?ts$|\.map$/;
const START_MS = 120_000;
const STOP_MS = 30_000;

/** How the files of the service are written. */
export type Form =
  /** TypeScript, whose imports name the JavaScript files. */
  | 'ts'
  /** TypeScript in a package whose modules are CommonJS. */
  | 'ts-cjs'
  /** TypeScript, whose imports name the TypeScript files. */
  | 'erasable'
  | 'esm'
  | 'cjs';

/** An error whose message a person reads, with the output of the process that failed. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

/** The package, packed and installed once, so that many folders can have it. */
export class Package {
  readonly #home = mkdtempSync(join(tmpdir(), 'postern-tools-'));
  /** A folder with the package and the libraries of the service in its `node_modules`. */
  readonly installed: string = join(this.#home, 'installed');
  readonly tarball: string;

  /** @param tarball default: the package is packed */
  constructor(tarball?: string) {
    // Tools look for the file in the folders above, too; Rolldown stops at one that includes JavaScript.
    writeFileSync(join(this.#home, 'tsconfig.json'), '{"compilerOptions":{"allowJs":true}}');
    this.tarball = tarball ?? pack(this.#home);
    mkdirSync(this.installed);
    writeFileSync(join(this.installed, 'package.json'), '{"name":"shop","private":true}');
    const install = ['install', '--offline', '--no-audit', '--no-fund', '--silent', this.tarball];
    execFileSync('npm', install, { cwd: this.installed, stdio: 'inherit' });
    for (const name of LIBRARIES) {
      const filter = (path: string): boolean => !NOT_RUN.test(path);
      cpSync(join(HERE, '../node_modules', name), join(this.installed, 'node_modules', name), { recursive: true, filter });
    }
  }

  /** @returns a new, empty place for one check */
  createPlace(): Place {
    return new Place(this, mkdtempSync(join(this.#home, 'place-')));
  }

  /** Removes everything. */
  close(): Promise<void> {
    return rm(this.#home, { recursive: true, force: true });
  }
}

/** Packs the package into a folder. @returns the tarball */
function pack(folder: string): string {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const text = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const output: unknown = JSON.parse(text);
  // npm 10 prints a list, npm 11 an object by name.
  const [{ filename } = { filename: '' }] = Object.values(output as Record<string, { filename: string }>);
  return join(folder, filename);
}

/** Folders of one check. */
export class Place {
  #count = 0;

  constructor(
    readonly packed: Package,
    readonly home: string,
  ) {}

  /** @returns a new, empty folder, which has no `node_modules` above it */
  createFolder(): string {
    const folder = join(this.home, String((this.#count += 1)));
    mkdirSync(folder);
    return folder;
  }

  /** Writes the files of the service into a new folder. @returns the folder */
  writeService(form: Form): string {
    const folder = this.createFolder();
    const type = form === 'cjs' || form === 'ts-cjs' ? 'commonjs' : 'module';
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'shop', private: true, type }));
    for (const name of SOURCES) {
      const source = readFileSync(join(HERE, `${name}.ts`), 'utf8');
      if (form in EXTENSIONS) {
        const code = source.replace(/(from '\.\/[^']+)\.js'/g, `$1${EXTENSIONS[form]}'`);
        writeFileSync(join(folder, `${name}.ts`), code);
      } else {
        const format = form === 'cjs' ? 'cjs' : 'esm';
        const options = { loader: 'ts', format, target: 'node20', platform: 'node' } as const;
        writeFileSync(join(folder, `${name}.js`), transformSync(source, options).code);
      }
    }
    return folder;
  }

  /** As {@link writeService}, with the package and the libraries installed. */
  installService(form: Form): string {
    const folder = this.writeService(form);
    cpSync(join(this.packed.installed, 'node_modules'), join(folder, 'node_modules'), { recursive: true });
    return folder;
  }

  remove(): Promise<void> {
    return rm(this.home, { recursive: true, force: true });
  }
}

/** The environment of a process that a tool runs in: without the variables of this one that change Node.js. */
function environment(node: string, more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE_V8_COVERAGE: _coverage, VITEST: _vitest, ...env } = process.env;
  const own = { PATH: `${dirname(node)}${delimiter}${env['PATH'] ?? ''}`, CI: '1' };
  return { ...env, ...own, ...more };
}

/** Runs a command to its end. @throws {ToolError} with its output if it fails */
export function run(
  node: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  command: string = node,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
    const child = spawn(command, args, { cwd, env: environment(node, env), stdio, timeout: START_MS });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(output);
      else reject(new ToolError(`${[command, ...args].join(' ')} ended with ${code ?? signal}:\n${output}`));
    });
  });
}

/** A process that runs the service. */
export class Running {
  readonly #exited: Promise<number | string | null>;
  readonly #kill: (signal: NodeJS.Signals) => void;
  /** Of the service itself, which may be the child of a tool; known once it listens. */
  #pid = NaN;
  #stdout = '';
  #stderr = '';
  #onOutput = (): void => undefined;

  private constructor(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stdout += chunk;
      this.#onOutput();
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (this.#stderr += chunk));
    this.#exited = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve(code ?? signal));
    });
    this.#kill = (signal) => void child.kill(signal);
  }

  /** @param node the version of Node.js that comes first in the PATH @param args of the command */
  static start(
    node: string,
    args: readonly string[],
    cwd: string,
    env: Readonly<Record<string, string>> = {},
    command: string = node,
  ): Running {
    return new Running(command, args, cwd, environment(node, { DRAIN_DELAY: '0', ...env }));
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Waits for a line of its standard output. @throws {ToolError} when the process ends before */
  async line(pattern: RegExp): Promise<string> {
    const found = new Promise<string>((resolve) => {
      this.#onOutput = () => {
        const [line] = pattern.exec(this.#stdout) ?? [];
        if (line !== undefined) resolve(line);
      };
      this.#onOutput();
    });
    return this.whileItRuns(Promise.race([found, this.#late(START_MS, `wrote no line like ${pattern}`)]));
  }

  /** Waits until the service listens. */
  async addresses(): Promise<Addresses> {
    const { pid, ...addresses } = JSON.parse(await this.line(/^\{"url".*\}$/m)) as Addresses & { pid: number };
    this.#pid = pid;
    return addresses;
  }

  /** @returns the result of a promise @throws {ToolError} if the process ends before */
  async whileItRuns<T>(result: Promise<T>): Promise<T> {
    return Promise.race([result, this.#exited.then((code) => this.#fail(`ended with ${code}`))]);
  }

  /** Sends a signal to the service itself: tsx kills one that does not confirm a relayed signal within 60 ms. */
  signal(signal: NodeJS.Signals): void {
    process.kill(this.#pid, signal);
  }

  /** Waits for its end. @throws {ToolError} unless it ends with 0 */
  async end(): Promise<void> {
    const code = await Promise.race([this.#exited, this.#late(STOP_MS, 'still runs 30 s after the drain')]);
    if (code !== 0) this.#fail(`ended with ${code}`);
  }

  /** Ends the process if it still runs. */
  async stop(): Promise<void> {
    this.#kill('SIGKILL');
    await this.#exited.catch(() => undefined);
  }

  #fail(what: string): never {
    throw new ToolError(`the service ${what}\n${this.#stdout}\n${this.#stderr}`);
  }

  async #late(ms: number, what: string): Promise<never> {
    await new Promise((resolve) => setTimeout(resolve, ms).unref());
    return this.#fail(what);
  }
}

/** How a process is checked. */
export interface ServiceOptions {
  readonly command?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Runs as soon as the service listens. */
  readonly whenListening?: () => Promise<void>;
  /** Lets the process use up its file descriptors, which is done before the checks. */
  readonly exhaust?: (running: Running) => Promise<void>;
}

/**
 * Runs the service and checks its answers, its drain by SIGTERM, its log and its spans.
 *
 * @throws {ToolError} with everything that is wrong
 */
export async function checkService(
  node: string,
  args: readonly string[],
  cwd: string,
  { command = node, env = {}, whenListening, exhaust }: ServiceOptions = {},
): Promise<void> {
  const collector = await startCollector();
  const running = Running.start(node, args, cwd, { ...collector.env, ...env }, command);
  try {
    const clients = await openClients(await running.addresses(), exhaust !== undefined);
    await whenListening?.();
    const answers = checkAnswers(clients, exhaust && (() => exhaust(running)));
    const problems = await running.whileItRuns(answers);
    problems.push(...(await checkDrain(clients, () => running.signal('SIGTERM'))));
    await running.end();
    const errors = running.stderr.split('\n').filter((line) => /^\{.*"level":"error"/.test(line));
    problems.push(...checkLog(errors), ...(exhaust !== undefined ? [] : collector.check()));
    if (problems.length > 0) throw new ToolError(problems.join('\n'));
  } catch (error) {
    if (error instanceof ToolError) throw error;
    throw new ToolError(`${String(error)}\n${running.stderr}`);
  } finally {
    await running.stop();
    collector.close();
  }
}
