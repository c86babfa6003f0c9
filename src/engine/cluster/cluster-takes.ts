/**
 * Takes on a cluster. Each goes to the server of its segment, over a connection that sends a command at most once.
 * Each server has one such connection, with the options, deadlines and error handling of a single Redis
 * (redis/take/redis-takes.ts). This file chooses the server. It also makes the refill before a take, and reads what is
 * left after it, because no script sees all segments (refill.ts, cluster-sight.ts).
 *
 *   take ──MOVED──> not executed: sent again to the server that the reply names; the map may not know it yet
 *     │ ──READONLY──> not executed: sent again to the server that the map names by now, or `unavailable`
 *     │ ──ASK, TRYAGAIN──> not executed: the segment is moving to another server. Sent again until the move has ended, for
 *     │                    `takeTimeoutMs` at most; then `unavailable`
 *     └──reply lost──> outcome unknown: the lane repeats the take, with the same order ids and a newer ticket
 */
import { setTimeout as delay } from 'node:timers/promises';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { LogHint, RefillReply, TakeBatch, TakeReply, TakeStore } from '../contract.ts';
import { BackendCorrupt, NotExecuted, StaleGeneration } from '../errors.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import { unitsTaken } from '../redis/take/redis-takes.ts';
import { SegmentCache } from '../sale/segment-cache.ts';
import { wantOf } from '../sale/transfer-plan.ts';
import type { ClusterSight, Stock } from './cluster-sight.ts';
import { type Primaries, removedFrom } from './primaries.ts';
import { type Refill, UNKNOWN_TOTAL } from './refill.ts';
import { slotOf } from './slot.ts';

/** Redirects that one take follows at most. */
const MAX_REDIRECTS = 3;
/** Errors of a server that does not have the segment, or may not have it. Nothing was done. */
const REDIRECTED = /\bMOVED\b|\bREADONLY\b/;
/** Errors of a server while it gives a segment to another one, or gets it. Nothing was done. */
const MOVING = /\bASK\b|\bTRYAGAIN\b/;
/** Pause between two attempts while a segment moves, which takes some milliseconds. */
const MOVING_PAUSE_MS = 20;
/**
 * How long the connection to a server is kept if a take was redirected there and the map does not name it. The map comes from any
 * one server, which may not know the new one yet.
 */
const KEEP_REDIRECTED_MS = 10_000;
/** The address in a redirect. Without a host it is the answering server's own host. */
const MOVED_TO = /\bMOVED \d+ (\S*:\d+)/;
/** Attempts to read a total that is certain while units move. */
const MAX_TOTAL_READS = 3;

export interface ServerTakes {
  readonly takes: TakeStore;
  close(): void;
}

export interface ClusterTakesParts {
  readonly primaries: Pick<Primaries, 'of' | 'all' | 'refresh' | 'urlOf'>;
  readonly keys: Keys;
  readonly refill: Refill;
  readonly sight: ClusterSight;
  /** Starts a connection, which reconnects by itself. */
  readonly connectTo: (url: string) => ServerTakes;
  readonly takeTimeoutMs: number;
}

export class ClusterTakes implements TakeStore {
  readonly #parts: ClusterTakesParts;
  readonly #servers = new Map<string, ServerTakes>();
  /** Connections that are being opened for the first time. Their takes wait, because the server may just have been added. */
  readonly #opening = new Map<string, Promise<void>>();
  /** Servers that takes were redirected to, by url: until when each is kept, by `monotonicMs`. */
  readonly #keptUntilMs = new Map<string, number>();
  readonly #slots: SegmentCache<number>;

  constructor(parts: ClusterTakesParts) {
    this.#parts = parts;
    this.#slots = new SegmentCache((segment) => slotOf(parts.keys.segment(segment).segment));
    this.follow();
  }

  /** Whether any server can be reached. Takes at the other servers fail one by one. */
  get ready(): boolean {
    for (const { takes } of this.#servers.values()) if (takes.ready) return true;
    return false;
  }

  async whenReady(timeoutMs: number): Promise<void> {
    const servers = [...this.#servers.values()].map(({ takes }) => takes.whenReady(timeoutMs));
    // There is no server for a moment if all were lost at once (`follow`).
    await Promise.race(servers.length > 0 ? servers : [delay(timeoutMs, undefined, { ref: false })]);
  }

  /** Resolves when all servers can be reached, or after `timeoutMs` at the latest. Never rejects. */
  async allReady(timeoutMs: number): Promise<void> {
    await Promise.all([...this.#servers.values()].map(({ takes }) => takes.whenReady(timeoutMs)));
  }

  async take(batch: TakeBatch): Promise<TakeReply> {
    let url = this.#urlOf(batch);
    const waitUntilMs = monotonicMs() + this.#parts.takeTimeoutMs;
    for (let redirects = 0; ; ) {
      try {
        const takes = this.#takesAt(url);
        const opening = this.#opening.get(url!);
        if (opening) await opening;
        return await takes.take(batch);
      } catch (error) {
        if (!(error instanceof NotExecuted)) throw error;
        if (MOVING.test(error.message) && monotonicMs() < waitUntilMs) {
          await delay(MOVING_PAUSE_MS);
          continue;
        }
        const next = await this.#redirect(batch, url, error.message);
        if (redirects >= MAX_REDIRECTS || next === undefined) throw error;
        redirects++;
        this.#keptUntilMs.set(next, monotonicMs() + KEEP_REDIRECTED_MS);
        url = next;
      }
    }
  }

  async refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply> {
    const before = await this.#refill(batch, segments);
    if (before === undefined) return { status: 'stale' };
    const take = await this.take(batch);
    const total = before.total - unitsTaken(take, batch);
    if (total > 0 && !isShort(take)) return { status: 'refilled', take, total, epoch: before.epoch };
    const { total: left, epoch } = await this.#totalAfter(batch, segments, before);
    return { status: 'refilled', take, total: left, epoch };
  }

  hint(hint: LogHint): void {
    // Every server forwards it to all subscribers of the cluster.
    const server = [...this.#servers.values()].find(({ takes }) => takes.ready);
    server?.takes.hint(hint);
  }

  /** Follows the map: opens connections to servers that are new in it, and closes those to servers that were removed. */
  follow(): void {
    const wanted = new Set(this.#parts.primaries.all());
    for (const url of wanted) this.#server(url);
    for (const url of removedFrom(wanted, this.#servers.keys())) {
      if (monotonicMs() < (this.#keptUntilMs.get(url) ?? 0)) continue;
      this.#keptUntilMs.delete(url);
      this.#servers.get(url)?.close();
      this.#servers.delete(url);
    }
  }

  close(): void {
    for (const server of this.#servers.values()) server.close();
    this.#servers.clear();
  }

  /** @returns `undefined` if the sale is stale. @throws NotExecuted: nothing was taken, even if units were moved */
  async #refill(batch: TakeBatch, segments: number): Promise<Stock | undefined> {
    const { refill, takeTimeoutMs } = this.#parts;
    try {
      return await withTimeout(
        takeTimeoutMs,
        refill.run(batch, segments, wantOf(batch.segment, batch.orders)),
      );
    } catch (error) {
      if (error instanceof StaleGeneration) return undefined;
      if (error instanceof NotExecuted || error instanceof BackendCorrupt) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new NotExecuted(
        `nothing was taken, because no units could be moved to the segment: ${why}`,
        error,
      );
    }
  }

  /**
   * What is left in the sale after the take, if that can be read for certain. Otherwise the total is unknown, and the lane asks
   * again for the orders that were short. Never throws.
   */
  async #totalAfter(batch: TakeBatch, segments: number, { epoch }: Stock): Promise<Stock> {
    const { sight, takeTimeoutMs } = this.#parts;
    for (let read = 0; read < MAX_TOTAL_READS; read++) {
      const seen = await withTimeout(takeTimeoutMs, sight.stock(batch, segments)).catch(() => undefined);
      if (seen) return seen;
    }
    return { total: UNKNOWN_TOTAL, epoch };
  }

  #urlOf(batch: TakeBatch): string | undefined {
    return this.#parts.primaries.of(this.#slots.get(batch));
  }

  /** Another server to try, if the error says that there may be one. */
  async #redirect(batch: TakeBatch, asked: string | undefined, failure: string): Promise<string | undefined> {
    const { primaries } = this.#parts;
    // Not awaited yet: after another error nothing is sent elsewhere now, but the next take may find the new server.
    const refreshed = primaries.refresh();
    if (asked === undefined || !REDIRECTED.test(failure)) return undefined;
    await refreshed;
    this.follow();
    const address = MOVED_TO.exec(failure)?.[1];
    const next = address === undefined ? this.#urlOf(batch) : primaries.urlOf(address, asked);
    return next === asked ? undefined : next;
  }

  #takesAt(url: string | undefined): TakeStore {
    if (url === undefined) throw new NotExecuted('no server of the cluster has this segment now');
    return this.#server(url).takes;
  }

  #server(url: string): ServerTakes {
    const known = this.#servers.get(url);
    if (known) return known;
    const server = this.#parts.connectTo(url);
    this.#servers.set(url, server);
    const opening = server.takes.whenReady(this.#parts.takeTimeoutMs).then(() => {
      if (this.#opening.get(url) === opening) this.#opening.delete(url);
    });
    this.#opening.set(url, opening);
    return server;
  }
}

function isShort(take: TakeReply): boolean {
  return take.status === 'served' && take.results.some(({ kind }) => kind === 'short');
}
