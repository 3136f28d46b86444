/** What holds of every page: its length, its links, and the words of its prose. */

import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { findAnchors, findBlocks, findPages, proseOf, readPage, ROOT } from '../support/markdown.js';

/** On npm, a relative link of the README leads nowhere. */
const REPOSITORY = 'https://github.com/postern/postern/blob/main/';
const MOST_LINES = { 'README.md': 210, 'docs/recipes.md': 260, 'docs/how-do-i.md': 330, 'docs/SKILL.md': 80 } as const;

const pages = findPages();
/** Nobody reads the lists of what is exported from top to bottom; their declarations are those of the compiler. */
const read = pages.filter((page) => !page.startsWith('docs/reference/api'));

test.for(read)('%s is short enough to be read to its end', (page) => {
  const most = page in MOST_LINES ? MOST_LINES[page as keyof typeof MOST_LINES] : 250;
  expect(readPage(page).trimEnd().split('\n').length).toBeLessThanOrEqual(most);
});

const INDEXES = ['README.md', 'docs/README.md'];
test.for(pages.filter((page) => !INDEXES.includes(page)))('%s ends with what to read next', (page) => {
  expect(readPage(page).trimEnd().split('\n').at(-1)).toMatch(/^Next: .*\]\(/);
});

test.for(read.filter((page) => page.startsWith('docs/reference/')))(
  'no line of code on %s is hidden on the right',
  (page) => {
    const lines = findBlocks(page).flatMap(({ code }) => code.split('\n'));
    expect(lines.filter((line) => line.length > 115)).toEqual([]);
  },
);

test.for(pages)('every link of %s leads to a page and a heading of it', (page) => {
  const text = readPage(page).replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, '');
  for (const [, link = ''] of text.matchAll(/(?:\]\(|(?:src|srcset)=")([^)\s"]+)/g)) {
    const isOurs = link.startsWith(REPOSITORY);
    if (/^https?:/.test(link) && !isOurs) continue;
    if (page === 'README.md' && !link.startsWith('#')) expect(isOurs, `${link} is absolute`).toBe(true);
    const [path = '', anchor] = link.replace(REPOSITORY, '').replace(/\?.*/, '').split('#');
    const target = isOurs ? path : path === '' ? page : normalize(join(dirname(page), path));
    expect(existsSync(join(ROOT, target)), `${link} → ${target}`).toBe(true);
    if (anchor !== undefined && target.endsWith('.md')) expect(findAnchors(target), link).toContain(anchor);
  }
});

test.for(['README.md', 'docs/tutorial.md'].filter((page) => pages.includes(page)))(
  '%s reads easily: Flesch above 50',
  (page) => {
    expect(readingEase(proseOf(readPage(page)))).toBeGreaterThan(50);
  },
);

/**
 * Flesch reading ease: 206.835 − 1.015 × words a sentence − 84.6 × syllables a word. A sentence ends at `.`, `!`, `?`,
 * `:` or the end of its paragraph, heading or item. A syllable is a group of vowels; a final silent `e` is none.
 */
function readingEase(prose: string): number {
  const sentences = prose.split(/[.!?:](?=\s|$)|\n(?=\s*(?:\n|[-#>*]|\d+\.))/).filter((part) => /[a-z]/i.test(part));
  const words = prose.match(/[A-Za-z]+(?:['’][a-z]+)?/g) ?? [];
  const syllables = words.reduce((sum, word) => sum + syllablesOf(word.toLowerCase()), 0);
  return 206.835 - 1.015 * (words.length / sentences.length) - 84.6 * (syllables / words.length);
}

function syllablesOf(word: string): number {
  const groups = word.replace(/(?:[^laeiouy]es|ed|[^laeiouy]e)$/, '').replace(/^y/, '').match(/[aeiouy]{1,2}/g);
  return Math.max(1, groups?.length ?? 1);
}
