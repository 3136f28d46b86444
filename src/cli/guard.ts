/* Keeps a user's module, which runs in this process, from deciding how the command ends. */

import { complain, messageOf } from './output.js';

/**
 * Until the process is released, `process.exit` throws. An error that nobody catches is ignored: an application whose
 * port is taken can't listen, but still has its routes. A process that has nothing left to wait for, although the
 * module is not loaded, ends with a complaint and exit code 2.
 *
 * @returns releases the process
 */
export function guardProcess(): () => void {
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
