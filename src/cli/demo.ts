/** `postern demo`: three services that call each other, until the process is told to stop. */

import { startDemo } from './demo-mesh.js';
import { parseCommand, parseWhole, type Outcome } from './command.js';

export const usage: string = `Usage: postern demo [--port P]

Starts three services that call each other, on loopback, and prints what to try.

  --port P   the first of three ports in a row; 8000, or free ones, unless given
`;

/** @throws `EADDRINUSE` when the ports that were asked for are taken */
export async function run(args: string[]): Promise<Outcome> {
  const { values } = parseCommand(args, { port: { type: 'string' } }, []);
  const { text, close } = await startDemo(values.port === undefined ? undefined : parseWhole('port', values.port, 1, 65_533));
  const running = new Promise<void>((resolve) => {
    const stop = (): void => resolve(close());
    process.once('SIGINT', stop).once('SIGTERM', stop);
  });
  return { text, exitCode: 0, running };
}
