/**
 * How many connections a port holds. Each has one request under way at most (departures.ts: one that sends the next before it
 * was answered is closed), so that this bounds all that requests may hold: bodies, queued purchases, answers on their way.
 *
 *   up to the limit ──> served ──above──> the next request, whoever sends it, is answered `busy` and its connection closed
 *                                 ──above by an eighth──> a new connection is closed at once, without an answer
 *
 * The next request and not the newest connection: those who are silent are closed by the server after some ten
 * seconds, and an answer says more than a connection that breaks. The last resort keeps file handles free, without which a
 * process can neither accept nor reach its stores.
 *
 * One address may have a bound of its own (admission/connection-bound.ts), above which it is answered in the same way.
 */
import { normalised } from '../../admission/addresses.ts';
import type { ConnectionBound } from '../../admission/connection-bound.ts';

/** Of the limit: connections above it whose next request is still answered. */
export const ANSWERED_ABOVE_SHARE = 1 / 8;

export interface ConnectionCounts {
  /** Open now. */
  readonly open: number;
  /** Requests answered `busy` because of too many connections. */
  readonly shed: number;
  /** Connections closed without an answer. */
  readonly dropped: number;
  /** The same two, because of too many connections of one address. */
  readonly ofAddress: { readonly shed: number; readonly dropped: number };
}

/** Of the limit: above it connections are kept for those who are let in, where addresses have a bound. */
const KEPT_FOR_ALL_SHARE = 1 / 2;

/** Who asks, on which connection. */
interface Holder {
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
   * @param most that are served at a time; without a limit on a port that only operators reach
   * @param bound of one address
   */
  constructor(most = Number.POSITIVE_INFINITY, bound?: ConnectionBound) {
    this.#most = most;
    this.#bound = bound;
    this.#mostOpen = most + Math.ceil(most * ANSWERED_ABOVE_SHARE);
  }

  /**
   * A connection has come.
   * @param peer its address, asked for only where addresses have a bound
   * @returns whether it may stay; else it is closed without an answer
   */
  opened(peer: () => Uint8Array): boolean {
    this.#open++;
    if (this.#open > this.#mostOpen) this.#dropped++;
    else if (this.#bound?.opened(normalised(peer())) === false) this.#ofAddress.dropped++;
    else return true;
    return false;
  }

  /** A connection has gone, also one that might not stay. */
  closed(): void {
    this.#open--;
  }

  /** @returns whether there are too many: the request that has come is to be refused, with its connection */
  shed(holder: Holder): boolean {
    if (this.#open > this.#most) {
      this.#shed++;
      return true;
    }
    if (!this.#bound?.isAnyAbove || !this.#bound.shed(normalised(holder.peer))) return false;
    this.#ofAddress.shed++;
    return true;
  }

  /**
   * Whether somebody who is refused for his address goes, with his connection. Else he would keep as many as he likes, by a
   * refused request on each of them before they are closed for silence.
   */
  goesRefused(holder: Holder): boolean {
    if (this.#bound === undefined || this.#open <= this.#most * KEPT_FOR_ALL_SHARE) return false;
    return !this.#bound.isExempt(normalised(holder.peer));
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
