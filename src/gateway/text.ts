/* Pieces of text that configurations of several gateways are made of. */

/** A path or a name of ours, which has no other characters that an expression would read as its own. */
export function escape(text: string): string {
  return text.replace(/[.*+?()|[\]^\\$]/g, '\\$&');
}

/** Lines, or blocks of them, two columns further in. */
export function indent(blocks: readonly string[]): string[] {
  return blocks.flatMap((block) => block.split('\n')).map((line) => (line === '' ? '' : `  ${line}`));
}
