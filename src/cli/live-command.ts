/* `postern live`: the mesh below a service as a page on loopback, until the process is told to stop. */

import { startLive, type LivePage } from '../live/live-server.js';
import { parseCommand, parseWhole, untilSignal, type Command, type Outcome } from './command.js';
import { toReport } from './mesh-report.js';
import { askMesh, DEFAULT_DEPTH, parseTarget, type Target } from './mesh.js';

const usage = `Usage: postern live URL [--depth N] [--port P]

Serves a page on loopback that shows the mesh below a service and keeps showing
it: who answers, how fast, since when, and what changed. Prints its address.

  URL         http://host:port/<service>/, or that of its ping endpoint
  --depth N   how many levels to go down, from 0 to 20; 3 unless given
  --port P    where the page is; a free port unless given
`;

export const live: Command = { usage, run };

const MAX_DEPTH = 20;

/** @throws {UsageError} for a URL that names no service, and for wrong options; `EADDRINUSE` for a taken port */
async function run(args: string[]): Promise<Outcome> {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseCommand(args, { depth: text, port: text }, ['URL']);
  const target = parseTarget(positionals[0] ?? '');
  const depth = parseWhole('depth', values.depth ?? DEFAULT_DEPTH, 0, MAX_DEPTH);
  const port = parseWhole('port', values.port ?? '0', values.port === undefined ? 0 : 1, 65_535);
  const { url, close } = await showMesh(target, depth, port);
  const words = `${target.service} and the mesh below it, live:\n${url}\n\nCtrl-C stops it.\n`;
  return { text: words, running: untilSignal(close) };
}

const LEVEL_TIMEOUT_MS = 2_000;

/**
 * Serves the page for a service.
 *
 * @param port 0 picks a free one
 * @throws `EADDRINUSE` when the port is taken
 */
export function showMesh({ service, base }: Target, depth: number, port: number): Promise<LivePage> {
  return startLive({
    service,
    depth,
    port,
    timeoutMs: (depth + 1) * LEVEL_TIMEOUT_MS,
    ask: async () => toReport(service, await askMesh({ service, base, depth, levelTimeoutMs: LEVEL_TIMEOUT_MS })),
  });
}
