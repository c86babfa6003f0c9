/** The body of a request: how a handler receives it, and why it may be refused. */
import { isUtf8 } from 'node:buffer';
import { problem } from './replies/problem.ts';
import type { ProblemCode } from './replies/problem-kinds.ts';
import type { CountedReply } from './replies/reply.ts';

export const MAX_BODY_BYTES = 4_096;

/** A body that was not accepted, and the answer that says why. */
export interface RefusedBody {
  readonly refused: CountedReply;
  readonly code: ProblemCode;
}

export type Body = { readonly text: string } | RefusedBody;

/** Receives a body: one of the two methods is called, once. */
export interface BodyReader {
  /** @param bytes valid only within the call: uWebSockets.js reuses their memory */
  body(bytes: Uint8Array): void | Promise<void>;
  refused(body: RefusedBody): void;
}

const NOT_UTF8 = refusedAs('invalid_request', 'the body is not valid UTF-8');
export const tooLarge = (maxBytes: number): RefusedBody =>
  refusedAs('payload_too_large', `the body may have ${maxBytes} bytes at most`);

export function decode(bytes: Uint8Array): Body {
  return isUtf8(bytes)
    ? { text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString() }
    : NOT_UTF8;
}

function refusedAs(code: ProblemCode, detail: string): RefusedBody {
  return { refused: problem(code, { detail }), code };
}
