/** The members of a body that is a JSON object; else what is wrong with it, as text. */
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
