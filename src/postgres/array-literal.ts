/**
 * Postgres array literals. pg would build them too, one element at a time with a type check each; at 100,000 rows a
 * second that is a third of the sync thread.
 */
export function numbers(values: readonly (number | string)[]): string {
  return `{${values.join(',')}}`;
}

/** Every element is quoted; quotes and backslashes are escaped. */
export function texts(values: readonly string[]): string {
  return `{${values.map(quoted).join(',')}}`;
}

export function nullableTexts(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(value))).join(',')}}`;
}

const SPECIAL = /["\\]/;

function quoted(value: string): string {
  return SPECIAL.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : `"${value}"`;
}
