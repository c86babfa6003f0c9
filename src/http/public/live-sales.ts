/**
 * Tells listeners what changes in a sale, as server-sent events (docs/api/buyers.md describes them).
 *
 *   first listener ──> the sale is read once a second ──it differs──> each listener is sent the event
 *                          │  ──as before for some seconds──> each listener is sent a comment
 *                          │  ──closed, or there is no such sale──> last event, the streams end
 *                          └──the last listener leaves──> nothing is read
 *
 * Goals: what listeners cost does not slow purchases down.
 *
 * - However many listen, a worker reads a sale once a second, through the cache that `GET` has too, and makes the bytes of an
 *   event once.
 * - Events are written to a part of the listeners at a time. Between two parts, the worker does what else has come.
 * - Nothing is kept for a listener: one that has not taken its last event is disconnected. It connects again, and gets the
 *   newest state.
 * - Listeners hold a share of the connections only (server/connections.ts).
 *
 * Non-goal: history. A listener that was away is sent the present state, and not what it has missed.
 */
import { monotonicMs } from '../../lib/monotonic.ts';
import { rest } from '../../lib/rest.ts';
import { EVENT_STREAM, headOf, type Push, type PushedReply } from '../server/problem.ts';
import { CACHED_SALES, type SaleReads, type SaleView } from './sale-reads.ts';

export interface LiveTimes {
  /** From one reading of a sale to the next. */
  readonly everyMs: number;
  /** How long a listener is sent nothing. Below the eight seconds after which uWebSockets.js closes a silent connection. */
  readonly silentMs: number;
}

const DEFAULT_TIMES: LiveTimes = { everyMs: 1_000, silentMs: 3_500 };
/** A reading that takes longer is not waited for: the listeners must hear something in the meantime. */
const READING_MS = 1_000;
/** Listeners that are written to in one turn of the event loop; with many listeners, more. Each takes some 8 µs. */
const MIN_PART = 64;
/** With many listeners, an event is written in this many parts. */
const PARTS = 100;
/** From one part to the next. All parts together take half a second. */
const PART_PAUSE_MS = 5;
/** So many sales have listeners at one worker. */
const MAX_SALES = CACHED_SALES;

const HEAD = headOf(200, EVENT_STREAM);
const COMMENT = Buffer.from(':\n\n');
/**
 * After what time, in milliseconds, a browser connects again. Each listener is sent one of them, so that the listeners of a node
 * that stops do not all come to the next one at once.
 */
const RETRY_MS = [1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000];

export interface ListenerCounts {
  /** Listening now. */
  readonly open: number;
  /** Requests that were answered `busy`. */
  readonly refused: number;
  /** Disconnected because they did not take their events. */
  readonly slow: number;
}

export class LiveSales {
  readonly #reads: Pick<SaleReads, 'read'>;
  readonly #most: number;
  readonly #times: LiveTimes;
  readonly #sales = new Map<string, LiveSale>();
  readonly #listeners = new Set<Listener>();
  readonly #counts = { refused: 0, slow: 0 };
  #isStopped = false;

  /** @param most how many may listen at a time */
  constructor(reads: Pick<SaleReads, 'read'>, most: number, times = DEFAULT_TIMES) {
    this.#reads = reads;
    this.#most = most;
    this.#times = times;
  }

  /** Whether one more may listen to this sale. If not, the request counts as refused. */
  admits(saleId: string): boolean {
    const hasRoom =
      this.#listeners.size < this.#most && (this.#sales.has(saleId) || this.#sales.size < MAX_SALES);
    if (hasRoom && !this.#isStopped) return true;
    this.#counts.refused++;
    return false;
  }

  /** @param view what the listener is sent first @returns the answer, which takes its room at once */
  listen(saleId: string, view: SaleView): PushedReply {
    const listener = new Listener(view, () => this.#counts.slow++);
    this.#listeners.add(listener);
    const sale = view.isClosed ? undefined : this.#saleOf(saleId, view);
    sale?.add(listener);
    const ended = () => {
      this.#listeners.delete(listener);
      sale?.remove(listener);
    };
    return { status: 200, head: HEAD, begun: (push) => listener.begin(push, view), ended };
  }

  counts(): ListenerCounts {
    return { open: this.#listeners.size, ...this.#counts };
  }

  /** Ends all streams, so that a shutdown need not wait for the listeners. They connect to another node. */
  stop(): void {
    this.#isStopped = true;
    for (const listener of this.#listeners) listener.finish();
  }

  #saleOf(saleId: string, view: SaleView): LiveSale {
    const known = this.#sales.get(saleId);
    if (known) return known;
    const read = () => this.#reads.read(saleId, READING_MS);
    const sale = new LiveSale({ read, view, times: this.#times, ended: () => this.#sales.delete(saleId) });
    this.#sales.set(saleId, sale);
    return sale;
  }
}

/** The other end of one stream. */
class Listener {
  /** The tag of the state that it was sent last. */
  seen: string;
  readonly #onSlow: () => void;
  #push: Push | undefined;
  #isFinished = false;

  constructor(view: SaleView, onSlow: () => void) {
    this.seen = view.reply.tag;
    this.#onSlow = onSlow;
  }

  begin(push: Push, view: SaleView): void {
    this.#push = push;
    const retryMs = RETRY_MS[Math.floor(Math.random() * RETRY_MS.length)];
    const last = view.isClosed ? endEvent('closed') : '';
    this.send(Buffer.from(`retry: ${retryMs}\n${saleEvent(view)}${last}`));
    if (view.isClosed || this.#isFinished) push.finish();
  }

  send(piece: Uint8Array): void {
    if (this.#push?.push(piece) === false) this.#onSlow();
  }

  finish(): void {
    this.#isFinished = true;
    this.#push?.finish();
  }
}

interface LiveSaleParts {
  readonly read: () => ReturnType<SaleReads['read']>;
  /** The state that its first listener is sent. */
  readonly view: SaleView;
  readonly times: LiveTimes;
  /** It gets no further listeners. Called once. */
  readonly ended: () => void;
}

/** A sale that somebody listens to. */
class LiveSale {
  readonly #parts: LiveSaleParts;
  readonly #listeners = new Set<Listener>();
  readonly #end = new AbortController();
  #tag: string;
  #hasEnded = false;

  constructor(parts: LiveSaleParts) {
    this.#parts = parts;
    this.#tag = parts.view.reply.tag;
    void this.#run();
  }

  add(listener: Listener): void {
    this.#listeners.add(listener);
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#end.abort();
    this.#ended();
  }

  #ended(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#parts.ended();
  }

  async #run(): Promise<void> {
    const { everyMs, silentMs } = this.#parts.times;
    let spokeAt = monotonicMs();
    for (;;) {
      await rest(everyMs, this.#end.signal);
      const found = await this.#parts.read();
      if (this.#end.signal.aborted) return;
      if ('refusal' in found ? found.isUnknown : found.isClosed) return this.#sayLast(found);
      const isNew = !('refusal' in found) && found.reply.tag !== this.#tag;
      if (!isNew && monotonicMs() - spokeAt < silentMs) continue;
      spokeAt = monotonicMs();
      if (isNew) await this.#say(found);
      else await this.#toEach((listener) => listener.send(COMMENT));
    }
  }

  async #say(view: SaleView): Promise<void> {
    const { tag } = view.reply;
    const event = Buffer.from(saleEvent(view));
    this.#tag = tag;
    await this.#toEach((listener) => {
      // It may have begun to listen since, with this state.
      if (listener.seen === tag) return;
      listener.seen = tag;
      listener.send(event);
    });
  }

  /** Who asks from now on is told by the answer that the sale is over, or does not exist. */
  async #sayLast(found: Awaited<ReturnType<SaleReads['read']>>): Promise<void> {
    this.#ended();
    const text = 'refusal' in found ? endEvent('unknown_sale') : `${saleEvent(found)}${endEvent('closed')}`;
    const last = Buffer.from(text);
    await this.#toEach((listener) => {
      listener.send(last);
      listener.finish();
    });
  }

  async #toEach(tell: (listener: Listener) => void): Promise<void> {
    const part = Math.max(MIN_PART, Math.ceil(this.#listeners.size / PARTS));
    let told = 0;
    for (const listener of this.#listeners) {
      tell(listener);
      if (++told % part === 0) await rest(PART_PAUSE_MS, this.#end.signal);
    }
  }
}

function saleEvent({ reply, body }: SaleView): string {
  return `id: ${idOf(reply.tag)}\nevent: sale\ndata: ${body}\n\n`;
}

function endEvent(reason: 'closed' | 'unknown_sale'): string {
  return `event: end\ndata: {"reason":"${reason}"}\n\n`;
}

/** A browser sends the id back when it connects again. @param tag in quotation marks */
export function idOf(tag: string): string {
  return tag.slice(1, -1);
}
