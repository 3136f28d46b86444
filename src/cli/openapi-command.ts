/* `postern openapi`: an application as an OpenAPI document, or what broke since one was saved. */

import { findBreaks, isDocument } from '../openapi/breaks.js';
import { toOpenApi } from '../openapi/document.js';
import { choice, defineCommand, flag, parsed, repeated, reportFindings, savedBy, type Command } from './command.js';
import { loadApp } from './module.js';
import { toJson } from './output.js';

const usage = `Usage: postern openapi MODULE [--public] [--version VERSION] [--server URL]...
                       [--check FILE]

Prints the OpenAPI document of the application that MODULE exports as its
default. Exits with 1, and prints no document, if OpenAPI can't describe
a route.

  --public           only public operations
  --version VERSION  3.1 or 3.2; default: 3.1
  --server URL       where the service can be reached; may be repeated
  --check FILE       compares with a saved document: prints what broke for
                     clients (removed operations, new required input, removed
                     query parameters, statuses and members) and exits with
                     1; prints nothing if nothing did
`;

const OPTIONS = {
  public: flag,
  version: choice(['3.1', '3.2']),
  server: repeated(parsed('give a URL', (url) => (URL.canParse(url) ? url : undefined))),
  check: parsed('', savedBy('openapi MODULE', 'OpenAPI document', isDocument)),
};

export const openapi: Command = defineCommand(usage, 'MODULE', OPTIONS, async (values, file) => {
  const { version, server: servers, check: saved } = values;
  const scope = values.public ? 'public' : 'all';
  const text = toJson(toOpenApi(await loadApp(file), { scope, version, servers }));
  return saved === undefined ? { text } : reportFindings(findBreaks(saved, JSON.parse(text)));
});
