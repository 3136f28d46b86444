/**
 * Whatever a release promises (docs/stability.md), by name: declarations, metrics, log lines, options of commands. Read
 * from the reference, which other tests hold equal to the code.
 */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { findApiPages } from './generated-pages.js';
import { readPage, ROOT } from './markdown.js';

/** The promises of the last release. */
export const SAVED: string = join(ROOT, 'test/promises.json');

export function findPromises(): Record<string, string> {
  const listed = [...rows('metrics', 'metric'), ...rows('logs-and-channels', 'log')];
  return Object.fromEntries([...declarations(), ...listed, ...commands()]);
}

/** Each exported name, with a digest of its declaration and docstring. */
function declarations(): [string, string][] {
  return findApiPages().flatMap(({ entry, page }) => {
    const [, ...names] = readPage(page).split(/^## /m);
    return names.map((text): [string, string] => {
      const [name = '', ...lines] = text.replace(/^It has the members of .*$/m, '').split('\n');
      const declaration = lines.join('\n').replace(/^As in \[(.*?)\]\(.*?\)/m, 'As in `$1`');
      const code = declaration.replace(/\/\*\*.*?\*\/|^Next: .*/gms, '').replace(/\s+/g, ' ');
      return [`${entry}: ${name}`, createHash('sha256').update(code).digest('hex').slice(0, 12)];
    });
  });
}

/** Each first cell of the tables of a page, with its second and third one but for explanations. */
function rows(page: string, kind: string): [string, string][] {
  const text = readPage(`docs/reference/${page}.md`);
  return [...text.matchAll(/^\| (`[^|]*`) \| ([^|]*)\| ([^|]*)\|/gm)].map(([, name = '', second = '', third = '']) => {
    const fields = kind === 'log' ? (third.match(/`[a-z_]+`/g) ?? []).join(' ') : third.trim();
    return [`${kind} ${name.replaceAll('`', '')}`, `${second.trim()} ${fields}`.trim()];
  });
}

/** Each command with its options. */
function commands(): [string, string][] {
  const [, ...sections] = readPage('docs/reference/command-line.md').split(/^## postern /m);
  return sections.map((section) => {
    const options = [...section.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, option]) => option);
    return [`postern ${section.split('\n', 1)[0]}`, options.sort().join(' ')];
  });
}
