/**
 * Which core runs what: the measured process has one of its own, and the load comes from the other.
 */

import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

const MEASURED_CORE = '0';
const LOAD_CORE = '1';

/** Whether processes can be pinned: `taskset` is part of util-linux. */
export const canPin = availableParallelism() > 1 && isInstalled('taskset', '--version');

/** Whether wrk is there; it prints its version with a status of 1. */
export const hasWrk = isInstalled('wrk', '--version');

/**
 * The command line that runs a program on the measured core.
 *
 * @param {readonly string[]} command
 * @returns {[string, string[]]}
 */
export function onMeasuredCore(command) {
  return pinned(MEASURED_CORE, command);
}

/**
 * The command line that runs a program beside the measured core.
 *
 * @param {readonly string[]} command
 * @returns {[string, string[]]}
 */
export function onLoadCore(command) {
  return pinned(LOAD_CORE, command);
}

/** @returns {[string, string[]]} */
function pinned(core, command) {
  const [file, ...args] = canPin ? ['taskset', '-c', core, ...command] : command;
  return [file, args];
}

function isInstalled(command, argument) {
  return spawnSync(command, [argument], { stdio: 'ignore' }).error === undefined;
}
