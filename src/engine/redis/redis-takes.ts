import type { Redis } from 'ioredis';
import { withTimeout } from '../../lib/with-timeout.ts';
import { corking, DEMOTED } from '../../redis/clients.ts';
import type { LogHint, RefillReply, TakeBatch, TakeReply, TakeResult, TakeStore } from '../contract.ts';
import { BackendCorrupt, NotExecuted, OutcomeUnknown, StockadeError } from '../errors.ts';
import { NO_RULES } from '../sale/rules.ts';
import { SegmentCache } from '../sale/segment-cache.ts';
import { wantOf } from '../sale/transfer-plan.ts';
import type { Keys, SegmentKeys } from './keys.ts';
import { encodeHint } from './messages.ts';
import { type RawTakeReply, Scripts, STALE } from './scripts.ts';

const TAKEN: TakeResult = { kind: 'taken' };
const SHORT: TakeResult = { kind: 'short' };

/**
 * Errors of commands that did nothing: Redis refused the script before its first write, or ioredis could not send it.
 */
const REFUSED =
  /^(FENCED|OOM|LOADING|READONLY|MISCONF|NOREPLICAS|NOSCRIPT|BADARG|BUSY|CLUSTERDOWN|MASTERDOWN|NOAUTH|NOPERM|MOVED|ASK|TRYAGAIN|Stream isn't writeable)\b/;

export interface RedisTakeOptions {
  /** If a reply takes longer, the connection is dropped and the outcome of the batch is unknown. */
  readonly takeTimeoutMs: number;
  /** Orders that one segment's log may hold beyond the cursor. Beyond that, takes are refused as busy. */
  readonly maxLogOrders: number;
}

export class RedisTakes implements TakeStore {
  readonly #redis: Redis;
  readonly #cork: () => void;
  readonly #scripts: Scripts;
  readonly #keys: Keys;
  readonly #options: RedisTakeOptions;
  readonly #segmentKeys: SegmentCache<SegmentKeys>;

  constructor(redis: Redis, keys: Keys, options: RedisTakeOptions) {
    this.#redis = redis;
    this.#cork = corking(redis);
    this.#scripts = new Scripts(redis);
    this.#keys = keys;
    this.#segmentKeys = new SegmentCache((segment) => keys.segment(segment));
    this.#options = options;
  }

  get ready(): boolean {
    // A connection that is being closed keeps this status for a moment.
    return this.#redis.status === 'ready' && this.#redis.stream.writable;
  }

  async whenReady(timeoutMs: number): Promise<void> {
    if (this.ready) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#redis.off('ready', done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      this.#redis.on('ready', done);
    });
  }

  async take(batch: TakeBatch): Promise<TakeReply> {
    const reply = await this.#guarded(batch, () =>
      this.#scripts.take(this.#segmentKeys.get(batch), this.#head(batch), batch.orders),
    );
    return decodeTake(reply, batch.orders.length);
  }

  async refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply> {
    const refill = {
      segments: this.#keys.segments(batch.saleId, segments),
      sale: this.#keys.sale(batch.saleId),
      ...wantOf(batch.segment, batch.orders),
    };
    const reply = await this.#guarded(batch, () =>
      this.#scripts.refillAndTake(refill, this.#segmentKeys.get(batch), this.#head(batch), batch.orders),
    );
    if (typeof reply === 'string') return { status: 'stale' };
    const [[total, , epoch], raw] = reply;
    const take = decodeTake(raw, batch.orders.length);
    return { status: 'refilled', take, total: total - unitsTaken(take, batch), epoch };
  }

  hint(hint: LogHint): void {
    if (!this.ready) return;
    this.#cork();
    this.#redis.publish(this.#keys.hints, encodeHint(hint)).catch(() => {});
  }

  #head({ generation, lane, ticket, answeredTicket, newest, rules = NO_RULES, fencingToken }: TakeBatch) {
    const { maxLogOrders } = this.#options;
    return { generation, lane, ticket, answeredTicket, newest, rules, fencingToken, maxLogOrders };
  }

  /** Sorts failures into "nothing was done" and "outcome unknown", and limits the wait. */
  async #guarded<T>({ sending }: TakeBatch, send: () => Promise<T>): Promise<T> {
    if (!this.ready) throw new NotExecuted(`Redis can't be reached (connection is ${this.#redis.status})`);
    sending?.();
    this.#cork();
    const { takeTimeoutMs } = this.#options;
    try {
      return await withTimeout(takeTimeoutMs, send());
    } catch (error) {
      if (error instanceof StockadeError && error.code === 'timed_out') {
        this.#redis.disconnect(true);
        throw new OutcomeUnknown(`no reply from Redis within ${takeTimeoutMs} ms`, error);
      }
      const message = error instanceof Error ? error.message : String(error);
      if (DEMOTED.test(message)) this.#redis.disconnect(true);
      if (REFUSED.test(message)) throw new NotExecuted(`Redis refused the take: ${message}`, error);
      if (error instanceof Error && error.name === 'ReplyError') {
        throw new BackendCorrupt(`the take script failed: ${message}`);
      }
      throw new OutcomeUnknown(`the reply to a take was lost: ${message}`, error);
    }
  }
}

/** Units of the batch's orders that were taken. */
export function unitsTaken(reply: TakeReply, batch: TakeBatch): number {
  if (reply.status !== 'served') return 0;
  return reply.results.reduce((sum, r, i) => (r.kind === 'taken' ? sum + batch.orders[i]!.quantity : sum), 0);
}

function decodeTake(reply: RawTakeReply, orders: number): TakeReply {
  if (typeof reply === 'string') return { status: decodeStatus(reply) };
  const [seq, committed, left, ordersSoFar, ...codes] = reply;
  if (codes.length > 0 && codes.length !== orders)
    throw new BackendCorrupt(`${orders} orders got ${codes.length} answers`);
  const results = new Array<TakeResult>(orders).fill(TAKEN);
  for (const [i, code] of codes.entries()) {
    if (code !== 1) results[i] = code === 0 ? SHORT : decodeSettled(String(code));
  }
  return { status: 'served', results, seq, committed, left, orders: ordersSoFar };
}

function decodeStatus(status: string): Exclude<TakeReply['status'], 'served'> {
  switch (status) {
    case 'paused':
    case 'closed':
    case 'busy':
    case 'superseded':
    case 'outdated':
    case STALE:
      return status;
    case 'loaded':
    case 'frozen':
    case 'lost':
      return 'stale';
    default:
      throw new BackendCorrupt(`a segment has the state ${JSON.stringify(status)}`);
  }
}

function decodeSettled(words: string): TakeResult {
  const [kind, ...rest] = words.split(' ');
  switch (kind) {
    case 'replay':
      return { kind, orderId: rest[0]!, quantity: Number(rest[1]), seq: Number(rest[2]) };
    case 'mismatch':
      return { kind, orderId: rest[0]!, quantity: Number(rest[1]) };
    case 'limit':
      return { kind, orderIds: rest.filter(Boolean) };
    default:
      throw new BackendCorrupt(`a take was answered ${JSON.stringify(words)}`);
  }
}
