/* `postern live`: the mesh below a service as a page on loopback, until the process is told to stop. */

import { startLive, type LivePage } from '../live/live-server.js';
import type { MeshEdge, MeshReport } from '../live/track.js';
import type { PingEntry } from '../monitor/ping-document.js';
import { defineCommand, repeated, text, whole, type Command } from './command.js';
import { askMesh, DEFAULT_DEPTH, parseServiceUrl, servicesBelow, type MeshRoot } from './mesh.js';
import { toVisible } from './output.js';
import { askAll, toLines } from './why-command.js';

const usage = `Usage: postern live URL [--depth N] [--port P] [--monitor URL]...

Serves a page on loopback that shows the mesh below a service and keeps showing
it: who answers, how fast, since when, and what changed in the last hour.
Prints its URL.

  URL             http://host:port/<service>/, or the URL of its ping endpoint
  --depth N       how many levels to go down, from 0 to 20; default: 3
  --port P        port of the page; default: a free one
  --monitor URL   http://host:port/<service>/ of a monitor listener, once for
                  each service: the page also shows what failed or was slow
                  there
`;

const OPTIONS = { depth: whole(0, 20), port: whole(1, 65_535), monitor: repeated(text) };

export const live: Command = defineCommand(usage, 'URL', OPTIONS, async (values, given) => {
  const { depth = DEFAULT_DEPTH, port = 0, monitor = [] } = values;
  const asked = parseServiceUrl(given);
  for (const url of monitor) parseServiceUrl(url);
  const { url, close } = await showMesh(asked, depth, port, monitor);
  const words = `${asked.service} and the mesh below it, live:\n${url}\n\nCtrl-C stops it.\n`;
  return { text: words, close };
});

const LEVEL_TIMEOUT_MS = 2_000;

/**
 * Serves the page for a service.
 *
 * @param monitors URLs of monitor listeners, which say what failed
 * @param port 0 picks a free one
 * @throws `EADDRINUSE` when the port is taken
 */
export function showMesh(
  asked: MeshRoot,
  depth: number,
  port: number,
  monitors: readonly string[] = [],
): Promise<LivePage> {
  const { service } = asked;
  const timeoutMs = (depth + 1) * LEVEL_TIMEOUT_MS;
  const ask = async (): Promise<MeshReport> => {
    const [answer, failed] = await Promise.all([askMesh(asked, depth, LEVEL_TIMEOUT_MS), askAll(monitors)]);
    return { ...toReport(service, answer), failures: monitors.length === 0 ? null : toLines(failed) };
  };
  return startLive({ service, depth, port, timeoutMs, ask });
}

/** As many as a page can show, and more than anybody can read. */
const MAX_EDGES = 1000;
const MAX_CHARS = 200;

/**
 * Lists every edge once, however many ways lead to it, at the place that is nearest to the asked service. The
 * connections of a service are listed below the first edge over which it reported them.
 */
function toReport(service: string, answer: PingEntry): Omit<MeshReport, 'failures'> {
  const below = new Map<PingEntry, [string, PingEntry][]>();
  const expanded = new Set<string>();
  let omitted = 0;
  // Level by level: the nearer a service is to the asked one, the more levels below it are in its answer.
  const queue: [string, PingEntry][] = [[service, answer]];
  for (const [name, entry] of queue) {
    const answers = servicesBelow(entry.response);
    if (answers.length === 0 || expanded.has(name)) continue;
    expanded.add(name);
    const listed = answers.slice(0, MAX_EDGES - queue.length);
    below.set(entry, listed);
    queue.push(...listed);
    omitted += answers.length - listed.length;
  }
  const list = (from: string | null, to: string, level: number, entry: PingEntry): MeshEdge[] => [
    toEdge(from, to, level, entry),
    ...(below.get(entry) ?? []).flatMap(([name, each]) => list(to, name, level + 1, each)),
  ];
  return { service: toText(service), edges: list(null, service, 0, answer), omitted };
}

/** @param from null for the asked service */
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
  const chars = Array.from(text.slice(0, 2 * MAX_CHARS + 1));
  return toVisible(chars.length > MAX_CHARS ? `${chars.slice(0, MAX_CHARS - 1).join('')}…` : text);
}
