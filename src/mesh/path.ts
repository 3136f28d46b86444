/*
 * Paths of calls that are put together from values.
 */

/**
 * A template tag: each value becomes a part of one segment, whatever it holds.
 *
 * `` path`/invoices/${'7/refund'}` `` gives `/invoices/7%2Frefund`, where a plain template would call another endpoint.
 *
 * @throws {TypeError} for a value that is empty, and for a segment that would be `.` or `..`
 */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number | bigint)[]): string {
  let text = parts[0] ?? '';
  values.forEach((value, index) => {
    const encoded = encodeURIComponent(String(value));
    if (encoded === '')
      throw new TypeError(`value ${index + 1} of the path is empty, which would make it another path`);
    text += encoded + (parts[index + 1] ?? '');
  });
  const odd = text.split(/[/?]/).find((segment) => segment === '.' || segment === '..');
  if (odd !== undefined) throw new TypeError(`the path ${JSON.stringify(text)} has the segment "${odd}"`);
  return text;
}
