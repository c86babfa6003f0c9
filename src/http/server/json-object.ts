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
