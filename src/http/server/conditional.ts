/** Answers that a client may keep: an entity tag, and `304` to a client that has the current answer (RFC 9110, 13.1.2). */
import { createHash } from 'node:crypto';
import type { HttpRequest } from './http-request.ts';
import { headOf, type Reply, sentOften } from './problem.ts';

const TAG_CHARACTERS = 16;
/** One tag of a list. What is not a tag is passed over. */
const TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/** @returns a strong entity tag: another body has another tag */
export function tagOf(body: string): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, TAG_CHARACTERS)}"`;
}

/** Whether the client has the answer with this strong tag. Compares as `If-None-Match` asks for: weakly. */
export function isKept(request: HttpRequest, tag: string): boolean {
  const kept = request.getHeader('if-none-match');
  if (kept === '') return false;
  if (kept.trim() === '*') return true;
  return [...kept.matchAll(TAG)].some(([, one]) => one === tag);
}

/** A whole answer that changes only with the program, in both forms. */
export class KeptReply {
  readonly #tag: string;
  readonly #whole: Reply;
  readonly #unchanged: Reply;

  constructor(type: string, body: string, headers: Readonly<Record<string, string>> = {}) {
    this.#tag = tagOf(body);
    // A cache asks each time, so that after an upgrade nobody reads the old description.
    const kept = { etag: this.#tag, 'cache-control': 'no-cache' };
    const head = headOf(200, { 'content-type': type, ...headers, ...kept });
    this.#whole = sentOften({ status: 200, head, body });
    this.#unchanged = notModified(kept);
  }

  to(request: HttpRequest): Reply {
    return isKept(request, this.#tag) ? this.#unchanged : this.#whole;
  }
}

/** `304` */
export function notModified(headers: Readonly<Record<string, string>>): Reply {
  return { status: 304, head: headOf(304, headers), body: '', isBodiless: true };
}
