/** The types that the entry points of the package declare, as the compiler reads them from `dist`. */

import { createRequire } from 'node:module';
import { join } from 'node:path';
import type TypeScript from '../node_modules/typescript/lib/typescript.js';
import packageJson from '../../package.json' with { type: 'json' };
import { ROOT } from './markdown.js';

const ts = createRequire(join(ROOT, 'test/package.json'))('typescript') as typeof TypeScript;

/** An entry point. */
export interface Door {
  /** `postern/metrics` */
  readonly name: string;
  readonly exported: readonly Exported[];
}

interface Exported {
  readonly name: string;
  /** Whether it is exported as a value, too. */
  readonly isValue: boolean;
  readonly symbol: TypeScript.Symbol;
}

/** A file that calls the entry points; relative to the root. */
const CALLING = 'test/types/inferred.ts';

const targets = Object.entries(packageJson.exports).flatMap(([path, target]) => {
  return typeof target === 'string' ? [] : [{ name: `postern${path.slice(1)}`, ...target }];
});
const paths = Object.fromEntries(targets.map(({ name, types }) => [name, [join(ROOT, types)]]));
const program = ts.createProgram([...Object.values(paths).flat(), join(ROOT, CALLING)], {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  types: ['node'],
  paths,
});
const checker = program.getTypeChecker();

export const doors: readonly Door[] = await Promise.all(
  targets.map(async ({ name, types, default: code }) => {
    const values = Object.keys((await import(join(ROOT, code))) as object);
    const module = checker.getSymbolAtLocation(program.getSourceFile(join(ROOT, types)) as TypeScript.SourceFile);
    const exported = checker.getExportsOfModule(module as TypeScript.Symbol).map((each): Exported => {
      return { name: each.name, isValue: values.includes(each.name), symbol: resolveAlias(each) };
    });
    return { name, exported };
  }),
);

/** The signatures that {@link CALLING} calls. */
const called = new Set<TypeScript.Node | undefined>();
findCalls(program.getSourceFile(join(ROOT, CALLING)) as TypeScript.SourceFile);

function findCalls(node: TypeScript.Node): void {
  if (ts.isCallExpression(node) || ts.isNewExpression(node))
    called.add(checker.getResolvedSignature(node)?.declaration);
  ts.forEachChild(node, findCalls);
}

function resolveAlias(symbol: TypeScript.Symbol): TypeScript.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function isOurs({ declarations = [] }: TypeScript.Symbol): boolean {
  return declarations.some((declaration) => declaration.getSourceFile().fileName.includes('/dist/'));
}

/**
 * The types that declarations of an entry point mention and the entry point does not export, each with a place:
 * `AnyMetric, in Registry.get`.
 *
 * Left out are aliases in a conditional type of another alias: the compiler writes the branch that it takes, never the
 * name. A symbol as the name of a member is left out, too.
 */
export function findNamelessTypes({ exported }: Door): string[] {
  const symbols = exported.map(({ symbol }) => symbol);
  const found = new Map<string, string>();
  const search = (node: TypeScript.Node, place: string, inAlias: boolean, isComputed: boolean): void => {
    if (isPrivate(node) || ts.isComputedPropertyName(node)) return;
    const at = isMember(node) && node.name !== undefined ? `${place.split('.')[0]}.${node.name.getText()}` : place;
    const mentioned = mentionedBy(node);
    if (mentioned !== undefined) {
      const symbol = resolveAlias(checker.getSymbolAtLocation(mentioned) as TypeScript.Symbol);
      const hasName = symbol.flags & ts.SymbolFlags.TypeParameter || !isOurs(symbol) || symbols.includes(symbol);
      if (!hasName && !(isComputed && symbol.flags & ts.SymbolFlags.TypeAlias)) found.set(symbol.name, at);
    }
    const computed = isComputed || (inAlias && ts.isConditionalTypeNode(node));
    ts.forEachChild(node, (child) => search(child, at, inAlias, computed));
  };
  for (const { name, declarations = [] } of symbols)
    for (const declaration of declarations) search(declaration, name, ts.isTypeAliasDeclaration(declaration), false);
  return [...found].map(([name, place]) => `${name}, in ${place}`);
}

function mentionedBy(node: TypeScript.Node): TypeScript.Node | undefined {
  if (ts.isTypeReferenceNode(node)) return node.typeName;
  if (ts.isExpressionWithTypeArguments(node)) return node.expression;
  return ts.isTypeQueryNode(node) ? node.exprName : undefined;
}

function isMember(node: TypeScript.Node): node is TypeScript.ClassElement | TypeScript.TypeElement {
  return ts.isClassElement(node) || ts.isTypeElement(node);
}

function isPrivate(node: TypeScript.Node): boolean {
  if (!isMember(node)) return false;
  const isKeyword = ({ kind }: TypeScript.ModifierLike): boolean => kind === ts.SyntaxKind.PrivateKeyword;
  const modifiers = ts.canHaveModifiers(node) ? (ts.getModifiers(node) ?? []) : [];
  return modifiers.some(isKeyword) || (node.name !== undefined && ts.isPrivateIdentifier(node.name));
}

/**
 * A program that exports, without a type, every value of an entry point, every member of its types, and the result of
 * every function among them.
 */
export function writeConsumer({ name: door, exported }: Door): string {
  return [
    `import { ${exported.map(({ name, isValue }) => (isValue ? name : `type ${name}`)).join(', ')} } from '${door}';`,
    `import type { IncomingMessage, ServerResponse } from 'node:http';`,
    'declare function resultOf<A extends readonly unknown[], R>(call: (...args: A) => R): Awaited<R>;',
    'declare function callOf<A extends readonly unknown[], R>(call: (...args: A) => R): (...args: A) => R;',
    'declare function creatorOf<A extends readonly unknown[], R>(type: new (...args: A) => R): (...args: A) => R;',
    ...exported.flatMap(({ name, isValue, symbol }) => {
      const isType = (symbol.flags & ts.SymbolFlags.Type) !== 0;
      return [...(isValue ? [exportValue(name, symbol)] : []), ...(isType ? [exportMembers(name, symbol)] : [])];
    }),
    '',
  ].join('\n');
}

function exportValue(name: string, symbol: TypeScript.Symbol): string {
  const type = checker.getTypeOfSymbol(symbol);
  // The compiler writes `typeof` for a function or a class, not its signature.
  const creator = type.getConstructSignatures().length === 0 ? [] : [`creator: creatorOf(${name})`];
  const call = type.getCallSignatures().length === 0 ? [] : [`call: callOf(${name})`];
  return `export const value_${name} = { ${[...creator, ...call, ...membersOf(name, type)].join(', ')} };`;
}

function exportMembers(name: string, symbol: TypeScript.Symbol): string {
  const parameters = typeParametersOf(symbol);
  const list = (texts: readonly string[]): string => (texts.length === 0 ? '' : `<${texts.join(', ')}>`);
  const type = `${name}${list(parameters.map((parameter) => parameter.name.text))}`;
  const members = membersOf('value', checker.getDeclaredTypeOfSymbol(symbol));
  const start = `export function members_${name}${list(parameters.map((parameter) => parameter.getText()))}`;
  return `${start}(value: ${type}) { return { ${members.join(', ')} }; }`;
}

function typeParametersOf({ declarations = [] }: TypeScript.Symbol): TypeScript.TypeParameterDeclaration[] {
  const [declaration] = declarations.filter((each) => {
    return ts.isClassDeclaration(each) || ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each);
  });
  return [...(declaration?.typeParameters ?? [])];
}

/** The members of an object literal: the value of an expression, its members, and what each gives as a function. */
function membersOf(expression: string, type: TypeScript.Type): string[] {
  const members = checker.getPropertiesOfType(type).flatMap((member) => {
    const [, wellKnown] = /^__@(iterator)@/.exec(member.name) ?? [];
    if (!isOurs(member) || (/^__|^#|^prototype$/.test(member.name) && wellKnown === undefined)) return [];
    const key = wellKnown === undefined ? JSON.stringify(member.name) : `Symbol.${wellKnown}`;
    return partsOf(`of ${member.name}`, `${expression}[${key}]`, checker.getTypeOfSymbol(member));
  });
  return [...partsOf('all', expression, type), ...members];
}

function partsOf(name: string, expression: string, type: TypeScript.Type): string[] {
  const callee = checker.getNonNullableType(type);
  const isFunction = !callee.isUnion() && callee.getCallSignatures().length > 0;
  return [`'${name}': ${expression}`, ...(isFunction ? [`'${name}()': resultOf(${expression}!)`] : [])];
}

/** The generic and the overloaded functions and methods of an entry point that no line of {@link CALLING} calls. */
export function findUncalled({ exported }: Door): string[] {
  return exported.flatMap(({ name, symbol }) => {
    const types = [checker.getDeclaredTypeOfSymbol(symbol)];
    if (symbol.flags & ts.SymbolFlags.Value) types.push(checker.getTypeOfSymbol(symbol));
    const members = types.flatMap((type) => checker.getPropertiesOfType(type)).filter(isOurs);
    const signatures = [...types, ...members.map((member) => checker.getTypeOfSymbol(member))].flatMap((type) => {
      const callee = checker.getNonNullableType(type);
      return [callee.getCallSignatures(), callee.getConstructSignatures()];
    });
    return signatures.flatMap((overloads) => {
      const wanted = overloads.filter((signature) => {
        const given = signature.parameters.map((parameter) => checker.getTypeOfSymbol(parameter));
        const isCallable = given.every(({ flags }) => !(flags & ts.TypeFlags.Never));
        return isCallable && (overloads.length > 1 || signature.typeParameters !== undefined);
      });
      return wanted.map(({ declaration }) => declaration).filter((each) => each !== undefined && !called.has(each))
        .map((declaration) => `${name}: ${declaration?.getText()}`);
    });
  });
}
