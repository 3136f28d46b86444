/**
 * The files that `npm run docs` writes: the public API, the help of each command, a dashboard, the measured figures as
 * tables and as a drawing; and, outside of git, all pages in one file.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { writeDashboard } from './dashboard.js';
import { withFigures } from './figures.js';
import { findPages, readPage, ROOT } from './markdown.js';

const API = 'docs/reference/api.md';
const COMMAND_LINE = 'docs/reference/command-line.md';
const INTRODUCTION = `# API

Every name that the package exports, with its declaration. \`npm run docs\` writes this page from \`dist\`: a change of the public API is a change of this page.
`;
const NEXT_OF_API = 'Next: [options](options.md), [routes](routes.md), [the context](context.md) in tables.\n';
const NEXT_OF_COMMAND_LINE = 'Next: [deployment](../guides/deployment.md), [failures](../guides/failures.md).\n';

/** The text of each page that is written, by its path. */
export function generatePages(): Record<string, string> {
  const withMeasurements = ['README.md', 'bench/README.md', 'docs/explanation/performance.md'];
  return {
    [COMMAND_LINE]: generateCommandLine(),
    [API]: generateApi(),
    'docs/grafana.json': writeDashboard(),
    'docs/images/overload.svg': run('bench/overload/drawing.mjs'),
    ...Object.fromEntries(withMeasurements.map((page) => [page, withFigures(readPage(page))])),
  };
}

/** Writes `docs/llms.txt`: all pages in one file, the longest one last. */
export function writePagesInOneFile(): void {
  const pages = [...findPages().filter((page) => page !== API), API];
  const texts = pages.map((page) => `<!-- ${page} -->\n\n${readPage(page).trim()}\n`);
  writeFileSync(join(ROOT, 'docs/llms.txt'), texts.join('\n'));
}

function generateApi(): string {
  const listed = new Map<string, string>();
  const entries = Object.entries(packageJson.exports).flatMap(([path, target]) => {
    if (typeof target === 'string') return [];
    const entry = `postern${path.slice(1)}`;
    const sections = exportsOf(target.types).map(({ name, file }) => {
      const first = listed.get(`${file} ${name}`);
      listed.set(`${file} ${name}`, entry);
      const text =
        first === undefined ? `\`\`\`typescript\n${declarationOf(name, file)}\n\`\`\`` : `As in \`${first}\`.`;
      return `### ${name}\n\n${text}\n`;
    });
    return [`## ${entry}\n`, ...sections];
  });
  return [INTRODUCTION, ...entries, NEXT_OF_API].join('\n');
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

/** `export { a, type B } from './x.js'`: the names of an entry with the files that declare them, sorted by name. */
function exportsOf(entry: string): { name: string; file: string }[] {
  const lists = readFileSync(join(ROOT, entry), 'utf8').matchAll(/^export (?:type )?\{([^}]*)\} from '(.*)\.js';$/gm);
  const found = [...lists].flatMap(([, names = '', from = '']) => {
    const file = join(dirname(entry), `${from}.d.ts`);
    return names
      .split(',')
      .flatMap((name) => (name.trim() === '' ? [] : [{ name: name.trim().replace(/^type /, ''), file }]));
  });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
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
