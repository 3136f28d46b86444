/* Finds what happens for the first time, so that the log has one line for each caller, route or service. */

/** Maximum keys of each; beyond them nothing is new: a client must not fill the log by sending other names. */
const MAX_KEYS = 100;

/** @returns whether a key is new, and is remembered from then on */
export function createFirsts(): (key: string) => boolean {
  const seen = new Set<string>();
  return (key) => seen.size < MAX_KEYS && seen.size < seen.add(key).size;
}
