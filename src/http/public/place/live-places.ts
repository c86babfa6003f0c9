/**
 * Tells buyers how their places stand, as server-sent events (docs/api/buyers.md describes them).
 *
 *   first listener of a sale ──> each second: each listener's place is looked up, mostly in memory (queue/buyers/)
 *                                  │  ──its answer differs──> the listener is sent it
 *                                  │  ──as before for some seconds──> a comment
 *                                  │  ──it waits no more, and has no offer──> last event, the stream ends
 *                                  └──the last listener leaves──> nothing is looked up
 *
 * A listener is present as long as its stream is open. If a place can't be looked up for a moment, its listener hears comments. After
 * UNSURE_MS it is sent the event `unavailable`, once: what it was told may be out of date, and another node may know more. When the place
 * can be looked up again, it is told again.
 * What holds for all listeners is in http/streams/listeners.ts.
 */
import type { TokenPlace } from '../../../admission/place-token.ts';
import type { SaleRecord } from '../../../engine/contract.ts';
import { StockadeError } from '../../../engine/errors.ts';
import { monotonicMs } from '../../../lib/monotonic.ts';
import { Rounds } from '../../../lib/rounds.ts';
import { withTimeout } from '../../../lib/with-timeout.ts';
import type { ToldPlace } from '../../../queue/buyers/place-view.ts';
import type { Push, PushedReply } from '../../server/replies/reply.ts';
import {
  COMMENT,
  endEvent,
  inParts,
  type Listener,
  type ListenerAddress,
  type Listeners,
  SILENT_MS,
  STREAM_HEAD,
} from '../../streams/listeners.ts';
import { type Holder, placeJson } from './place-reply.ts';
import type { PlaceHost } from './place-route.ts';

const EVERY_MS = 1_000;
/** A look that takes longer is not waited for: the listeners must hear something in the meantime. */
const LOOK_MS = 1_000;
/** After this time without a look at its place, a listener is told so. */
const UNSURE_MS = 2 * EVERY_MS + LOOK_MS;
const UNAVAILABLE = Buffer.from('event: unavailable\ndata: {"code":"unavailable"}\n\n');

/** One listener. */
interface Told {
  readonly listener: Listener;
  readonly holder: Holder;
  readonly known: TokenPlace;
  readonly placeToken: string;
  /** The data of the last event; `undefined`: the place could not be looked up since. */
  seen: string | undefined;
  /** When the latest look that found out how the place stands began. */
  knownAt: number;
  spokeAt: number;
}

type LiveHost = Pick<PlaceHost, 'queue' | 'queueSigners' | 'readRecord' | 'readDeadlineMs' | 'fault'>;

export class LivePlaces {
  readonly #host: LiveHost;
  readonly #listeners: Listeners;
  readonly #sales = new Map<string, LivePlacesOfSale>();

  constructor(host: LiveHost, listeners: Listeners) {
    this.#host = host;
    this.#listeners = listeners;
  }

  /** How many listen. */
  get open(): number {
    let open = 0;
    for (const sale of this.#sales.values()) open += sale.size;
    return open;
  }

  /** Whether one more may listen. If not, the request counts as refused. */
  admits(address: ListenerAddress): boolean {
    return this.#listeners.admits(address);
  }

  /** @param place what the listener is sent first @returns the answer, which takes its room at once */
  listen(holder: Holder, place: ToldPlace, address: ListenerAddress): PushedReply {
    const listener = this.#listeners.open(address);
    const placeToken = this.#host.queueSigners.places.issue(holder, place);
    const seen = dataOf(this.#host, { holder, placeToken }, place);
    const { number, quantity } = place;
    const known = { number, quantity };
    const now = monotonicMs();
    const told: Told = { listener, holder, known, placeToken, seen, knownAt: now, spokeAt: now };
    const isLast = hasEnded(place);
    const sale = isLast ? undefined : this.#saleOf(holder.saleId);
    sale?.add(told);
    const first = isLast ? `${placeEvent(seen)}${endEvent(place.state)}` : placeEvent(seen);
    return {
      status: 200,
      head: STREAM_HEAD,
      begun: (push: Push) => listener.begin(push, first, isLast),
      ended: () => {
        this.#listeners.ended(listener);
        sale?.remove(told);
      },
    };
  }

  #saleOf(saleId: string): LivePlacesOfSale {
    const known = this.#sales.get(saleId);
    if (known) return known;
    const sale = new LivePlacesOfSale(saleId, this.#host, () => this.#sales.delete(saleId));
    this.#sales.set(saleId, sale);
    return sale;
  }
}

/** The listeners of one sale. */
class LivePlacesOfSale {
  readonly #saleId: string;
  readonly #host: LiveHost;
  readonly #emptied: () => void;
  readonly #told = new Set<Told>();
  readonly #rounds: Rounds;

  /** @param emptied called when the last listener has left; then no more may be added */
  constructor(saleId: string, host: LiveHost, emptied: () => void) {
    this.#saleId = saleId;
    this.#host = host;
    this.#emptied = emptied;
    this.#rounds = new Rounds({
      everyMs: EVERY_MS,
      isSteady: true,
      beginsWithPause: true,
      round: (signal) => this.#round(signal),
      failed: (error) => this.#failed(error),
    });
    this.#rounds.start();
  }

  get size(): number {
    return this.#told.size;
  }

  add(told: Told): void {
    this.#told.add(told);
  }

  remove(told: Told): void {
    if (!this.#told.delete(told) || this.#told.size > 0) return;
    this.#emptied();
    void this.#rounds.stop();
  }

  async #round(signal: AbortSignal): Promise<boolean> {
    const { readRecord, readDeadlineMs } = this.#host;
    const mostMs = Math.min(readDeadlineMs, LOOK_MS);
    const record = await withTimeout(mostMs, readRecord(this.#saleId)).catch((error) => {
      this.#failed(error);
      return null;
    });
    let limitMs = mostMs;
    const tell = async (part: readonly Told[]) => {
      // If one part has waited in vain, the other ones would too, and with many parts the last would hear nothing for long.
      if (!(await this.#tellPart(part, record, limitMs))) limitMs = 0;
    };
    await inParts(this.#told, tell, signal);
    return false;
  }

  /**
   * The places of a part are looked up together, so that those that must be read are read together.
   * @returns whether all of them were told within the limit; looks under way go on
   */
  async #tellPart(
    part: readonly Told[],
    record: SaleRecord | undefined | null,
    limitMs: number,
  ): Promise<boolean> {
    const telling = Promise.all(part.map((told) => this.#tell(told, record)));
    // One limit for all of them: a timer for each of thousands would cost more than to look in memory.
    try {
      await withTimeout(limitMs, telling);
      return true;
    } catch (error) {
      this.#failed(error);
      for (const told of part) unsure(told);
      return false;
    }
  }

  /** @param record `undefined`: there is no such sale any more; `null`: it can't be read */
  async #tell(told: Told, record: SaleRecord | undefined | null): Promise<void> {
    if (record === undefined) return last(told, endEvent('unknown_sale'));
    const beganAt = monotonicMs();
    const place = record === null ? null : await this.#look(told, record);
    if (place === null) return unsure(told);
    // Its buyer was erased, and may have taken another place since.
    if (place?.number !== told.known.number) return last(told, endEvent('no_place'));
    // A look that was held up may end after the next one.
    if (beganAt < told.knownAt) return;
    told.knownAt = beganAt;
    const data = dataOf(this.#host, told, place);
    if (hasEnded(place)) return last(told, `${placeEvent(data)}${endEvent(place.state)}`);
    if (data === told.seen) return remind(told);
    told.seen = data;
    send(told, Buffer.from(placeEvent(data)));
  }

  /** @returns `undefined`: the buyer has no place; `null`: it can't be looked up */
  async #look({ holder, known }: Told, record: SaleRecord): Promise<ToldPlace | undefined | null> {
    try {
      return await this.#host.queue.look(record, holder.buyerId, known);
    } catch (error) {
      this.#failed(error);
      return null;
    }
  }

  #failed(error: unknown): void {
    if (!(error instanceof StockadeError)) this.#host.fault(error);
  }
}

/** The place of this listener could not be looked up now. */
function unsure(told: Told): void {
  if (told.seen === undefined || monotonicMs() - told.knownAt < UNSURE_MS) {
    remind(told);
    return;
  }
  told.seen = undefined;
  send(told, UNAVAILABLE);
}

/** Says something to a listener that has heard nothing for some time. */
function remind(told: Told): void {
  if (monotonicMs() - told.spokeAt >= SILENT_MS) send(told, COMMENT);
}

function send(told: Told, piece: Uint8Array): void {
  told.spokeAt = monotonicMs();
  told.listener.send(piece);
}

function last(told: Told, text: string): void {
  send(told, Buffer.from(text));
  told.listener.finish();
}

function hasEnded({ state }: ToldPlace): boolean {
  return state !== 'waiting' && state !== 'hopeless' && state !== 'offered';
}

function dataOf(
  { queueSigners }: LiveHost,
  { holder, placeToken }: Pick<Told, 'holder' | 'placeToken'>,
  place: ToldPlace,
): string {
  return JSON.stringify(placeJson(queueSigners, holder, place, placeToken));
}

function placeEvent(data: string): string {
  return `event: place\ndata: ${data}\n\n`;
}
