/**
 * Limits how many connections a port holds. Each connection has one request under way at most (deferred-replies.ts), so the
 * limit also bounds what requests hold: bodies, queued purchases, answers not yet sent.
 *
 *   up to the limit     every request is served
 *   above it            the next request on any connection is answered `busy`, and that connection is closed
 *   above by an eighth  a new connection is closed at once, without an answer
 *
 * Above the limit the next request is refused and not the newest connection, because an answer tells a client more than a
 * closed connection does; silent connections are closed by the server after some ten seconds anyway. The second limit keeps
 * file handles free: without them a process can neither accept connections nor reach its stores.
 *
 * Each address may have a limit of its own (admission/connection-bound.ts), which works in the same way.
 */
import { normalised } from '../../admission/addresses.ts';
import type { ConnectionBound } from '../../admission/connection-bound.ts';

/** As a share of the limit: how many connections above it still get an answer to their next request. */
export const ANSWERED_ABOVE_SHARE = 1 / 8;

export interface ConnectionCounts {
  /** Open now. */
  readonly open: number;
  /** Requests answered `busy` because of too many connections. */
  readonly shed: number;
  /** Connections closed without an answer. */
  readonly dropped: number;
  /** The same two counts, because of too many connections of one address. */
  readonly ofAddress: { readonly shed: number; readonly dropped: number };
}

/** As a share of the limit: with more connections than this open, a refused address loses its connection. */
const OPEN_TO_REFUSED_SHARE = 1 / 2;

/** As a share of the limit: how many connections may be held by answers that go on, so that the others serve buyers. */
const HELD_SHARE = 1 / 2;

/** The client of a connection. */
interface Client {
  /** Its address, as bytes. */
  readonly peer: Uint8Array;
}

export class Connections {
  readonly #most: number;
  readonly #mostOpen: number;
  #open = 0;
  #shed = 0;
  #dropped = 0;
  readonly #bound: ConnectionBound | undefined;
  readonly #ofAddress = { shed: 0, dropped: 0 };

  /**
   * @param most how many connections are served at a time
   * @param bound the limit of each address
   */
  constructor(most = Number.POSITIVE_INFINITY, bound?: ConnectionBound) {
    this.#most = most;
    this.#bound = bound;
    this.#mostOpen = most + Math.ceil(most * ANSWERED_ABOVE_SHARE);
  }

  /** How many connections may be held by answers that go on until the client leaves. */
  get mostHeld(): number {
    return Math.floor(this.#most * HELD_SHARE);
  }

  /**
   * Counts a new connection.
   * @param peer its address, called only if addresses have a limit
   * @returns false if the connection must be closed without an answer
   */
  opened(peer: () => Uint8Array): boolean {
    this.#open++;
    if (this.#open > this.#mostOpen) this.#dropped++;
    else if (this.#bound?.opened(normalised(peer())) === false) this.#ofAddress.dropped++;
    else return true;
    return false;
  }

  /** Counts the end of a connection, including one that `opened` refused. */
  closed(): void {
    this.#open--;
  }

  /** @returns whether there are too many connections: then the request must be refused and its connection closed */
  shed(client: Client): boolean {
    if (this.#open > this.#most) {
      this.#shed++;
      return true;
    }
    if (!this.#bound?.isAnyAbove || !this.#bound.shed(normalised(client.peer))) return false;
    this.#ofAddress.shed++;
    return true;
  }

  /**
   * Whether a request refused by the rate limit of its address also loses its connection. Otherwise such a client could keep
   * any number of connections open, by sending a request on each before it is closed for silence.
   */
  closesRefused(client: Client): boolean {
    if (this.#bound === undefined || this.#open <= this.#most * OPEN_TO_REFUSED_SHARE) return false;
    return !this.#bound.isExempt(normalised(client.peer));
  }

  counts(): ConnectionCounts {
    return {
      open: this.#open,
      shed: this.#shed,
      dropped: this.#dropped,
      ofAddress: { ...this.#ofAddress },
    };
  }
}
