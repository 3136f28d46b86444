/* The live page of a mesh: asks the service as `postern ping` does. */

import { startLive, type LivePage } from '../live/live-server.js';
import { askMesh } from './mesh.js';
import { toReport } from './mesh-report.js';
import type { Target } from './target.js';

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
