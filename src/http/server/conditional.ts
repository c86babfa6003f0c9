/** Answers that a client may keep: an entity tag, and `304` to a client that has the current answer (RFC 9110, 13.1.2). */
import { createHash } from 'node:crypto';
import { headOf, type Reply, sentOften } from './replies/reply.ts';

const TAG_CHARACTERS = 16;
/** One tag of a list. What is not a tag is passed over. */
const TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/** @returns a strong entity tag: another body has another tag */
export function tagOf(body: string): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, TAG_CHARACTERS)}"`;
}

/** Whether `If-None-Match` names the answer with this strong tag. Compares as RFC 9110 asks for: weakly. */
export function isKept(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch === '') return false;
  if (ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(TAG)].some(([, one]) => one === tag);
}

/** A cache asks each time, so that after an upgrade nobody reads an old page. */
const ASK_FIRST = 'no-cache';

/** One answer in both forms. */
export class KeptReply {
  /** In quotation marks. */
  readonly tag: string;
  readonly #whole: Reply;
  readonly #unchanged: Reply;

  /** @param cacheControl how long a client may use it without asking */
  constructor(
    type: string,
    body: string,
    headers: Readonly<Record<string, string>> = {},
    cacheControl = ASK_FIRST,
  ) {
    this.tag = tagOf(body);
    const kept = { etag: this.tag, 'cache-control': cacheControl };
    const head = headOf(200, { 'content-type': type, ...headers, ...kept });
    this.#whole = sentOften({ status: 200, head, body });
    this.#unchanged = notModified(kept);
  }

  /** @param ifNoneMatch the header of the request; `''` if there is none */
  to(ifNoneMatch: string): Reply {
    return isKept(ifNoneMatch, this.tag) ? this.#unchanged : this.#whole;
  }
}

/** `304` */
export function notModified(headers: Readonly<Record<string, string>>): Reply {
  return { status: 304, head: headOf(304, headers), body: '', isBodiless: true };
}
