/** `postern openapi`: an application as an OpenAPI document, or what broke since one was saved. */

import { readFileSync } from 'node:fs';
import { toOpenApi, type OpenApiDocument, type OpenApiSource } from '../openapi/document.js';
import { OpenApiError } from '../openapi/error.js';
import { parseChoice, parseCommand, UsageError, type Outcome } from './command.js';
import { loadApp } from './module.js';
import { findBreaks, isDocument } from './openapi-changes.js';
import { messageOf, paint, toJson, toVisible } from './output.js';

export const usage: string = `Usage: postern openapi MODULE [--public] [--version VERSION] [--server URL]...
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

/** @throws {Error} when the module or the file can't be used, or an option is wrong */
export async function run(args: string[]): Promise<Outcome> {
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
  const saved = values.check === undefined ? undefined : readSaved(values.check);
  const { app } = await loadApp(positionals[0] ?? '');
  try {
    const scope = values.public === true ? 'public' : 'all';
    // Of another copy of the package, perhaps; toOpenApi looks before it reads.
    const document = toOpenApi(app as OpenApiSource, { scope, version, servers: values.server });
    if (saved === undefined) return { text: toJson(document), exitCode: 0 };
    const breaks = findBreaks(saved, JSON.parse(JSON.stringify(document)) as OpenApiDocument);
    return {
      text: breaks.map((line) => `${paint('red', toVisible(line))}\n`).join(''),
      exitCode: breaks.length > 0 ? 1 : 0,
    };
  } catch (error) {
    if (error instanceof OpenApiError) return { text: '', complaint: error.message, exitCode: 1 };
    throw error;
  }
}

function readSaved(file: string): OpenApiDocument {
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file} can't be read: ${messageOf(error)}`, { cause: error });
  }
  if (!isDocument(document)) throw new Error(`${file} is no OpenAPI document; make one with postern openapi MODULE`);
  return document;
}
