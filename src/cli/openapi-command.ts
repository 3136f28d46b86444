/* `postern openapi`: an application as an OpenAPI document, or what broke since one was saved. */

import { toOpenApi, type OpenApiSource } from '../openapi/document.js';
import { OpenApiError } from '../openapi/path-template.js';
import {
  Finding,
  parseChoice,
  parseCommand,
  readSaved,
  reportFindings,
  UsageError,
  type Command,
  type Outcome,
} from './command.js';
import { loadApp } from './module.js';
import { findBreaks, readDocument } from './openapi-changes.js';
import { toJson } from './output.js';

const usage = `Usage: postern openapi MODULE [--public] [--version VERSION] [--server URL]...
                       [--check FILE]

Prints the OpenAPI document of the application that MODULE exports as its
default. Exits with 1, and prints no document, if it can't say something.

  --public           public operations alone
  --version VERSION  3.1 unless given, or 3.2
  --server URL       where the service can be reached; may be repeated
  --check FILE       compares with a saved document: prints what broke for
                     clients (removed operations, new required input, removed
                     statuses and members) and exits with 1; prints nothing if
                     nothing did
`;

export const openapi: Command = { usage, run };

/** @throws {Error} when the module or the file can't be used, or an option is wrong */
async function run(args: string[]): Promise<Outcome> {
  const text = { type: 'string' } as const;
  const options = {
    public: { type: 'boolean' },
    version: text,
    server: { type: 'string', multiple: true },
    check: text,
  } as const;
  const { values, positionals } = parseCommand(args, options, ['MODULE']);
  const version = parseChoice('version', values.version ?? '3.1', ['3.1', '3.2']);
  for (const url of values.server ?? [])
    if (!URL.canParse(url)) throw new UsageError(`--server is ${JSON.stringify(url)}; give a URL`);
  const { check } = values;
  const saved = check === undefined ? undefined : readSaved(check, readDocument, 'OpenAPI document', 'openapi MODULE');
  const { app } = await loadApp(positionals[0] ?? '');
  try {
    const scope = values.public === true ? 'public' : 'all';
    // The application may come from another copy of the package; toOpenApi checks what it reads.
    const text = toJson(toOpenApi(app as OpenApiSource, { scope, version, servers: values.server }));
    return saved === undefined ? { text } : reportFindings(findBreaks(saved, JSON.parse(text)));
  } catch (error) {
    throw error instanceof OpenApiError ? new Finding(error.message) : error;
  }
}
