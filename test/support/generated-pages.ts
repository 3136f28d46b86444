/**
 * The files that `npm run docs` writes: the public API, the help of each command, a dashboard, the measured figures as
 * tables and as a drawing; and, outside of git, all pages in one file.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { writeDashboard } from './dashboard.js';
import { withFigures } from './figures.js';
import { findPages, readPage, ROOT, toAnchors } from './markdown.js';

const API = 'docs/reference/api';
const COMMAND_LINE = 'docs/reference/command-line.md';
const INTRODUCTION = `# API

Every name that the package exports. The page of an entry point has the declaration of each of its names. \`npm run docs\` writes these pages from \`dist\`: a change of the public API is a change of a page.
`;
const NEXT_OF_API = 'Next: [options](options.md), [routes](routes.md), [the context](context.md) in tables.\n';
const NEXT_OF_ENTRY = 'Next: [all names](../api.md), [options](../options.md), [the context](../context.md).\n';
const NEXT_OF_COMMAND_LINE = 'Next: [deployment](../guides/deployment.md), [failures](../guides/failures.md).\n';

interface Entry {
  /** `postern/metrics` */
  readonly entry: string;
  readonly page: string;
  readonly exported: readonly Exported[];
}

interface Exported {
  readonly name: string;
  readonly file: string;
  /** `metrics.md#counter` */
  readonly link: string;
}

/** The text of each page that is written, by its path. */
export function generatePages(): Record<string, string> {
  const withMeasurements = ['README.md', 'bench/README.md', 'docs/explanation/performance.md'];
  return {
    [COMMAND_LINE]: generateCommandLine(),
    ...generateApi(),
    'docs/grafana.json': writeDashboard(),
    'docs/images/overload.svg': run('bench/overload/drawing.mjs'),
    ...Object.fromEntries(withMeasurements.map((page) => [page, withFigures(readPage(page))])),
  };
}

/** Writes `docs/llms.txt`: all pages in one file, the longest ones last. */
export function writePagesInOneFile(): void {
  const all = findPages();
  const isApi = (page: string): boolean => page.startsWith(API);
  const pages = [...all.filter((page) => !isApi(page)), ...all.filter(isApi)];
  const texts = pages.map((page) => `<!-- ${page} -->\n\n${readPage(page).trim()}\n`);
  writeFileSync(join(ROOT, 'docs/llms.txt'), texts.join('\n'));
}

/** The pages of the entry points, each with its name, and what `postern/metrics` is on them. */
export function findApiPages(): { readonly entry: string; readonly page: string }[] {
  return Object.entries(packageJson.exports).flatMap(([path, target]) => {
    const entry = `postern${path.slice(1)}`;
    return typeof target === 'string' ? [] : [{ entry, page: `${API}/${entry.replace(/^.*\//, '')}.md` }];
  });
}

/** An index, and a page for each entry point. */
function generateApi(): Record<string, string> {
  const entries = findApiPages().map(({ entry, page }): Entry => {
    const { types } = packageJson.exports[entry.replace('postern', '.') as '.'];
    const exported = exportsOf(types);
    const anchors = toAnchors(exported.map(({ name }) => name));
    const link = (at: number): string => `${basename(page)}#${anchors[at]}`;
    return { entry, page, exported: exported.map((each, at) => ({ ...each, link: link(at) })) };
  });
  const index = entries.flatMap(({ entry, exported }) => {
    const rows = exported.map(({ name, file, link }) => {
      return `| [${name}](api/${link}) | ${purposeOf(declarationOf(name, file))} |`;
    });
    return [`## ${entry}\n`, `| name | what it is |\n| --- | --- |\n${rows.join('\n')}\n`];
  });
  const pages = entries.map((entry, at) => [entry.page, generateEntry(entry, entries.slice(0, at))]);
  return { [`${API}.md`]: [INTRODUCTION, ...index, NEXT_OF_API].join('\n'), ...Object.fromEntries(pages) };
}

/** @param before entry points whose declarations are not repeated */
function generateEntry({ entry, exported }: Entry, before: readonly Entry[]): string {
  const sections = exported.map(({ name, file }) => {
    for (const other of before) {
      const same = other.exported.find((each) => each.name === name && each.file === file);
      if (same !== undefined) return `## ${name}\n\nAs in [${other.entry}](${same.link}).\n`;
    }
    const declaration = declarationOf(name, file);
    const bases = exported.filter((each) => heritageOf(declaration).includes(each.name))
      .map((base) => `[${base.name}](${base.link})`);
    const more = bases.length === 0 ? '' : `\nIt has the members of ${bases.join(', ')}, too.\n`;
    return `## ${name}\n\n\`\`\`typescript\n${declaration}\n\`\`\`\n${more}`;
  });
  return [`# ${entry}\n`, ...sections, NEXT_OF_ENTRY].join('\n');
}

/** The names after `extends` and `implements`, without their type arguments. */
function heritageOf(declaration: string): string[] {
  let [line = ''] = /^(?:abstract )?(?:interface|class) .*$/m.exec(declaration) ?? [];
  while (/<[^<>]*>/.test(line)) line = line.replace(/<[^<>]*>/g, '');
  return line.split(/[^\w]+/).slice(2);
}

/** The first sentence of the comment of a declaration, for a cell of a table. */
function purposeOf(declaration: string): string {
  const [, comment = ''] = /^\/\*\*(.*?)\*\//s.exec(declaration) ?? [];
  const text = comment.replace(/^ *\* ?/gm, '').replace(/\s+/g, ' ').replace(/ @.*$/, '').trim();
  return (/^.*?[.!](?= [A-Z`]|$)/.exec(text)?.[0] ?? text).replaceAll('|', '\\|');
}

/** What a program prints. */
function run(file: string, ...args: string[]): string {
  return execFileSync(process.execPath, [join(ROOT, file), ...args], { encoding: 'utf8' });
}

/** The page as it is until its first command, and the help of each command. */
function generateCommandLine(): string {
  const help = (...args: string[]): string => run('dist/cli.js', ...args, '--help');
  const [, list = ''] = /^Commands:\n(.*?)^$/ms.exec(help()) ?? [];
  const sections = [...list.matchAll(/^ {2}([\w-]+)/gm)].map(([, name = '']) => {
    return `## postern ${name}\n\n\`\`\`text\n${help(name).trim()}\n\`\`\`\n`;
  });
  const [introduction = ''] = readPage(COMMAND_LINE).split(/^## /m);
  return [`${introduction.trim()}\n`, ...sections, NEXT_OF_COMMAND_LINE].join('\n');
}

/** `export { a, type B } from './x.js'`, `export * from './x.js'`: the names with the files that declare them, sorted. */
function exportsOf(entry: string): Omit<Exported, 'link'>[] {
  const text = readFileSync(join(ROOT, entry), 'utf8');
  const found = new Map<string, string>();
  for (const [, names, from = ''] of text.matchAll(/^export (?:type )?(?:\*|\{([^}]*)\}) from '(.*)\.js';$/gm)) {
    const file = join(dirname(entry), `${from}.d.ts`);
    if (names === undefined) for (const each of exportsOf(file)) found.set(each.name, each.file);
    else for (const [name] of names.matchAll(/\w+(?=,|\s*$)/g)) found.set(name, file);
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, file]) => ({ name, file }));
}

/**
 * The declaration of a name, overloads included, with its comment. The compiler starts only declarations in column 1.
 */
function declarationOf(name: string, file: string): string {
  const text = readFileSync(join(ROOT, file), 'utf8').replaceAll('\r\n', '\n');
  const parts = text.split(/^(?=\/\*\*)|(?<!\*\/\n)^(?=[a-z])/m);
  const declares = new RegExp(
    `^export (?:declare )?(?:abstract )?(?:class|const|function|interface|type) ${name}\\b`,
    'm',
  );
  const declaration = parts.filter((part) => declares.test(part)).join('').trim();
  const elsewhere = declaration === '' ? exportsOf(file).find((exported) => exported.name === name) : undefined;
  if (elsewhere !== undefined) return declarationOf(name, elsewhere.file);
  if (declaration === '') throw new Error(`${file} does not declare "${name}"`);
  return declaration
    .replace(/^ +(?:#private|private [^\n]*);\n/gm, '')
    .replace(/\{@link ([^}]*)\}/g, '`$1`')
    .replace(/^export (?:declare )?/gm, '');
}
