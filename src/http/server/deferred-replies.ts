/**
 * Holds answers back until the end of the turn of the event loop, so that a connection has one request under way at most.
 *
 * uWebSockets.js parses everything that it has read from a connection, up to 512 KB, in one go. If a request is answered
 * within that go, the next one is handled at once: up to some 19,000 from one read, while no other connection is served. If a
 * request is not answered yet, uWebSockets.js closes a connection that sends the next one. So no answer is given before the
 * go is over:
 *
 *   parsed ──reply──> waiting ──end of the turn──> written; the connection may send the next request
 *                        └──the next request of the connection is parsed: it is not handled, the connection is closed
 *
 * The cost is too small to measure: one `setImmediate` for all answers of a turn, and as many writes as before.
 */

export interface DeferredReply {
  send(): void;
}

export class DeferredReplies {
  #waiting: DeferredReply[] = [];
  readonly #sendAll = () => {
    const replies = this.#waiting;
    this.#waiting = [];
    for (const reply of replies) reply.send();
  };

  add(reply: DeferredReply): void {
    if (this.#waiting.push(reply) === 1) setImmediate(this.#sendAll);
  }
}
