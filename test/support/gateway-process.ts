/** Runs a real nginx, HAProxy or Caddy with generated configurations, on loopback and in a directory of its own. */

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** A gateway that can be started here. */
export type GatewayName = 'nginx' | 'haproxy' | 'caddy';

/** A gateway that runs. */
export interface RunningGateway {
  /** Where it keeps what it writes. */
  readonly dir: string;
  stop(): Promise<void>;
}

/** How each is told to check a configuration, and to run it in the foreground as one process. */
const COMMANDS: Record<
  GatewayName,
  {
    check: (dir: string, file: string) => string[];
    run: (dir: string, file: string) => string[];
    whole: (text: string, dir: string) => string;
  }
> = {
  nginx: {
    check: (dir, file) => ['-t', '-q', '-p', dir, '-c', file],
    run: (dir, file) => ['-p', dir, '-c', file],
    whole: (text, dir) =>
      `daemon off; master_process off; pid ${dir}/pid; error_log stderr crit;\nevents { worker_connections 1024; }\nhttp {\naccess_log off;\n` +
      `variables_hash_max_size 4096;\nserver_names_hash_max_size 4096;\nserver_names_hash_bucket_size 128;\n` +
      `${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${dir}/${kind};`).join('\n')}\n${text}\n}\n`,
  },
  haproxy: {
    check: (_dir, file) => ['-c', '-f', file],
    run: (_dir, file) => ['-db', '-f', file],
    whole: (text) => text,
  },
  caddy: {
    check: (_dir, file) => ['validate', '--adapter', 'caddyfile', '--config', file],
    run: (_dir, file) => ['run', '--adapter', 'caddyfile', '--config', file],
    whole: (text) => `{\n  admin off\n  auto_https disable_redirects\n}\n${text}`,
  },
};

/** What the gateway says against a configuration; empty when nothing. */
export function checkGateway(name: GatewayName, text: string): string {
  const dir = mkdtempSync(join(tmpdir(), `postern-${name}-`));
  try {
    const file = writeWhole(name, text, dir);
    const { status, stdout, stderr } = spawnSync(findBinary(name), COMMANDS[name].check(dir, file), {
      env: environment(dir),
      encoding: 'utf8',
    });
    return status === 0 ? '' : `${stdout}${stderr}`.trim() || `exit status ${String(status)}`;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Starts a gateway and waits until each of its ports accepts. */
export async function startGateway(name: GatewayName, text: string, ports: readonly number[]): Promise<RunningGateway> {
  const dir = mkdtempSync(join(tmpdir(), `postern-${name}-`));
  const child = spawn(findBinary(name), COMMANDS[name].run(dir, writeWhole(name, text, dir)), {
    env: environment(dir),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exited = once(child, 'exit');
  const stopWithProcess = (): void => void child.kill('SIGKILL');
  process.once('exit', stopWithProcess);
  const stop = async (): Promise<void> => {
    process.off('exit', stopWithProcess);
    if (isRunning(child)) {
      child.kill('SIGKILL');
      await exited;
    }
    rmSync(dir, { recursive: true, force: true });
  };
  for (const port of ports) {
    for (let attempt = 0; !(await accepts(port)); attempt += 1) {
      if (!isRunning(child) || attempt === 200) {
        await stop();
        throw new Error(`${name} does not listen on port ${port}:\n${output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return { dir, stop };
}

function findBinary(name: GatewayName): string {
  const dirs = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  const found = dirs.map((dir) => join(dir, name)).find((file) => existsSync(file));
  if (found === undefined)
    throw new Error(`${name} is not installed; these tests need the Debian packages nginx-light, haproxy and caddy`);
  return found;
}

function writeWhole(name: GatewayName, text: string, dir: string): string {
  const file = join(dir, 'gateway.conf');
  writeFileSync(file, COMMANDS[name].whole(text, dir));
  return file;
}

/** Caddy keeps certificates and its last configuration under these. */
function environment(dir: string): NodeJS.ProcessEnv {
  return { ...process.env, HOME: dir, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir };
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
