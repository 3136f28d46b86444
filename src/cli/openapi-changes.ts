/**
 * Finds what broke for the clients of an OpenAPI document: what they may no longer send, and what they no longer get.
 *
 * Both documents may be anyone's; what is not in the form that is looked for counts as absent.
 */

import type { OpenApiDocument } from '../openapi/document.js';
import { shapeOf } from '../openapi/path-template.js';

/** Recursive schemas are compared this far down. */
const MAX_DEPTH = 12;
const METHODS: readonly string[] = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'];

export function isDocument(value: unknown): value is OpenApiDocument {
  return isObject(value) && typeof value['openapi'] === 'string' && isObject(value['paths']);
}

/** One line for each break, in the order of the document before. */
export function findBreaks(before: OpenApiDocument, after: OpenApiDocument): string[] {
  const now = operationsOf(after);
  return [...operationsOf(before)].flatMap(([key, { name, operation }]) => {
    const other = now.get(key);
    if (other === undefined) return [`${name} was removed`];
    const comparison = new Comparison(before, after);
    comparison.input(operation, other.operation);
    comparison.replies(operation, other.operation);
    return comparison.breaks.map((line) => `${name} ${line}`);
  });
}

/** By method and the shape of the path: parameters may be renamed. */
function operationsOf({ paths }: OpenApiDocument): Map<string, { readonly name: string; readonly operation: unknown }> {
  const operations = new Map<string, { readonly name: string; readonly operation: unknown }>();
  for (const [path, item] of Object.entries(paths)) {
    const { additionalOperations } = asObject(item);
    const named = METHODS.map((method) => [method.toUpperCase(), asObject(item)[method]] as const);
    for (const [method, operation] of [...named, ...Object.entries(asObject(additionalOperations))])
      if (isObject(operation)) operations.set(`${method} ${shapeOf(path)}`, { name: `${method} ${path}`, operation });
  }
  return operations;
}

class Comparison {
  readonly breaks: string[] = [];
  readonly #before: OpenApiDocument;
  readonly #after: OpenApiDocument;

  constructor(before: OpenApiDocument, after: OpenApiDocument) {
    this.#before = before;
    this.#after = after;
  }

  input(before: unknown, after: unknown): void {
    const known = parametersOf(before);
    for (const [key, { required, schema }] of parametersOf(after)) {
      const was = known.get(key);
      if (required && was?.required !== true) this.breaks.push(`now requires ${key}`);
      else if (was !== undefined) this.#taken(was.schema, schema, key);
    }
    const [old, now] = [bodyOf(before), bodyOf(after)];
    if (now.required && !old.required) this.breaks.push('now requires a body');
    this.#taken(old.schema, now.schema, 'body');
  }

  replies(before: unknown, after: unknown): void {
    const now = asObject(asObject(after)['responses']);
    for (const [status, response] of Object.entries(asObject(asObject(before)['responses']))) {
      if (now[status] === undefined) {
        // Whatever was a success is one still, where nothing more is said.
        if (!(status.startsWith('2') && now['2XX'] !== undefined)) this.breaks.push(`no longer declares ${status}`);
        continue;
      }
      this.#given(schemaOf(response), schemaOf(now[status]), `${status}`);
    }
  }

  /** What clients send. */
  #taken(before: unknown, after: unknown, at: string, depth = 0): void {
    const [old, now] = this.#membersOf(before, after);
    if (old === undefined || now === undefined || depth > MAX_DEPTH) return;
    if (!isSameType(old.type, now.type)) this.breaks.push(`takes another type at ${at}`);
    for (const [name, schema] of now.properties) {
      if (now.required.has(name) && !old.required.has(name)) this.breaks.push(`now requires ${at}/${name}`);
      else this.#taken(old.properties.get(name), schema, `${at}/${name}`, depth + 1);
    }
    this.#taken(old.items, now.items, `${at}/*`, depth + 1);
  }

  /** What clients get. */
  #given(before: unknown, after: unknown, at: string, depth = 0): void {
    const [old, now] = this.#membersOf(before, after);
    if (old === undefined || now === undefined || depth > MAX_DEPTH) return;
    if (!isSameType(old.type, now.type)) this.breaks.push(`gives another type at ${at}`);
    for (const [name, schema] of old.properties) {
      const other = now.properties.get(name);
      if (other === undefined) this.breaks.push(`no longer gives ${at}/${name}`);
      else if (old.required.has(name) && !now.required.has(name))
        this.breaks.push(`no longer always gives ${at}/${name}`);
      else this.#given(schema, other, `${at}/${name}`, depth + 1);
    }
    this.#given(old.items, now.items, `${at}/*`, depth + 1);
  }

  #membersOf(before: unknown, after: unknown): [Members | undefined, Members | undefined] {
    return [membersOf(this.#before, before), membersOf(this.#after, after)];
  }
}

interface Members {
  readonly type: unknown;
  readonly properties: Map<string, unknown>;
  readonly required: Set<string>;
  readonly items: unknown;
}

/** A schema with those that hold beside it. */
function membersOf(document: OpenApiDocument, schema: unknown): Members | undefined {
  if (!isObject(schema)) return undefined;
  const members = {
    type: undefined as unknown,
    properties: new Map<string, unknown>(),
    required: new Set<string>(),
    items: undefined as unknown,
  };
  const add = (part: unknown, depth: number): void => {
    if (!isObject(part) || depth > MAX_DEPTH) return;
    members.type ??= part['type'];
    members.items ??= part['items'];
    for (const [name, member] of Object.entries(asObject(part['properties']))) members.properties.set(name, member);
    for (const name of listOf(part['required'])) members.required.add(String(name));
    if (typeof part['$ref'] === 'string') add(resolve(document, part['$ref']), depth + 1);
    for (const beside of listOf(part['allOf'])) add(beside, depth + 1);
  };
  add(schema, 0);
  return members;
}

function resolve(document: OpenApiDocument, reference: string): unknown {
  const name = /^#\/components\/schemas\/([^/]+)$/.exec(reference)?.[1];
  return name === undefined ? undefined : asObject(asObject(document.components)['schemas'])[name];
}

function parametersOf(operation: unknown): Map<string, { readonly required: boolean; readonly schema: unknown }> {
  const entries = listOf(asObject(operation)['parameters']).map(asObject);
  const beside = entries.filter((parameter) => parameter['in'] !== 'path');
  return new Map(
    beside.map((parameter) => [
      `${String(parameter['in'])} ${JSON.stringify(parameter['name'])}`,
      { required: parameter['required'] === true, schema: parameter['schema'] },
    ]),
  );
}

function bodyOf(operation: unknown): { readonly required: boolean; readonly schema: unknown } {
  const body = asObject(asObject(operation)['requestBody']);
  return { required: body['required'] === true, schema: schemaOf(body) };
}

/** Of the first form that there is: a document of ours has one, and of errors two that say the same. */
function schemaOf(holder: unknown): unknown {
  return asObject(Object.values(asObject(asObject(holder)['content']))[0])['schema'];
}

function isSameType(before: unknown, after: unknown): boolean {
  return before === undefined || after === undefined || JSON.stringify(before) === JSON.stringify(after);
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function asObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
