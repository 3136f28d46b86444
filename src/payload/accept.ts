/* Reads lists with quality values, such as `Accept`, in time linear to the header (RFC 9110, section 12.4.2). */

/** One item of a list. */
export interface Item {
  /** In lower case. */
  readonly name: string;
  /** The name as the client wrote it. */
  readonly given: string;
  readonly parameters: ReadonlyMap<string, string>;
  /** 0 to 1; an item with an invalid one counts as unwanted. */
  readonly quality: number;
}

/** Whether a client names problem details with a higher quality than plain JSON; wildcards name nothing (RFC 9457). */
export function prefersProblem(accept: string | undefined): boolean {
  if (accept === undefined || !/problem\+json/i.test(accept)) return false;
  return qualityOf(accept, 'application/problem+json') > qualityOf(accept, 'application/json');
}

/** The highest quality that a list has for one of these names; 0 if it has none of them. */
export function qualityOf(header: string, ...names: readonly string[]): number {
  let highest = 0;
  for (const { name, quality } of parseList(header)) if (names.includes(name)) highest = Math.max(highest, quality);
  return highest;
}

/** Up to a separator outside of quotes. Linear to the text, because no character begins two of the alternatives. */
const ITEM = /(?:[^,"]|"(?:[^"\\]|\\[^]?)*"?)+/g;
const PARAMETER = /(?:[^;"]|"(?:[^"\\]|\\[^]?)*"?)+/g;

/** One item at a time: thousands kept together cost the garbage collector more than parsing them. */
export function* parseList(header: string): Generator<Item> {
  for (const [text] of header.matchAll(ITEM)) yield parseItem(text);
}

function parseItem(text: string): Item {
  const [name = '', ...rest] = text.match(PARAMETER) ?? [];
  const parameters = new Map<string, string>();
  for (const parameter of rest) {
    const equals = parameter.indexOf('=');
    if (equals !== -1)
      parameters.set(parameter.slice(0, equals).trim().toLowerCase(), unquote(parameter.slice(equals + 1).trim()));
  }
  const quality = parameters.get('q') ?? '1';
  const isValid = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(quality);
  const given = name.trim();
  return { name: given.toLowerCase(), given, parameters, quality: isValid ? Number(quality) : 0 };
}

function unquote(text: string): string {
  return text.startsWith('"') && text.endsWith('"') && text.length > 1
    ? text.slice(1, -1).replace(/\\(.)/gs, '$1')
    : text;
}
