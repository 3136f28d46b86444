/**
 * Comments, messages and pages are written plainly: these expressions, each with what to write instead, do not occur.
 *
 * They are the ones that are right nine times out of ten. An exception is listed with its reason.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findPages, proseOf, readPage, ROOT } from './support/markdown.js';

const RULES: readonly { readonly instead: string; readonly rule: RegExp }[] = [
  { instead: 'Default: X', rule: /\bunless (?:told|given)\b/ },
  { instead: 'is not an X, is missing', rule: /(?<!here )\b(?:is|are|was|be) (?:no (?!longer|more)|none\b(?! of))/ },
  { instead: 'a noun, a verb or "Whether" first', rule: /^(?:What|Those|That|Of|Most|So many|As (?:it|they))\b/ },
  { instead: 'an attempt', rule: /\b(?:each|every|one|a|failed) (?:try|tries)\b/ },
  { instead: 'is, is built on, means', rule: /\b(?:stands?|stood)\b(?!-| in for| for)/ },
  { instead: 'overrides, results in, must be', rule: /\b(?:beats?|came to|became of|speaks? of|(?:is|are) to be)\b/ },
  { instead: 'reports, specifies', rule: /\b(?:tells|told)\b(?! to)/ },
];

/** Texts that a rule finds although they are right, with the reason. */
const ALLOWED: readonly { readonly text: string; readonly why: string }[] = [];

const STRING = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;

/** Comments and long texts of a source file, line by line. */
function* linesOfSource(source: string): Generator<string> {
  let isComment = false;
  for (const line of source.split('\n').map((text) => text.trim())) {
    if (isComment || line.startsWith('/*')) {
      isComment = !line.includes('*/');
      yield line.replace(/^\/?\*+\s?|\s*\*\/$/g, '');
    } else if (line.startsWith('//')) yield line.slice(2).trim();
    else if (!/^(?:import |export [{*])/.test(line)) {
      for (const [text] of line.matchAll(STRING)) if (text.split(' ').length > 3) yield text.slice(1, -1);
      const [, behind] = /.* \/\/ (.*)$/.exec(line) ?? [];
      if (behind !== undefined) yield behind;
    }
  }
}

const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'));
const texts = [
  ...sources.map((file) => ({
    file: `src/${file}`,
    lines: [...linesOfSource(readFileSync(join(ROOT, 'src', file), 'utf8'))],
  })),
  ...findPages().map((file) => ({ file, lines: proseOf(readPage(file)).split('\n') })),
];

test.for(texts)('$file is written plainly', ({ lines }) => {
  const found = lines.flatMap((line) => {
    if (ALLOWED.some(({ text }) => line.includes(text))) return [];
    return RULES.filter(({ rule }) => rule.test(line)).map(({ instead }) => `${line}  (write: ${instead})`);
  });
  expect(found).toEqual([]);
});

test('each exception still occurs', () => {
  const all = texts.flatMap(({ lines }) => lines).join('\n');
  for (const { text, why } of ALLOWED) expect(all, why).toContain(text);
});
