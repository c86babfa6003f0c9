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
 * - What holds for all listeners is in http/streams/listeners.ts.
 *
 * Non-goal: history. A listener that was away is sent the present state, and not what it has missed.
 */
import { monotonicMs } from '../../lib/monotonic.ts';
import { rest } from '../../lib/rest.ts';
import type { Push, PushedReply } from '../server/replies/reply.ts';
import {
  COMMENT,
  endEvent,
  inParts,
  type Listener,
  type ListenerAddress,
  type Listeners,
  SILENT_MS,
  STREAM_HEAD,
} from '../streams/listeners.ts';
import { CACHED_SALES, type SaleReads, type SaleView } from './sale-reads.ts';

export interface LiveTimes {
  /** From one reading of a sale to the next. */
  readonly everyMs: number;
  /** How long a listener is sent nothing. */
  readonly silentMs: number;
}

const DEFAULT_TIMES: LiveTimes = { everyMs: 1_000, silentMs: SILENT_MS };
/** A reading that takes longer is not waited for: the listeners must hear something in the meantime. */
export const READING_MS = 1_000;
/** At most this many sales have listeners at one worker. */
const MAX_SALES = CACHED_SALES;

export class LiveSales {
  readonly #reads: Pick<SaleReads, 'read'>;
  readonly #listeners: Listeners;
  readonly #times: LiveTimes;
  readonly #sales = new Map<string, LiveSale>();

  constructor(reads: Pick<SaleReads, 'read'>, listeners: Listeners, times = DEFAULT_TIMES) {
    this.#reads = reads;
    this.#listeners = listeners;
    this.#times = times;
  }

  /** Whether one more may listen to this sale. If not, the request counts as refused. */
  admits(saleId: string, address: ListenerAddress): boolean {
    return this.#listeners.admits(address, this.#sales.has(saleId) || this.#sales.size < MAX_SALES);
  }

  /** @param view what the listener is sent first @returns the answer, which takes its room at once */
  listen(saleId: string, view: SaleView, address: ListenerAddress): PushedReply {
    const listener = this.#listeners.open(address);
    const told: Told = { listener, seen: view.reply.tag };
    const sale = view.isClosed ? undefined : this.#saleOf(saleId, view);
    sale?.add(told);
    const first = `${saleEvent(view)}${view.isClosed ? endEvent('closed') : ''}`;
    return {
      status: 200,
      head: STREAM_HEAD,
      begun: (push: Push) => listener.begin(push, first, view.isClosed),
      ended: () => {
        this.#listeners.ended(listener);
        sale?.remove(told);
      },
    };
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

/** A listener, and the tag of the state that it was sent last. */
interface Told {
  readonly listener: Listener;
  seen: string;
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
  readonly #listeners = new Set<Told>();
  readonly #end = new AbortController();
  /** The state that the listeners were sent last. */
  #tag: string;
  /** Some listeners were sent another state when they began to listen. The next reading must tell them the present one. */
  #isMixed = false;
  /** Those that began to listen after the last reading: what they were sent is no older than its result. */
  readonly #newcomers = new Set<Told>();
  #hasEnded = false;

  constructor(parts: LiveSaleParts) {
    this.#parts = parts;
    this.#tag = parts.view.reply.tag;
    void this.#run();
  }

  add(told: Told): void {
    this.#listeners.add(told);
    this.#newcomers.add(told);
    this.#isMixed ||= told.seen !== this.#tag;
  }

  remove(told: Told): void {
    this.#listeners.delete(told);
    this.#newcomers.delete(told);
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
      this.#newcomers.clear();
      if ('refusal' in found ? found.isUnknown : found.isClosed) return this.#sayLast(found);
      const isNew = !('refusal' in found) && found.reply.tag !== this.#tag;
      const isQuiet = !isNew && monotonicMs() - spokeAt >= silentMs;
      if (isNew || isQuiet) spokeAt = monotonicMs();
      if (!('refusal' in found) && (isNew || this.#isMixed)) await this.#say(found);
      if (isQuiet) await this.#toEach(({ listener }) => listener.send(COMMENT));
    }
  }

  async #say(view: SaleView): Promise<void> {
    const { tag } = view.reply;
    const event = Buffer.from(saleEvent(view));
    this.#tag = tag;
    this.#isMixed = false;
    await this.#toEach((told) => {
      if (told.seen === tag || this.#newcomers.has(told)) return;
      told.seen = tag;
      told.listener.send(event);
    });
  }

  /** Clients that connect from now on learn from the answer that the sale is over, or does not exist. */
  async #sayLast(found: Awaited<ReturnType<SaleReads['read']>>): Promise<void> {
    this.#ended();
    const text = 'refusal' in found ? endEvent('unknown_sale') : `${saleEvent(found)}${endEvent('closed')}`;
    const last = Buffer.from(text);
    await this.#toEach(({ listener }) => {
      listener.send(last);
      listener.finish();
    });
  }

  #toEach(tell: (told: Told) => void): Promise<void> {
    return inParts(this.#listeners, (part) => part.forEach(tell), this.#end.signal);
  }
}

function saleEvent({ reply, body }: SaleView): string {
  return `id: ${idOf(reply.tag)}\nevent: sale\ndata: ${body}\n\n`;
}

/** A browser sends the id back when it connects again. @param tag in quotation marks */
export function idOf(tag: string): string {
  return tag.slice(1, -1);
}
