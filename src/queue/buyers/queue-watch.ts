/**
 * What a worker knows of the queue of one sale, while somebody asks for it: it is read from Postgres once a second, and answers are
 * given from memory.
 *
 *   first asked ──> read ──> answers ──a second later──> read again …  ──nobody has asked for IDLE_MS──> forgotten
 *
 * A place behind the head waits: nothing of it must be read to say so. Only a place whose turn may have come is read, together
 * with all others that are asked for at the time. The head reports its position after it has made the offers, so for a moment
 * there may be offers behind that position. So the places up to NEAR_RANKS behind it are read too, or up to the reach that the
 * head has stored.
 *
 * Those who ask are present. Their marks are collected, and written once a second. If a write fails, the next round writes them.
 *
 * A process that is cut off from Postgres must not go on telling what it has read: other processes do not hear of its people, who may
 * lose their places meanwhile. So what was read more than MAX_AGE_MS ago is told to nobody. The rounds go on, and those who ask are
 * noted all the same.
 */
import type { QueueSettings, SaleRecord } from '../../engine/contract.ts';
import { StockadeError } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { Rounds } from '../../lib/rounds.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Database } from '../../postgres/database.ts';
import { entrySalt } from '../draw/entry-digest.ts';
import { orderOf } from '../drawing.ts';
import { DrawnLine, FifoLine, type Line } from '../line.ts';
import type { Place } from '../place.ts';
import { waitingBetween } from '../places.ts';
import { ASKED_EVERY_MS, EVERYBODY, markAsked, markPresent, readPresent } from '../presence.ts';
import { NEAR_RANKS, type QueueState, readQueue } from '../queue-state.ts';
import { isMoving, OfferRate } from './offer-rate.ts';
import { PeopleAhead } from './people-ahead.ts';
import type { ToldPlace, WaitingPlace } from './place-view.ts';

export const EVERY_MS = 1_000;
/** What was read before is not told any more. Some rounds may fail, and a busy machine may be late. */
export const MAX_AGE_MS = 5 * EVERY_MS;
const IDLE_MS = 15_000;
/** Those who have left are not counted as ahead. While nobody counts as absent, that is found out for no more places than these. */
const MOST_LOOKED_UP = 65_536;

export interface QueueWatchParts {
  readonly db: Database;
  /** Of a sale that has a queue. */
  readonly record: SaleRecord;
  readonly fault: (error: unknown) => void;
  /** It was not asked for some time, and has ended. */
  readonly forgotten: () => void;
}

/** A queue for the operators. */
export interface WatchedQueue {
  readonly saleId: string;
  /** Places behind the head: no more than these wait. */
  readonly behindHead: number;
  /** For how long no new report of the head was seen. */
  readonly silentMs: number;
}

interface Picture {
  /** Before the read, by a clock that is never set back. */
  readonly readAtMs: number;
  readonly state: QueueState;
  /** `undefined` before the draw. */
  readonly line: Line | undefined;
  readonly ahead: PeopleAhead;
}

export class QueueWatch {
  /** The newest one of the sale, as it was when it had a queue. */
  record: SaleRecord;
  readonly #parts: QueueWatchParts;
  readonly #rounds: Rounds;
  readonly #rate = new OfferRate();
  /** By place: when its buyer was heard of, since the marks were written last. */
  #heard = new Map<number, number>();
  /** The same of those whose marks are being written, or could not be written. */
  #unwritten = new Map<number, number>();
  #picture: Picture | undefined;
  /** When the newest report of the head was seen first. Postgres' clock may be another one than that of this machine. */
  #reportedAt = monotonicMs();
  /** The order of the draw with this hash, perhaps under way. The sale may be deleted and made again. */
  #drawn: { readonly entriesHash: string; readonly line: Promise<DrawnLine> } | undefined;
  #first: Promise<void> | undefined;
  #askedAt = monotonicMs();
  /** When it was written last that somebody asks. */
  #notedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: QueueWatchParts) {
    this.#parts = parts;
    this.record = parts.record;
    this.#rounds = new Rounds({
      everyMs: EVERY_MS,
      isSteady: true,
      beginsWithPause: true,
      round: () => this.#round(),
      failed: (error) => parts.fault(error),
    });
    this.#rounds.start();
  }

  /** Whether there is something to tell that is not too old. */
  get isReady(): boolean {
    return this.#picture !== undefined && monotonicMs() - this.#picture.readAtMs <= MAX_AGE_MS;
  }

  /** `undefined`: nothing was read lately. */
  get watched(): WatchedQueue | undefined {
    if (!this.isReady) return undefined;
    const { saleId, lastNumber, head } = this.#picture!.state;
    const silentMs = monotonicMs() - this.#reportedAt;
    return { saleId, behindHead: Math.max(0, lastNumber - head), silentMs };
  }

  /** Resolves when there is something to tell. @throws the database's error; StockadeError if all that was read is too old */
  async ready(): Promise<void> {
    this.#askedAt = monotonicMs();
    if (this.isReady) return;
    // The next round reads. If each who asks did so, a Postgres that does not answer would be asked without a pause.
    if (this.#picture) throw new StockadeError('unavailable', 'the queue was not read lately');
    this.#first ??= this.#exchange().finally(() => {
      this.#first = undefined;
    });
    await this.#first;
  }

  /** Somebody has left a place, or was refused one: the head is to look how the queue stands. */
  asked(): void {
    this.#askedAt = monotonicMs();
  }

  /** The buyer of this place is there. */
  heard(number: number): void {
    this.#askedAt = monotonicMs();
    if (this.#settings.presenceSeconds > 0) this.#heard.set(number, this.#askedAt);
  }

  /** The buyer of this place has left. */
  gone(number: number): void {
    this.#heard.delete(number);
    this.#unwritten.delete(number);
  }

  /** Whether the place may not wait any more. To be called after `ready`. */
  mustRead(number: number): boolean {
    const { state, line } = this.#picture!;
    // Places that are absent, or want more than is free, may be between the head and those that have offers.
    return line !== undefined && line.rankOf(number) <= Math.max(state.head + NEAR_RANKS, state.reach);
  }

  /** What a place that waits is told. To be called after `ready`. */
  tell({ number, quantity }: WaitingPlace): ToldPlace {
    const { state, line, ahead: people } = this.#picture!;
    if (!line) {
      const entries = Math.max(state.lastNumber, number);
      return { number, quantity, state: 'waiting', reason: undefined, entries };
    }
    const rank = line.rankOf(number);
    const isHopeless = state.hopelessFrom !== undefined && rank >= state.hopelessFrom;
    const ahead = people.of(rank);
    return {
      ...{ number, quantity, rank, ahead, reason: undefined },
      state: isHopeless ? 'hopeless' : 'waiting',
      estimate: isHopeless || state.isStopped ? undefined : this.#rate.until(ahead + 1),
    };
  }

  /** @returns `undefined` for a place that takes part in no draw. To be called after `ready`. */
  saltOf({ number, buyerId }: Pick<Place, 'number' | 'buyerId'>): string | undefined {
    const { saleId, draw } = this.#picture!.state;
    const isEntry = draw.drawn ? number <= draw.drawn.entries : this.#settings.order === 'draw';
    return isEntry ? entrySalt(draw.saltKey, { saleId, number, buyerId }) : undefined;
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  get #settings(): QueueSettings {
    return this.record.sale.queue!;
  }

  async #round(): Promise<boolean> {
    if (monotonicMs() - this.#askedAt > IDLE_MS && this.#heard.size + this.#unwritten.size === 0) {
      this.#parts.forgotten();
      return false;
    }
    // A connection that hangs must not keep the next round from another one.
    await withTimeout(MAX_AGE_MS, this.#exchange());
    return false;
  }

  async #exchange(): Promise<void> {
    await this.#writeMarks();
    await this.#read();
  }

  async #writeMarks(): Promise<void> {
    const { presenceSeconds } = this.#settings;
    // Whoever is heard of from now on is written again next time: a new period may have begun.
    const heard = this.#heard;
    this.#heard = new Map();
    for (const [number, at] of this.#unwritten) if (!heard.has(number)) heard.set(number, at);
    this.#unwritten = heard;
    if (presenceSeconds === 0) heard.clear();
    await this.#noteAsked();
    if (heard.size === 0) return;
    try {
      await markPresent(this.#parts.db, this.record.sale.id, presenceSeconds, heard.keys());
    } catch (error) {
      // Those who have not asked for a whole period are absent, and are not to count as present when Postgres is back.
      const since = monotonicMs() - presenceSeconds * 1_000;
      for (const [number, at] of heard) if (at < since) heard.delete(number);
      throw error;
    }
    // A write that took too long may end after the next one has begun, which has all of its places.
    if (this.#unwritten === heard) this.#unwritten = new Map();
  }

  /** The head reports how the queue stands while somebody asks. */
  async #noteAsked(): Promise<void> {
    const now = monotonicMs();
    if (now - this.#notedAt < ASKED_EVERY_MS) return;
    await markAsked(this.#parts.db, this.record.sale.id);
    this.#notedAt = now;
  }

  async #read(): Promise<void> {
    const { db } = this.#parts;
    const saleId = this.record.sale.id;
    const readAtMs = monotonicMs();
    const state = await readQueue(db, saleId);
    // The row is written when a sale gets its queue, before any node knows of the queue.
    if (!state) throw new Error(`the queue of sale ${saleId} is missing in Postgres`);
    const line = await this.#lineOf(state);
    this.#rate.note(monotonicMs(), state.offersMade, isMoving(state, this.record));
    const picture = { readAtMs, state, line, ahead: await this.#peopleAhead(state, line) };
    // A read that was late may end after the next one.
    if (this.#picture && this.#picture.readAtMs >= readAtMs) return;
    if (this.#picture?.state.report !== state.report) this.#reportedAt = readAtMs;
    this.#picture = picture;
  }

  async #lineOf({ saleId, draw }: QueueState): Promise<Line | undefined> {
    if (!draw.drawn) return this.#settings.order === 'draw' ? undefined : new FifoLine(saleId);
    const { entriesHash } = draw.drawn;
    // A long draw may take longer than a round, and the next round must not begin another one.
    if (this.#drawn?.entriesHash !== entriesHash)
      this.#drawn = {
        entriesHash,
        line: orderOf(draw.seed, draw.drawn).then((order) => new DrawnLine(saleId, order)),
      };
    return this.#drawn.line;
  }

  async #peopleAhead({ head, lastNumber }: QueueState, line: Line | undefined): Promise<PeopleAhead> {
    if (!line) return PeopleAhead.everybody(head);
    const { db, record } = this.#parts;
    const { presenceSeconds } = this.#settings;
    const present =
      presenceSeconds === 0 ? EVERYBODY : await readPresent(db, record.sale.id, presenceSeconds);
    if (!present.isEverybody) return PeopleAhead.count(head, lastNumber, line, present);
    // Nobody is absent, and yet some have left. In a long queue it would cost too much to look who.
    const after = line instanceof FifoLine ? head : 0;
    if (lastNumber - after > MOST_LOOKED_UP) return PeopleAhead.everybody(head);
    const waiting = new Set(await waitingBetween(db, record.sale.id, after, lastNumber));
    return PeopleAhead.count(head, lastNumber, line, waiting);
  }
}
