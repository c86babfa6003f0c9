import type { Redis } from 'ioredis';
import type { LogHint, RefillReply, TakeBatch, TakeReply, TakeStore } from '../../contract.ts';
import { SegmentCache } from '../../sale/segment-cache.ts';
import { wantOf } from '../../sale/transfer-plan.ts';
import type { Keys, SegmentKeys } from '../protocol/keys.ts';
import { encodeHints } from '../protocol/messages.ts';
import { Scripts, type SegmentTake } from '../protocol/scripts.ts';
import { JointTakes } from './joint-takes.ts';
import { TakeConnection } from './take-connection.ts';

export interface RedisTakeOptions {
  /** If a reply takes longer, the connection is dropped and the outcome of the batch is unknown. */
  readonly takeTimeoutMs: number;
  /** Orders that one segment's log may hold beyond the cursor. Beyond that, takes are refused as busy. */
  readonly maxLogOrders: number;
}

export class RedisTakes implements TakeStore {
  readonly #connection: TakeConnection;
  readonly #scripts: Scripts;
  readonly #keys: Keys;
  readonly #maxLogOrders: number;
  readonly #segmentKeys: SegmentCache<SegmentKeys>;
  /** Missing: each take is a command. A command of a cluster has keys of one slot only. */
  readonly #joint: JointTakes | undefined;
  /** Of this turn of the event loop. */
  #hints: LogHint[] = [];

  constructor(
    redis: Redis,
    keys: Keys,
    { takeTimeoutMs, maxLogOrders }: RedisTakeOptions,
    { isCluster }: { readonly isCluster: boolean },
  ) {
    this.#connection = new TakeConnection(redis, takeTimeoutMs);
    this.#scripts = new Scripts(redis);
    this.#keys = keys;
    this.#maxLogOrders = maxLogOrders;
    this.#segmentKeys = new SegmentCache((segment) => keys.segment(segment));
    this.#joint = isCluster ? undefined : new JointTakes(this.#connection, this.#scripts);
  }

  get ready(): boolean {
    return this.#connection.ready;
  }

  whenReady(timeoutMs: number): Promise<void> {
    return this.#connection.whenReady(timeoutMs);
  }

  async take(batch: TakeBatch): Promise<TakeReply> {
    if (this.#joint && batch.fencingToken === undefined) return this.#joint.take(this.#takeOf(batch));
    const reply = await this.#connection.attempt(() => {
      batch.sending?.(batch.orders, this.#connection.server);
      return this.#scripts.take(this.#takeOf(batch));
    });
    return this.#connection.decode(reply, batch.orders.length);
  }

  async refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply> {
    const refill = {
      segments: this.#keys.segments(batch.saleId, segments),
      sale: this.#keys.sale(batch.saleId),
      ...wantOf(batch.segment, batch.orders),
    };
    const reply = await this.#connection.attempt(() => {
      batch.sending?.(batch.orders, this.#connection.server);
      return this.#scripts.refillAndTake(refill, this.#takeOf(batch));
    });
    if (typeof reply === 'string') return { status: 'stale' };
    const [[total, , epoch], raw] = reply;
    const take = this.#connection.decode(raw, batch.orders.length);
    return { status: 'refilled', take, total: total - unitsTaken(take, batch), epoch };
  }

  /** The hints of one turn of the event loop are one message: in a crowd over many sales, each turn has one for each sale. */
  hint(hint: LogHint): void {
    if (this.#hints.length === 0) process.nextTick(() => this.#sendHints());
    this.#hints.push(hint);
  }

  #sendHints(): void {
    const hints = this.#hints;
    this.#hints = [];
    this.#connection.publish(this.#keys.hints, encodeHints(hints));
  }

  #takeOf(batch: TakeBatch): SegmentTake {
    return {
      keys: this.#segmentKeys.get(batch),
      batch,
      maxLogOrders: this.#maxLogOrders,
      madeBefore: this.#connection.madeBefore(batch.orders),
    };
  }
}

/** Units of the batch's orders that were taken. */
export function unitsTaken(reply: TakeReply, batch: TakeBatch): number {
  if (reply.status !== 'served') return 0;
  return reply.results.reduce((sum, r, i) => (r.kind === 'taken' ? sum + batch.orders[i]!.quantity : sum), 0);
}
