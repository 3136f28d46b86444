/* `postern live`: the mesh below a service as a page on loopback, until the process is told to stop. */

import { startLive, type LivePage } from '../live/live-server.js';
import type { MeshEdge, MeshReport } from '../live/track.js';
import type { PingEntry } from '../monitor/ping-document.js';
import { defineCommand, untilSignal, whole, type Command } from './command.js';
import { askMesh, DEFAULT_DEPTH, parseTarget, servicesBelow, type Target } from './mesh.js';
import { toVisible } from './output.js';

const usage = `Usage: postern live URL [--depth N] [--port P]

Serves a page on loopback that shows the mesh below a service and keeps showing
it: who answers, how fast, since when, and what changed. Prints its URL.

  URL         http://host:port/<service>/, or the URL of its ping endpoint
  --depth N   how many levels to go down, from 0 to 20; default: 3
  --port P    port of the page; default: a free one
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

/** As many as a page can show, and more than anybody can read. */
const MAX_EDGES = 1000;
const MAX_CHARS = 200;

/** An edge, and those that are listed below it. */
interface Branch {
  readonly edge: MeshEdge;
  readonly below: Branch[];
}

/**
 * Lists every edge once, however many ways lead to it, at the place that is nearest to the asked service. The
 * connections of a service are listed below the first edge over which it reported them.
 */
export function toReport(service: string, answer: PingEntry): MeshReport {
  const root: Branch = { edge: toEdge(null, service, 0, answer), below: [] };
  const expanded = new Set<string>();
  let edges = 1;
  // Level by level: the nearer a service is to the asked one, the more levels below it are in its answer.
  const queue = [{ branch: root, name: service, entry: answer }];
  for (const { branch, name, entry } of queue) {
    const below = servicesBelow(entry.response);
    if (below.length === 0 || expanded.has(name)) continue;
    expanded.add(name);
    for (const [to, answered] of below) {
      edges += 1;
      if (edges > MAX_EDGES) continue;
      const child = { edge: toEdge(name, to, branch.edge.level + 1, answered), below: [] };
      branch.below.push(child);
      queue.push({ branch: child, name: to, entry: answered });
    }
  }
  return { service: toText(service), edges: [...flatten(root)], omitted: Math.max(0, edges - MAX_EDGES) };
}

function* flatten({ edge, below }: Branch): Generator<MeshEdge> {
  yield edge;
  for (const branch of below) yield* flatten(branch);
}

function toEdge(from: string | null, to: string, level: number, entry: PingEntry): MeshEdge {
  const { response, status_code: status, request_time } = entry;
  const [, ms] = /^(\d{1,9}) ms$/.exec(request_time) ?? [];
  return {
    from: from === null ? null : toText(from),
    to: toText(to),
    level,
    status,
    ms: ms === undefined ? null : Number(ms),
    reason: 'description' in response ? toText(response.description) : '',
  };
}

function toText(text: string): string {
  const chars = Array.from(text.slice(0, 2 * MAX_CHARS));
  return toVisible(chars.length > MAX_CHARS ? `${chars.slice(0, MAX_CHARS - 1).join('')}…` : text);
}
