/** How much of a name that a client has sent an answer repeats. */
const SHOWN_CHARACTERS = 80;

/** @returns the members of the JSON object in a body; or what is wrong with the body, as text */
export function parseObject(text: string): Record<string, unknown> | string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'the body is not JSON';
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return 'the body must be a JSON object';
  return body as Record<string, unknown>;
}

/**
 * What is wrong with the names in a body, as text; `undefined` if all are known.
 * @param what the body asks for, with its article
 */
export function unknownField(
  body: Readonly<Record<string, unknown>>,
  fields: readonly string[],
  what: string,
): string | undefined {
  const unknown = Object.keys(body).find((name) => !fields.includes(name));
  return unknown === undefined
    ? undefined
    : `${JSON.stringify(unknown.slice(0, SHOWN_CHARACTERS))} is not a field of ${what}`;
}
