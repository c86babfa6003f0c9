/**
 * Requests whose end another program on the way may see elsewhere. If a gateway and this node do not agree where a request
 * ends, the rest of it is a request of its own here, which the gateway has never looked at: it may name any buyer.
 *
 * Transfer-Encoding is not read at all. uWebSockets.js takes every value of it for `chunked`, reads over wrong ends of chunks,
 * trips over extensions and trailers that are in order, and makes a call of every chunk, be it of one byte.
 *
 * What this can't see, as uWebSockets.js hides it, is in SECURITY.md. The parser of node:http refuses most of these before.
 */
import type { HttpRequest } from './http-request.ts';
import { problem, type Reply } from './problem.ts';

const ENCODED = refusal('Transfer-Encoding is not read here: send the body with its Content-Length');
const DOUBTFUL = refusal('the length of the body must be given once, in digits');
const DIGITS = /^\d+$/;

/**
 * The answer to a request that must not be handled, and after which nothing may be read from its connection.
 * @param isThrifty the crowd asks: headers are not gone through, which costs 75 ns and more for each over uWebSockets.js
 */
export function misframed(request: HttpRequest, isThrifty: boolean): Reply | undefined {
  if (request.getHeader('transfer-encoding') !== '') return ENCODED;
  return isThrifty ? undefined : doubtful(request);
}

function doubtful(request: HttpRequest): Reply | undefined {
  // A length that is no number is refused by uWebSockets.js, too, but only when the handler was called.
  let lengths = 0;
  let isOdd = false;
  request.forEach((name, value) => {
    if (name === 'content-length') isOdd ||= !DIGITS.test(value) || ++lengths > 1;
    // With a value in front it would have been refused: so this one has none, or one without any stands before it.
    else if (name === 'transfer-encoding') isOdd = true;
  });
  return isOdd ? DOUBTFUL : undefined;
}

function refusal(detail: string): Reply {
  return problem('invalid_request', { detail });
}
