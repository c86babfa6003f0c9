/**
 * Refuses requests whose end is ambiguous (request smuggling). If a gateway and this node disagree on where a request ends,
 * the node takes the rest for another request, which the gateway has never checked: it may name any buyer.
 *
 * Transfer-Encoding is not supported. uWebSockets.js treats every value of it as `chunked`, accepts malformed ends of chunks,
 * fails on valid extensions and trailers, and makes one call for each chunk, even of one byte.
 *
 * SECURITY.md lists what this can't detect because uWebSockets.js hides it. The parser of node:http refuses most of these
 * requests before they get here.
 */
import type { HttpRequest } from './http-request.ts';
import { problem } from './replies/problem.ts';
import type { Reply } from './replies/reply.ts';

const ENCODED = refusal('Transfer-Encoding is not supported: send the body with its Content-Length');
const AMBIGUOUS = refusal('the length of the body must be given once, in digits');
const DIGITS = /^\d+$/;

/**
 * @param skipsScan leaves out the check that goes through all headers: over uWebSockets.js it costs 75 ns or more for each
 * @returns the answer to a request that must not be handled, and after which its connection must be closed
 */
export function misframed(request: HttpRequest, skipsScan: boolean): Reply | undefined {
  if (request.getHeader('transfer-encoding') !== '') return ENCODED;
  return skipsScan ? undefined : ambiguousLength(request);
}

function ambiguousLength(request: HttpRequest): Reply | undefined {
  // uWebSockets.js refuses a length that is no number, too, but only after the handler has run.
  let lengths = 0;
  let isAmbiguous = false;
  request.forEach((name, value) => {
    if (name === 'content-length') isAmbiguous ||= !DIGITS.test(value) || ++lengths > 1;
    // `misframed` has seen the first header of this name, and it was empty or missing.
    else if (name === 'transfer-encoding') isAmbiguous = true;
  });
  return isAmbiguous ? AMBIGUOUS : undefined;
}

function refusal(detail: string): Reply {
  return problem('invalid_request', { detail });
}
