/** The query of a URL, for lists that are read page by page. */
import { InvalidInput } from '../engine/errors.ts';

/** @param text without the question mark. @throws InvalidInput for a repeated name */
export function queryValues(text: string): Readonly<Record<string, string>> {
  const pairs = [...new URLSearchParams(text)];
  const twice = pairs.find(([name], at) => pairs.findIndex((pair) => pair[0] === name) < at);
  if (twice)
    throw new InvalidInput('the query is not valid', [{ field: twice[0], problem: 'is given twice' }]);
  return Object.fromEntries(pairs);
}

/** @returns the values that are given, with the question mark; `''` if there are none */
export function urlQuery(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
