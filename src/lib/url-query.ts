/** The query of a URL, for lists that are read page by page. */
import { InvalidInput } from '../engine/errors.ts';

/** @param text without the question mark. @throws InvalidInput for a repeated name */
export function queryValues(text: string): Readonly<Record<string, string>> {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (values.has(name))
      throw new InvalidInput('the query is not valid', [{ field: name, problem: 'is given twice' }]);
    values.set(name, value);
  }
  return Object.fromEntries(values);
}

/** @returns the values that are given, with the question mark; `''` if there are none */
export function urlQuery(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
