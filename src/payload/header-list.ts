/*
 * Header names and values by turns, as `node:http` has them.
 */

/** As `Headers`, repeated names joined. */
export function fromHeaderList(list: readonly string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i < list.length; i += 2) headers.append(list[i] as string, list[i + 1] as string);
  return headers;
}

/** Where a name, in lower case, stands in a list; -1 where it does not. */
export function indexOfHeader(list: readonly (string | string[])[], name: string): number {
  return list.findIndex((each, i) => i % 2 === 0 && String(each).toLowerCase() === name);
}
