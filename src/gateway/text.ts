/** Pieces of text that configurations of several gateways are made of. */

/** A path or a name of ours, which has no other characters that an expression would read as its own. */
export function escape(text: string): string {
  return text.replace(/[.*+?()|[\]^\\$]/g, '\\$&');
}

/** Lines, two columns further in. */
export function indent(lines: readonly string[]): string[] {
  return lines.map((line) => (line === '' ? '' : `  ${line}`));
}
