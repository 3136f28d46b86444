/** The project's pages for its users, and the code in them. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url));

/** A block of code between fences. */
export interface Block {
  /** Page and line, to name it in a test. */
  readonly place: string;
  /** The word after the fence: `ts`, `sh`, `text`. */
  readonly language: string;
  /** What follows that word: `file=app.ts` is `{ file: 'app.ts' }`. GitHub does not show it. */
  readonly meta: Readonly<Record<string, string>>;
  readonly code: string;
  /** The block `text` right after it, which is what it prints. */
  readonly output: string | undefined;
}

/** README.md, SECURITY.md and every page below docs/, relative to the root. */
export function findPages(): string[] {
  const docs = existsSync(join(ROOT, 'docs'))
    ? readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    : [];
  const pages = docs.filter((file) => file.endsWith('.md')).map((file) => `docs/${file.replaceAll('\\', '/')}`);
  return ['README.md', 'SECURITY.md', ...pages.sort()];
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

export function findBlocks(page: string): Block[] {
  const text = readPage(page);
  const fences = [...text.matchAll(/^```(\w+)([^\n]*)\n(.*?)^```$/gms)];
  return fences.map(({ index, 0: whole, 1: language = '', 2: words = '', 3: code = '' }, at) => {
    const next = fences[at + 1];
    const isFollowed = next?.[1] === 'text' && /^\s*$/.test(text.slice(index + whole.length, next.index));
    const meta = Object.fromEntries(
      [...words.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]),
    );
    const line = text.slice(0, index).split('\n').length;
    return { place: `${page}:${line}`, language, meta, code, output: isFollowed ? next[3] : undefined };
  });
}

/** Text without its code: fences, code spans, tags of HTML, the targets of links and the rows of tables. */
export function proseOf(text: string): string {
  return text
    .replace(/^```.*?^```$/gms, '')
    .replace(/<!--.*?-->|<[a-z/][^>]*>/gs, '')
    .replace(/^\|.*$/gm, '')
    .replace(/`[^`\n]*`/g, 'code')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1');
}

/** Whether a text is as printed in a page: `…` stands for anything in its line, a line `…` for any lines. */
export function isAsPrinted(actual: string, printed: string): boolean {
  const escaped = printed.trim().replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const pattern = escaped.replace(/^…$/gm, '[^]*?').replaceAll('…', '[^\\n]*');
  return new RegExp(`^${pattern}$`).test(actual.trim());
}

/** The anchors of a page's headings, as GitHub makes them. */
export function findAnchors(page: string): string[] {
  const headings = [...readPage(page).replace(/^```.*?^```$/gms, '').matchAll(/^#+ (.*)$/gm)];
  return toAnchors(headings.map(([, heading = '']) => heading));
}

/** The anchors of headings, as GitHub makes them: `reply` and `reply-1` for `Reply` and `reply`. */
export function toAnchors(headings: readonly string[]): string[] {
  const plain = headings.map((heading) => heading.toLowerCase().replace(/[^\w -]/g, '').replaceAll(' ', '-'));
  return plain.map((anchor, at) => {
    const before = plain.slice(0, at).filter((other) => other === anchor).length;
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}
