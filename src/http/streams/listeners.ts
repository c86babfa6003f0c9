/**
 * Those who listen to something, over server-sent events, and what all kinds of listeners share.
 *
 * - Events are written to a part of the listeners at a time. Between two parts, the worker does what else has come.
 * - Nothing is kept for a listener: one that has not taken its last event is disconnected. It connects again, and gets the newest
 *   state.
 * - Listeners hold a share of the connections only (server/connections.ts), and those of one address a part of it if addresses have a
 *   limit.
 */
import { monotonicMs } from '../../lib/monotonic.ts';
import { rest } from '../../lib/rest.ts';
import { problem } from '../server/replies/problem.ts';
import { type CountedReply, EVENT_STREAM, headOf, type Push } from '../server/replies/reply.ts';

export const STREAM_HEAD = headOf(200, EVENT_STREAM);
export const COMMENT = Buffer.from(':\n\n');
/** How long a listener is sent nothing. Below the eight seconds after which uWebSockets.js closes a silent connection. */
export const SILENT_MS = 3_500;
/** Listeners that are written to in one turn of the event loop; with many listeners, more. Each takes some 8 µs. */
const MIN_PART = 64;
/** With many listeners, an event is written in this many parts. */
const PARTS = 100;
/** From the beginning of one part to that of the next. All parts together take half a second. */
const PART_EVERY_MS = 5;
/** A worker that is behind goes on after this time, in which it does what else has come. */
const LEAST_PAUSE_MS = 1;
/**
 * After what time, in milliseconds, a browser connects again. Each listener is sent one of them, so that the listeners of a node
 * that stops do not all come to the next one at once.
 */
const RETRY_MS = [1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000];

/** The answer to one listener too many. @param what it may read instead */
export const noRoomFor = (what: 'sale' | 'place'): CountedReply =>
  problem(
    'busy',
    {
      detail: `This node serves no more listeners, or no more from your address. Read the ${what} instead, or listen later.`,
    },
    { 'retry-after': '10' },
  );

export interface ListenerCounts {
  /** Listening now. */
  readonly open: number;
  /** Requests that were answered `busy`. */
  readonly refused: number;
  /** Disconnected because they did not take their events. */
  readonly slow: number;
}

/** Limits the listeners of each address (admission/stream-bound.ts). */
export interface AddressBound {
  admits(address: Uint8Array): boolean;
  opened(address: Uint8Array): void;
  closed(address: Uint8Array): void;
}

/** The address of a listener; `undefined` if addresses have no limit. */
export type ListenerAddress = Uint8Array | undefined;

/** All listeners of a worker, whatever they listen to. */
export class Listeners {
  readonly #most: number;
  readonly #ofAddress: AddressBound | undefined;
  readonly #open = new Set<Listener>();
  readonly #counts = { refused: 0, slow: 0 };
  #isStopped = false;

  /** @param most how many may listen at a time @param ofAddress how many of them from one address */
  constructor(most: number, ofAddress?: AddressBound) {
    this.#most = most;
    this.#ofAddress = ofAddress;
  }

  /** Whether there is room for one more. If not, the request counts as refused. @param alsoNeeds what else it depends on */
  admits(address: ListenerAddress, alsoNeeds = true): boolean {
    const isRoom = !this.#isStopped && alsoNeeds && this.#open.size < this.#most;
    if (isRoom && (!address || this.#ofAddress!.admits(address))) return true;
    this.#counts.refused++;
    return false;
  }

  /** A listener takes its room at once. */
  open(address: ListenerAddress): Listener {
    const listener = new Listener(address, () => this.#counts.slow++);
    this.#open.add(listener);
    if (address) this.#ofAddress!.opened(address);
    return listener;
  }

  /** Call it once for each listener. */
  ended(listener: Listener): void {
    listener.left();
    this.#open.delete(listener);
    if (listener.address) this.#ofAddress!.closed(listener.address);
  }

  counts(): ListenerCounts {
    return { open: this.#open.size, ...this.#counts };
  }

  /** Ends all streams, so that a shutdown need not wait for the listeners. They connect to another node. */
  stop(): void {
    this.#isStopped = true;
    for (const listener of this.#open) listener.finish();
  }
}

/** The other end of one stream. */
export class Listener {
  readonly address: ListenerAddress;
  readonly #onSlow: () => void;
  #push: Push | undefined;
  #isFinished = false;

  constructor(address: ListenerAddress, onSlow: () => void) {
    this.address = address;
    this.#onSlow = onSlow;
  }

  /** @param first the first events @param isLast whether they are the only ones */
  begin(push: Push, first: string, isLast: boolean): void {
    this.#push = push;
    const retryMs = RETRY_MS[Math.floor(Math.random() * RETRY_MS.length)];
    this.send(Buffer.from(`retry: ${retryMs}\n${first}`));
    if (isLast || this.#isFinished) push.finish();
  }

  send(piece: Uint8Array): void {
    if (this.#push?.push(piece) === false) this.#onSlow();
  }

  /** It has gone. What is meant for it comes to nothing, and does not make it a slow one. */
  left(): void {
    this.#push = undefined;
  }

  finish(): void {
    this.#isFinished = true;
    this.#push?.finish();
  }
}

/** Does something for each of the listeners, a part of them at a time. */
export async function inParts<L>(
  listeners: ReadonlySet<L>,
  tell: (part: readonly L[]) => void | Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const size = Math.max(MIN_PART, Math.ceil(listeners.size / PARTS));
  let part: L[] = [];
  let dueAt = monotonicMs();
  for (const listener of listeners) {
    part.push(listener);
    if (part.length < size) continue;
    await tell(part);
    part = [];
    dueAt += PART_EVERY_MS;
    await rest(Math.max(LEAST_PAUSE_MS, dueAt - monotonicMs()), signal);
  }
  if (part.length > 0) await tell(part);
}

export function endEvent(reason: string): string {
  return `event: end\ndata: {"reason":"${reason}"}\n\n`;
}
