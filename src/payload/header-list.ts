/*
 * Header names and values alternately, as `node:http` has them.
 */

/** As `Headers`, repeated names joined. */
export function fromHeaderList(list: readonly string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i < list.length; i += 2) headers.append(list[i] as string, list[i + 1] as string);
  return headers;
}

/** Index of a name, in lower case, in a list; -1 if it is missing. */
export function indexOfHeader(list: readonly (string | string[])[], name: string): number {
  return list.findIndex((each, i) => i % 2 === 0 && String(each).toLowerCase() === name);
}
