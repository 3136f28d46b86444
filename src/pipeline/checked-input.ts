/*
 * Holds requests to the schemas of their route before the handler runs. Loaded with the first request of such a route.
 *
 * Parameters, query and headers are checked and reported together; the body is not even read when one of them doesn't
 * fit. How each part is read is decided when the route is compiled.
 */

import type { AnySchemas, Part } from '../endpoint/schemas.js';
import { Context, type Handler, type HandlerResult } from '../http/context.js';
import { InvalidRequest, type RequestFinding } from '../http/request.js';
import { listNames, type ListNames } from '../payload/json-schema.js';
import { check, describeFindings, toFinding, type Checked } from '../payload/schema-check.js';
import { propsOf, type SchemaIssue, type StandardProps } from '../payload/standard-schema.js';

const MAX_FINDINGS = 32;

/** Input of a handler, besides its context. */
export type Input = { [Name in Part]?: unknown };

/** A handler that takes its input. */
export type InputHandler = (ctx: Context, input: Input) => HandlerResult | Promise<HandlerResult>;

/**
 * @param what the route, for messages: `POST /users`
 * @returns the handler itself where there is no schema
 */
export function withInput(what: string, schemas: AnySchemas, handler: InputHandler): Handler {
  const heads = (['params', 'query', 'headers'] as const).flatMap((part): Checker[] => {
    const schema = propsOf(schemas[part]);
    return schema === undefined ? [] : [{ part, schema, read: READERS[part](schema) }];
  });
  const body = propsOf(schemas.body);
  if (heads.length === 0 && body === undefined) return handler as Handler;

  const readHead = (ctx: Context): Input | Promise<Input> => {
    const results = heads.map(({ part, schema, read }) => {
      const result = check(`${part} of ${what}`, schema, read(ctx));
      // If a later part fails at once, nobody awaits this one: its rejection would end the process.
      if (result instanceof Promise) result.catch(() => undefined);
      return result;
    });
    return results.some((result) => result instanceof Promise)
      ? Promise.all(results).then((settled) => toInput(heads, settled))
      : toInput(heads, results as Checked[]);
  };
  if (body === undefined)
    return (ctx) => {
      const input = readHead(ctx);
      return input instanceof Promise ? input.then((settled) => handler(ctx, settled)) : handler(ctx, input);
    };

  const where = `body of ${what}`;
  const isAlone = heads.length === 0;
  return async (ctx) => {
    const input = isAlone ? {} : await readHead(ctx);
    const result = check(where, body, Context.exchangeOf(ctx).hasBody ? await ctx.json() : undefined);
    const checked = result instanceof Promise ? await result : result;
    if (checked.issues !== undefined) throw toInvalid([{ part: 'body', issues: checked.issues }]);
    input.body = checked.value;
    return handler(ctx, input);
  };
}

interface Checker {
  readonly part: Part;
  readonly schema: StandardProps;
  readonly read: (ctx: Context) => unknown;
}

/** How a part is read for a schema. */
const READERS = {
  params: () => (ctx: Context) => ctx.params,
  query: queryReader,
  headers: () => (ctx: Context) => Object.assign(Object.create(null) as object, ctx.headers),
};

/** @throws {InvalidRequest} when any of the parts doesn't fit */
function toInput(checkers: readonly Checker[], results: readonly Checked[]): Input {
  const input: Input = {};
  const misfits: Misfit[] = [];
  for (const [index, { part }] of checkers.entries()) {
    const result = results[index];
    if (result?.issues !== undefined) misfits.push({ part, issues: result.issues });
    else input[part] = result?.value;
  }
  if (misfits.length > 0) throw toInvalid(misfits);
  return input;
}

/** A part of the request that does not fit, with one issue or more. */
interface Misfit {
  readonly part: Part;
  readonly issues: readonly SchemaIssue[];
}

/** The error with the first findings of all parts. */
function toInvalid(misfits: readonly Misfit[]): InvalidRequest {
  const [first] = misfits;
  const count = misfits.reduce((sum, { issues }) => sum + issues.length, 0);
  const toFindings = ({ part, issues }: Misfit): RequestFinding[] =>
    issues.slice(0, MAX_FINDINGS).map((issue) => ({ in: part, ...toFinding(issue) }));
  const findings = misfits.flatMap(toFindings).slice(0, MAX_FINDINGS);
  return new InvalidRequest(first && describeFindings(first.part, first.issues, count), findings);
}

/** Each name with its value, or with a list where it is repeated or the schema says so. */
function queryReader(schema: StandardProps): (ctx: Context) => Record<string, string | string[]> {
  const { named, others } = listsOf(schema);
  return (ctx) => {
    const query = Object.create(null) as Record<string, string | string[]>;
    for (const [name, value] of ctx.query) {
      const known = query[name];
      if (known === undefined) query[name] = others || named.has(name) ? [value] : value;
      else if (typeof known === 'string') query[name] = [known, value];
      else known.push(value);
    }
    return query;
  };
}

/** Which parameters a schema takes as lists; none are known if it can't give its JSON Schema. */
function listsOf(schema: StandardProps): ListNames {
  try {
    return listNames(schema.jsonSchema?.input({ target: 'draft-2020-12' }));
  } catch {
    return listNames(undefined);
  }
}
