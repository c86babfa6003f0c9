/** Errors as `application/problem+json` (RFC 9457). Their codes are in problem-kinds.ts. */
import { kindOf, type ProblemCode, typeOf } from './problem-kinds.ts';
import { type CountedReply, headOf, type Status } from './reply.ts';

/** What the table of codes says must not differ from one answer to the next. */
type Members = Readonly<Record<string, unknown>> & { readonly type?: never; readonly title?: never };

/**
 * @param more further members of the body, such as `detail`, or values to act on
 * @param headers in addition to those of the code
 */
export function problem(
  code: ProblemCode,
  more: Members = {},
  headers: Readonly<Record<string, string>> = {},
): CountedReply {
  const { title, status, detail, retryAfterS } = kindOf(code);
  const body = { type: typeOf(code), title, status, code, ...(detail && { detail }), ...more };
  const head = headOf(status as Status, {
    'content-type': 'application/problem+json',
    ...(retryAfterS !== undefined && { 'retry-after': String(retryAfterS) }),
    ...headers,
  });
  return { status, head, body: JSON.stringify(body), outcome: code };
}
