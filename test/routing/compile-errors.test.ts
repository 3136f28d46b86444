/**
 * Mistakes that the compiler finds: the last line of its message says what to do.
 *
 * @module-tag package
 */

import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';

type TypeScript = typeof import('../node_modules/typescript/lib/typescript.js');
const root = fileURLToPath(new URL('../', import.meta.url));
const { default: ts } = (await import(createRequire(`${root}package.json`).resolve('typescript'))) as {
  default: TypeScript;
};

const HEAD = `import { z } from 'zod';
import { ApiError, defineEndpoint, endpoint, NotFound, Postern, publicFacing, reply } from 'postern';
import type { Context, RouteGroup } from 'postern';
void [ApiError, defineEndpoint, endpoint, NotFound, publicFacing, reply];
export type Used = [Context, RouteGroup];
const User = z.object({ id: z.number(), name: z.string() });
const app = new Postern('users');
const getUser = defineEndpoint('GET', '/users/:id', { response: User });
void [app, getUser];
`;

type Settings = Pick<import('../node_modules/typescript/lib/typescript.js').CompilerOptions, 'experimentalDecorators' | 'strict'>;
const LEGACY: Settings = { experimentalDecorators: true };
/** As in a new project of NestJS, or in one that comes from JavaScript. */
const LOOSE: Settings = { strict: false };

/** Code, and the end of the last message; null for none. */
const cases: readonly (readonly [what: string, code: string, lastLine: string | null, settings?: Settings])[] = [
  [
    'a wrong field of a decorated method',
    'export class V { @endpoint({ response: User }) get(_ctx: Context) { return { id: 1, nam: "x" }; } }',
    "Property 'name' is missing in type '{ id: number; nam: string; }' but required in type '{ readonly id: number; readonly name: string; }'.",
  ],
  [
    'a status that is not declared',
    'app.put("/x", { response: { 201: User, 204: null } }, () => reply({ id: 1, name: "x" }, { status: 202 }));',
    `is not assignable to type '"response does not have the status of this reply: add it, { 202: schema }, or throw an ApiError"'.`,
  ],
  [
    'an unusual status that is not declared',
    'app.put("/x", { response: User }, () => reply("x", { status: 418 }));',
    `is not assignable to type '"response does not have the status of this reply: add it, { 202: schema }, or throw an ApiError"'.`,
  ],
  [
    'a spread promise',
    'app.post("/x", (ctx) => ({ ...ctx.json(), id: 1 }));',
    `is not assignable to type '"this is the spread of a promise, without its value: await it first, { ...(await ctx.json()) }"'.`,
  ],
  [
    'a shape in place of a schema',
    'app.post("/x", { body: { name: z.string() } }, () => "x");',
    `Type '{ name: z.ZodString; }' is not assignable to type '"these are several schemas: make them one, z.object({ ... })"'.`,
  ],
  [
    'a method in lower case',
    'app.route("/x", { get: () => "x" });',
    `is not assignable to type '"write this method in upper case, { GET: handler }"'.`,
  ],
  [
    'a shared endpoint in lower case',
    'defineEndpoint("get", "/x");',
    `Argument of type '"get"' is not assignable to parameter of type '"GET"'.`,
  ],
  [
    'a call without the parameters of its path',
    'void app.service("a").call(getUser);',
    'Expected 2-3 arguments, but got 1.',
  ],
  [
    'a wrong field',
    'app.get("/x", { response: User }, () => ({ id: 1, nam: "x" }));',
    `Property 'name' is missing in type '{ readonly id: 1; readonly nam: "x"; }' but required in type '{ readonly id: number; readonly name: string; }'.`,
  ],
  [
    'a view without a method',
    'app.view("/x", class { fetch() { return ""; } });',
    `is not assignable to type '"a view has one or more of the methods get, post, put, patch, delete, head, options"'.`,
  ],
  [
    'a Map that a view returns',
    'app.view("/x", class { get() { return new Map([[1, 2]]); } });',
    `is not assignable to type '"JSON loses a Map, a Set, a Blob, a bigint, a function or a promise in this: convert it, call it, await it"'.`,
  ],
  [
    'a bigint',
    'app.get("/x", () => 1n);',
    `is not assignable to type '"JSON loses a Map, a Set, a Blob, a bigint, a function or a promise in this: convert it, call it, await it"'.`,
  ],
  [
    'an error code by hand',
    'new ApiError("x", { errorCode: { name: "mine", value: 1 } });',
    `Property '[madeByDefineErrorCodes]' is missing in type '{ name: string; value: number; }' but required in type 'ErrorCode<string>'.`,
  ],
  [
    'an error code by hand in a class',
    'export class Mine extends ApiError { static override errorCode = { name: "mine", value: 1 }; }',
    `Property '[madeByDefineErrorCodes]' is missing in type '{ name: string; value: number; }' but required in type 'ErrorCode<string>'.`,
  ],
  [
    'a parameter that the path lacks',
    'app.get("/users/:id", (ctx) => ctx.params.name);',
    "Property 'name' does not exist on type '{ readonly id: string; }'.",
  ],
  [
    'a parameter that the path lacks, in publicFacing',
    'app.get("/users/:id", publicFacing((ctx) => ctx.params.name));',
    "Property 'name' does not exist on type '{ readonly id: string; }'.",
  ],
  ['an unknown option', 'new Postern("a", { bodylimit: 5 });', "Did you mean to write 'bodyLimit'?"],
  [
    'an unknown option of a route',
    'app.get("/x", { bodylimit: 5 }, () => "x");',
    "Did you mean to write 'bodyLimit'?",
  ],
  [
    'a spread promise after options',
    'app.post("/x", { timeout: 5 }, (ctx) => ({ ...ctx.json(), id: 1 }));',
    `is not assignable to type '"this is the spread of a promise, without its value: await it first, { ...(await ctx.json()) }"'.`,
  ],
  [
    'a parameter that the path of a call lacks',
    'void app.service("a").call(getUser, { params: { name: "x" } });',
    "'name' does not exist in type '{ readonly id: string | number; }'.",
  ],
  ['a port that is a text', 'void app.listen({ port: "8000" });', "Type 'string' is not assignable to type 'number'."],
  ['a port of run that is a text', 'void app.run({ port: "8000" });', "Type 'string' is not assignable to type 'number'."],
  ['a misspelt port', 'void app.listen({ prot: 8000 });', "'prot' does not exist in type 'ListenOptions'."],
  ['methods by variable', 'for (const method of ["GET", "PUT"]) app.route("/x", { [method]: () => "x" });', null],
  [
    'an error that is returned',
    'app.get("/x", { response: User }, () => new NotFound()); app.get("/y", { response: User }, async (ctx) => (ctx.path === "/" ? new NotFound() : { id: 1, name: "x" }));',
    null,
  ],
  [
    'literals of a response',
    'const K = z.object({ k: z.enum(["a", "b"]) }); app.get("/x", { response: K }, () => ({ k: "a" }));',
    null,
  ],
  [
    'a group from elsewhere',
    'const items = (g: RouteGroup): void => void g.get("/x", () => "x"); app.group("/v1", items); app.group("/v1", { tags: ["a"] }, items);',
    null,
  ],
  [
    'decorators with experimentalDecorators',
    'export class V { @publicFacing get(ctx: Context) { return ctx.path; } @publicFacing() put() { return "x"; } @publicFacing({ params: [] }) post() { return "x"; } @endpoint({ response: User }) delete() { return { id: 1, name: "x" }; } }',
    null,
    LEGACY,
  ],
  [
    'standard decorators',
    'export class V { @publicFacing get(ctx: Context) { return ctx.path; } @publicFacing() put() { return "x"; } @endpoint({ response: User }) @publicFacing delete() { return { id: 1, name: "x" }; } }',
    null,
  ],
  [
    'a parameter that the path lacks, without strict',
    'app.get("/users/:id", (ctx) => ctx.params.name);',
    "Property 'name' does not exist on type '{ readonly id: string; }'.",
    LOOSE,
  ],
  [
    'a parameter that the path of a route and a view lacks, without strict',
    'app.route("/users/:id", { GET: (ctx) => ctx.params.id, PUT: (ctx) => ctx.params.name }).view("/users/:id", { get: (ctx) => ctx.params.id });',
    "Property 'name' does not exist on type '{ readonly id: string; }'.",
    LOOSE,
  ],
  [
    'handlers that are declared elsewhere, without strict',
    'function list(ctx: Context) { return { path: ctx.path }; } app.get("/", list).get("/:id", publicFacing(list)).post("/", { body: User }, list).route("/x", { GET: list }).view("/:id", { get: list });',
    null,
    LOOSE,
  ],
  [
    'calls, without strict',
    'const put = defineEndpoint("PUT", "/x", { body: User, response: { 200: User, 204: null } }); export const calls = [app.service("a").call(getUser, { params: { id: 7 } }), app.service("a").call(put, { body: { id: 7, name: "x" } })];',
    null,
    LOOSE,
  ],
];

/** All programs read the same files. */
const parsed = new Map<string, import('../node_modules/typescript/lib/typescript.js').SourceFile | undefined>();
let messages: ReadonlyMap<string, readonly string[]>;

beforeAll(() => {
  messages = new Map(
    [undefined, LEGACY, LOOSE].flatMap((settings) => compile(cases.filter((each) => each[3] === settings), settings)),
  );
}, 60_000);

function compile(all: typeof cases, settings: Settings = {}): [string, string[]][] {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
  const { options: own } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  // As users have it: the sources would take longer to check.
  const options = { ...own, paths: { postern: ['../dist/index.d.ts'] } };
  const files = new Map(all.map(([, code], i) => [`${root}types/virtual-${i}.ts`, HEAD + code]));
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  host.getSourceFile = (name, ...rest) => {
    if (files.has(name)) return getSourceFile(name, ...rest);
    if (!parsed.has(name)) parsed.set(name, getSourceFile(name, ...rest));
    return parsed.get(name);
  };
  host.readFile = (name) => files.get(name) ?? readFile(name);
  host.fileExists = (name) => files.has(name) || fileExists(name);
  const exactOptionalPropertyTypes = settings.strict !== false;
  const program = ts.createProgram([...files.keys()], { ...options, exactOptionalPropertyTypes, ...settings }, host);
  return all.map(([what], i) => {
    const found = program.getSemanticDiagnostics(program.getSourceFile(`${root}types/virtual-${i}.ts`));
    return [what, found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))];
  });
}

test.for(cases)('%s', ([what, , lastLine]) => {
  const found = messages.get(what) ?? [];
  if (lastLine === null) return expect(found).toEqual([]);
  expect(found).toHaveLength(1);
  const [message = ''] = found;
  expect(message.split('\n').at(-1)?.trim().endsWith(lastLine), message).toBe(true);
});
