/**
 * Answers wait here for the end of the turn of the event loop, so that a connection has one request under way at most.
 *
 * uWebSockets.js parses all that it has read from a connection, up to 512 KB, in one go. A request that is answered within
 * that go is over, and the next one follows at once: some 19,000 of them in a read, while nobody else is served. A request
 * that is not answered yet makes uWebSockets.js close a connection that sends the next one. So no answer is given before
 * the go is over:
 *
 *   parsed ──reply──> waiting ──end of the turn──> written; the connection may send the next request
 *                        └──the next request of the connection is parsed: it is not handled, the connection is closed
 *
 * That costs nothing that can be measured: one `setImmediate` for all answers of a turn, and the writes are as many as before.
 */

export interface Departing {
  depart(): void;
}

export class Departures {
  #waiting: Departing[] = [];
  readonly #leave = () => {
    const leaving = this.#waiting;
    this.#waiting = [];
    for (const one of leaving) one.depart();
  };

  add(one: Departing): void {
    if (this.#waiting.push(one) === 1) setImmediate(this.#leave);
  }
}
