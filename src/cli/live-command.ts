/* `postern live`: the mesh below a service as a page on loopback, until the process is told to stop. */

import { startLive, type LivePage } from '../live/live-server.js';
import { defineCommand, untilSignal, whole, type Command } from './command.js';
import { toReport } from './mesh-report.js';
import { askMesh, DEFAULT_DEPTH, parseTarget, type Target } from './mesh.js';

const usage = `Usage: postern live URL [--depth N] [--port P]

Serves a page on loopback that shows the mesh below a service and keeps showing
it: who answers, how fast, since when, and what changed. Prints its address.

  URL         http://host:port/<service>/, or that of its ping endpoint
  --depth N   how many levels to go down, from 0 to 20; 3 unless given
  --port P    where the page is; a free port unless given
`;

const OPTIONS = { depth: whole(0, 20, DEFAULT_DEPTH), port: whole(1, 65_535, 0) };

export const live: Command = defineCommand(usage, 'URL', OPTIONS, async ({ depth, port }, text) => {
  const target = parseTarget(text);
  const { url, close } = await showMesh(target, depth, port);
  const words = `${target.service} and the mesh below it, live:\n${url}\n\nCtrl-C stops it.\n`;
  return { text: words, running: untilSignal(close) };
});

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
