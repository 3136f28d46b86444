/**
 * Every public symbol and each of its members has a docstring, and the most used ones have an example, which compiles.
 *
 * @module-tag package
 */

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type TypeScript from '../node_modules/typescript/lib/typescript.js';
import packageJson from '../../package.json' with { type: 'json' };
import { complete } from '../support/documented-programs.js';
import { ROOT } from '../support/markdown.js';

const ts = createRequire(join(ROOT, 'test/package.json'))('typescript') as typeof TypeScript;

const MOST_USED = [
  'Postern', 'Postern.delete', 'Postern.get', 'Postern.group', 'Postern.implement',
  'Postern.listen', 'Postern.patch', 'Postern.post', 'Postern.put',
  'Postern.request', 'Postern.route', 'Postern.run', 'Postern.service', 'Postern.use', 'Postern.view',
  'ApiError', 'HttpError', 'NotFound', 'TooManyRequests', 'connect', 'defineEndpoint', 'defineErrorCodes', 'endpoint',
  'path', 'publicFacing', 'redirect', 'reply', 'Context.json', 'Context.log', 'Context.service',
  'Health.check', 'Middleware', 'ServiceClient.call', 'ServiceClient.get', 'ServiceClient.post', 'Registry.counter',
  'Registry.gauge', 'Registry.histogram', 'Counter', 'Gauge.set', 'toNginx', 'toOpenApi',
];

/** What each example has besides imports and an application. */
const GIVEN = `import helmet from 'helmet';
import { z } from 'zod';
declare const ctx: Context;
declare const auth: Middleware;
declare const queue: string[];
declare const mails: { add(mail: unknown): Promise<void> };
declare const job: Job;
declare const newOrders: () => AsyncIterable<string>;
declare const consumer: {
  on(event: 'message', take: (message: { headers: Record<string, string>; order: string }) => unknown): void;
};
interface User { id: string; name: string }
declare const users: {
  find(id: string): Promise<User>; create(user: { name: string }): User; remove(id: string): void;
  replace(id: string, user: { name: string }): User; change(id: string, user: { name?: string | undefined }): User;
  ping(signal: AbortSignal): Promise<void>;
};
const NewUser = z.object({ name: z.string() });
const Order = z.object({ id: z.string() });
const getUser = defineEndpoint('GET', '/users/:id');
void [helmet, ctx, auth, queue, users, NewUser, Order, getUser];
`;

const compilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  types: ['node'],
  paths: Object.fromEntries(Object.entries(packageJson.exports).flatMap(([path, target]) => {
    return typeof target === 'string' ? [] : [[`postern${path.slice(1)}`, [join(ROOT, target.types)]]];
  })),
};
const entries = Object.values(compilerOptions.paths).flat();
const program = ts.createProgram(entries, compilerOptions);
const checker = program.getTypeChecker();
const symbols = new Map(entries.flatMap(symbolsOf));

/** The names that an entry exports, and each with its members: `Postern`, `Postern.get`. */
function symbolsOf(entry: string): [name: string, symbol: TypeScript.Symbol][] {
  const module = checker.getSymbolAtLocation(program.getSourceFile(entry) as TypeScript.SourceFile);
  return checker.getExportsOfModule(module as TypeScript.Symbol).flatMap((exported) => {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    const types = [checker.getDeclaredTypeOfSymbol(symbol)];
    if (symbol.flags & ts.SymbolFlags.Class) types.push(checker.getTypeOfSymbol(symbol));
    const members = types
      .filter(({ flags }) => flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection))
      .flatMap((type) => checker.getPropertiesOfType(type))
      .filter((member) => !/^(?:__)?#|^prototype$/.test(member.name) && isDeclaredHere(member));
    return [[symbol.name, symbol], ...members.map((member) => [`${symbol.name}.${member.name}`, member] as const)];
  }) as [string, TypeScript.Symbol][];
}

function isDeclaredHere({ declarations = [] }: TypeScript.Symbol): boolean {
  return declarations.some((declaration) => declaration.getSourceFile().fileName.includes('/dist/'));
}

const textOf = (symbol: TypeScript.Symbol): string =>
  ts.displayPartsToString(symbol.getDocumentationComment(checker));

const examplesOf = (symbol: TypeScript.Symbol | undefined): string[] =>
  (symbol?.getJsDocTags(checker) ?? [])
    .filter(({ name }) => name === 'example')
    .map(({ text }) => ts.displayPartsToString(text).trim());

test('every public symbol and member has a docstring', () => {
  expect(symbols.size).toBeGreaterThan(600);
  expect([...symbols].filter(([, symbol]) => textOf(symbol) === '').map(([name]) => name)).toEqual([]);
});

test('no docstring refers to a document that does not ship', () => {
  expect([...symbols].filter(([, symbol]) => /\bSPEC\b|\bcontract\b/i.test(textOf(symbol)))).toEqual([]);
});

test('the most used symbols have an example', () => {
  expect(MOST_USED.length).toBeGreaterThanOrEqual(40);
  expect(MOST_USED.filter((name) => examplesOf(symbols.get(name)).length === 0)).toEqual([]);
});

test('every example compiles', () => {
  const all = [...new Map([...symbols].map(([name, symbol]) => [symbol, name]))];
  const examples = all.flatMap(([symbol, name]) => examplesOf(symbol).map((code) => ({ name, code })));
  const files = new Map(examples.map(({ name, code }, i) => {
    return [join(ROOT, `test/docs/example-${i}-${name}.mts`), complete(GIVEN, code)];
  }));
  const host = ts.createCompilerHost(compilerOptions);
  const { readFile, fileExists, getSourceFile } = host;
  // The declarations of the package and of its libraries are parsed already.
  host.getSourceFile = (file, ...rest) => program.getSourceFile(file) ?? getSourceFile(file, ...rest);
  host.readFile = (file) => files.get(file) ?? readFile(file);
  host.fileExists = (file) => files.has(file) || fileExists(file);
  const compiled = ts.createProgram([...files.keys()], compilerOptions, host);
  const found = [...files.keys()].flatMap((file) => {
    const source = compiled.getSourceFile(file);
    return [...compiled.getSyntacticDiagnostics(source), ...compiled.getSemanticDiagnostics(source)];
  });
  expect(found.map(({ file, messageText }) => [file?.fileName, ts.flattenDiagnosticMessageText(messageText, '\n')]))
    .toEqual([]);
});
