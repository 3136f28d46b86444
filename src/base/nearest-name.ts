/* Finds the name that somebody meant who mistyped it. */

/** Names that another framework has for the same thing. */
const SYNONYMS: Readonly<Record<string, string>> = { hostname: 'host', status: 'statusCode', code: 'status' };

/** The name that is most like a text, by edit distance without regard to case; undefined if all are too different. */
// ("bodylimit", ["bodyLimit", "logger"]) → "bodyLimit"
export function nearestName(text: string, names: readonly string[]): string | undefined {
  const synonym = Object.hasOwn(SYNONYMS, text) ? SYNONYMS[text] : undefined;
  if (synonym !== undefined && names.includes(synonym)) return synonym;
  let nearest: string | undefined;
  let least = Math.max(2, Math.ceil(text.length / 3)) + 1;
  for (const name of names) {
    const distance = editDistance(text.toLowerCase(), name.toLowerCase(), least);
    if (distance < least) [nearest, least] = [name, distance];
  }
  return nearest;
}

/** Levenshtein's, row by row; long texts are not worth comparing. */
function editDistance(a: string, b: string, enough: number): number {
  if (Math.abs(a.length - b.length) >= enough || a.length > 64) return enough;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substituted = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
