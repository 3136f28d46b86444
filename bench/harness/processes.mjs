/**
 * Starts processes and sees to it that none outlives the harness.
 */

import { spawn } from 'node:child_process';

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

process.on('exit', stopAll);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));

/**
 * Starts a process in a group of its own, so that what it starts in turn can be stopped with it.
 *
 * @param {[string, string[]]} command
 * @param {import('node:child_process').SpawnOptions} options
 */
export function start([file, args], options) {
  const child = spawn(file, args, { ...options, detached: true });
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.once('error', () => running.delete(child));
  return child;
}

/** Resolves when a process that was told to stop has gone. */
export async function stop(child) {
  if (!running.has(child)) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  kill(child);
  await gone;
}

/**
 * What a process writes to its standard output until it ends.
 *
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<string>}
 * @throws {Error} when it ends with anything but 0
 */
export function output(child) {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    child.once('error', reject);
    child.once('close', (code, signal) =>
      code === 0 ? resolve(text) : reject(new Error(`${child.spawnargs.join(' ')} ended with ${code ?? signal}`)),
    );
  });
}

function stopAll() {
  for (const child of running) kill(child);
}

function kill({ pid }) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has just ended by itself.
  }
}
