/* `postern ping`: the mesh below a service, drawn. */

import { parseChoice, parseCommand, parseWhole, UsageError, type Command, type Outcome } from './command.js';
import { drawDot, drawMermaid, drawTree, type Draw } from './drawings.js';
import { askMesh, DEFAULT_DEPTH, parseTarget, walkMesh } from './mesh.js';
import { toJson } from './output.js';

const usage = `Usage: postern ping URL [--depth N] [--format FORMAT] [--json] [--timeout MS]

Asks a service for the services that it is connected to, and draws them with
status and time. Exits with 1 if one of them did not answer 200.

  URL                http://host:port/<service>/, or that of its ping endpoint
  --depth N          how many levels to go down, from 0 to 100; 3 unless given
  --format FORMAT    tree (unless given), json, mermaid or dot
  --json             the same as --format json
  --timeout MS       how long a level may take; 2000 unless given
`;

export const ping: Command = { usage, run };

const MAX_DEPTH = 100;
const MAX_TIMEOUT_MS = 600_000;
const FORMATS = ['tree', 'json', 'mermaid', 'dot'] as const;
const DRAWINGS: Readonly<Record<(typeof FORMATS)[number], Draw>> = {
  tree: drawTree,
  json: (_service, { response }) => toJson(response),
  mermaid: drawMermaid,
  dot: drawDot,
};

/** @throws {UsageError} for a URL that names no service, and for wrong options */
async function run(args: string[]): Promise<Outcome> {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseCommand(
    args,
    { depth: text, format: text, json: { type: 'boolean' }, timeout: text },
    ['URL'],
  );
  const { service, base } = parseTarget(positionals[0] ?? '');
  const depth = parseWhole('depth', values.depth ?? DEFAULT_DEPTH, 0, MAX_DEPTH);
  const format = parseChoice('format', values.format ?? (values.json === true ? 'json' : 'tree'), FORMATS);
  if (values.json === true && format !== 'json')
    throw new UsageError(`--json and --format ${format} are two formats; give one`);
  const levelTimeoutMs = parseWhole('timeout', values.timeout ?? '2000', 1, MAX_TIMEOUT_MS);

  const root = await askMesh({ service, base, depth, levelTimeoutMs });
  const answered =
    root.status_code === 200 && [...walkMesh(service, root)].every(({ entry }) => entry.status_code === 200);
  return { text: DRAWINGS[format](service, root), finding: !answered };
}
