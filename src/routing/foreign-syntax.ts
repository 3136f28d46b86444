/*
 * Knows what other routers write in a path and this one would take for plain text, which no request would ever have:
 * `/users/{id}`, `/a*`, `/(\d+)`, `/a%20b`. Text that merely has such characters stays text: `/Products(1)`, `/c++`, `/a{b}`.
 */

/** Something of another router's, and what to write here. */
export interface ForeignSyntax {
  readonly index: number;
  readonly what: string;
  readonly remedy: string;
}

/** Whatever is foreign has one of these. */
export const FOREIGN_MARK: RegExp = /[%{<[(?*]/;

/** Finds foreign syntax in one static segment; `last` tells whether it is the last one of its path. */
export function findForeignSyntax(text: string, last: boolean): ForeignSyntax | undefined {
  for (const [pattern, what, remedy] of FORMS) {
    const found = pattern.exec(last ? text : `${text}/`);
    if (found === null) continue;
    const [part = '', name = ''] = found;
    const written = part.replace(/\/$/, '');
    return { index: found.index, what: `${what} "${written}"`, remedy: remedy(name, written) };
  }
  return undefined;
}

/** The remedy is told the name of the parameter, where the form has one. */
type Form = readonly [pattern: RegExp, what: string, remedy: (name: string, written: string) => string];

const FORMS: readonly Form[] = [
  [/%[0-9A-Fa-f]{2}/, 'percent-encoded', () => 'write the decoded character: paths are matched decoded'],
  [
    /^\{\*?([A-Za-z_]\w*)(?::[^}]*)?[?*+]?\}\??\/?$/,
    'parameter in braces',
    (name, written) =>
      /\*|:path/.test(written) ? `write *${name} as the last segment` : `write :${name}, or :${name}(regex)`,
  ],
  [/^<(?:[a-z]+:)?([A-Za-z_]\w*)>\/?$/, 'parameter in angle brackets', (name) => `write :${name}, or :${name}(regex)`],
  [
    /^\[{1,2}(?:\.{3})?([A-Za-z_]\w*)\]{1,2}\/?$/,
    'parameter in brackets',
    (name, written) => (written.includes('...') ? `write *${name} as the last segment` : `write :${name}`),
  ],
  [
    /\([^)]*(?:[\\[\]+*?|^$])[^)]*\)?/,
    'expression without a parameter',
    (_name, written) => `give it a name: :name${written.endsWith(')') ? written : '(regex)'}`,
  ],
  [/\{\/|[\w)}\]]\?(?=\/?$)/, 'optional part', () => 'register two paths, one with the part and one without it'],
  [
    /(?<=.)\*(?=\/?$)/,
    'wildcard at the end of a segment,',
    () => 'write :name(regex) for a part of a segment, or *name as the last segment for the rest of the path',
  ],
];
