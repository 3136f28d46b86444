/* `postern ping`: the mesh below a service, drawn. */

import { choice, defineCommand, flag, UsageError, whole, type Command } from './command.js';
import { drawDot, drawMermaid, drawTree, type Draw } from './drawings.js';
import { askMesh, DEFAULT_DEPTH, parseTarget, walkMesh } from './mesh.js';
import { toJson } from './output.js';

const usage = `Usage: postern ping URL [--depth N] [--format FORMAT] [--json] [--timeout MS]

Asks a service for the services that it is connected to, and draws them with
status and time. Exits with 1 if one of them did not answer 200.

  URL                http://host:port/<service>/, or the URL of its ping
                     endpoint
  --depth N          how many levels to go down, from 0 to 100; default: 3
  --format FORMAT    tree, json, mermaid or dot; default: tree
  --json             the same as --format json
  --timeout MS       ms that a level may take; default: 2000
`;

const FORMATS = ['tree', 'json', 'mermaid', 'dot'] as const;
const DRAWINGS: Readonly<Record<(typeof FORMATS)[number], Draw>> = {
  tree: drawTree,
  json: (_service, { response }) => toJson(response),
  mermaid: drawMermaid,
  dot: drawDot,
};

const OPTIONS = {
  depth: whole(0, 100, DEFAULT_DEPTH),
  format: choice(FORMATS, undefined),
  json: flag,
  timeout: whole(1, 600_000, 2000),
};

export const ping: Command = defineCommand(usage, 'URL', OPTIONS, async (values, url) => {
  const { depth, json, format = json ? 'json' : 'tree', timeout: levelTimeoutMs } = values;
  const { service, base } = parseTarget(url);
  if (json && format !== 'json') throw new UsageError(`--json and --format ${format} are two formats; give one`);
  const root = await askMesh({ service, base, depth, levelTimeoutMs });
  const answered =
    root.status_code === 200 && [...walkMesh(service, root)].every(({ entry }) => entry.status_code === 200);
  return { text: DRAWINGS[format](service, root), finding: !answered };
});
