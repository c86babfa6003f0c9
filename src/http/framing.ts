/**
 * Requests whose end another program on the way may see elsewhere. If a gateway and this node do not agree where a request
 * ends, the rest of it is a request of its own here, which the gateway has never looked at: it may name any buyer.
 *
 * Transfer-Encoding is not read at all. uWebSockets.js takes every value of it for `chunked`, reads over wrong ends of chunks,
 * trips over extensions and trailers that are in order, and makes a call of every chunk, be it of one byte.
 *
 * What this can't see, as uWebSockets.js hides it, is in SECURITY.md.
 */
import type { HttpRequest } from 'uWebSockets.js';
import { problem, type Reply } from './problem.ts';

const ENCODED = refusal('Transfer-Encoding is not read here: send the body with its Content-Length');
const REPEATED = refusal('the length of the body was given more than once, or without a value');

/**
 * The answer to a request that must not be handled, and after which nothing may be read from its connection.
 * @param isHot it is asked by the crowd: headers are not gone through, which costs 75 ns and more for each
 */
export function misframed(request: HttpRequest, isHot: boolean): Reply | undefined {
  if (request.getHeader('transfer-encoding') !== '') return ENCODED;
  return isHot ? undefined : repeated(request);
}

function repeated(request: HttpRequest): Reply | undefined {
  let lengths = 0;
  let isOdd = false;
  request.forEach((name, value) => {
    if (name === 'content-length') isOdd ||= value === '' || ++lengths > 1;
    // With a value in front it would have been refused: so this one has none, or one without any stands before it.
    else if (name === 'transfer-encoding') isOdd = true;
  });
  return isOdd ? REPEATED : undefined;
}

function refusal(detail: string): Reply {
  return problem('invalid_request', { detail });
}
