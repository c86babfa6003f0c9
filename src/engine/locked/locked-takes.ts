/**
 * Takes under the lock of their segment: lock striping, as in ConcurrentHashMap. One acquisition serves a whole
 * batch. Between acquisition and take the shop's own work may run: a risk check, a payment hold. It is alone on the
 * segment, and may refuse single orders.
 *
 *   lock the segment -> `inside`, for orders that it has not seen -> take, with the fencing token -> the next batch, or unlock
 *
 * An order whose buyer has been answered meanwhile, because the deadline has passed, is left out: the answer said
 * that nothing was taken. So is one whose deadline is near, because the take might come too late.
 *
 * The take is the same atomic script as without a lock, with the same checks. So a lost lock never sells a unit
 * twice. It endangers only the shop's own work, and therefore a take under a lost lock is refused.
 *
 * | event | what remains |
 * |---|---|
 * | the lock is not free in time | nothing was done: `NotExecuted` |
 * | all buyers were answered before the lock was free | the same, and `inside` has not run |
 * | `inside` throws, or is late | what `inside` has done; no order was taken: `NotExecuted` |
 * | the lock is lost before the take | the same: the take is not sent, or its token is refused |
 * | the reply to the take is lost | the lane repeats the take with the same orders, without `inside` |
 * | the process dies during `inside` | what `inside` has done; the lock, until its ttl is over |
 */

import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { LockLost, LockNotAcquired } from '../../locks/lock-errors.ts';
import type { LockHandle } from '../../locks/lock-handle.ts';
import type {
  LogHint,
  RefillReply,
  TakeBatch,
  TakeOrder,
  TakeReply,
  TakeResult,
  TakeStore,
} from '../contract.ts';
import { NotExecuted } from '../errors.ts';
import { LEAST_TIME_TO_TAKE_MS } from '../limits.ts';
import { SegmentHold } from './segment-hold.ts';
import type { SegmentLocks } from './segment-locks.ts';

/** An order that the shop's own work refuses. */
export interface Refusal {
  readonly orderId: string;
  /** Sent to the buyer. */
  readonly reason: string;
}

/**
 * The shop's work inside the critical section, once for each order. `lock.signal` aborts if the lock is lost or the
 * time limit has passed.
 * @returns the orders that must not be taken
 */
export type Inside = (
  orders: readonly TakeOrder[],
  lock: Pick<LockHandle, 'token' | 'signal'>,
) => Promise<readonly Refusal[]>;

export interface LockedTakesOptions {
  readonly locks: SegmentLocks;
  /** How long a batch waits for its segment's lock, in milliseconds. */
  readonly lockWaitMs: number;
  readonly inside?: Inside | undefined;
  /** Time limit of `inside`, in milliseconds. Meanwhile all buyers of the segment wait. */
  readonly insideMaxMs?: number | undefined;
}

const DEFAULT_INSIDE_MAX_MS = 1_000;

const APPROVED = 'approved';
const UNSENT: TakeResult = { kind: 'unsent' };

export class LockedTakes implements TakeStore {
  readonly #takes: TakeStore;
  readonly #options: LockedTakesOptions;
  readonly #holds = new Map<string, SegmentHold>();
  /**
   * What `inside` has said of each order, because orders may come again. An approved one may have been taken already when it comes
   * again. A refused one comes again if the take of the others was refused as a whole.
   */
  readonly #said = new WeakMap<TakeOrder, TakeResult | typeof APPROVED>();

  /** @param takes a store that refuses a batch whose fencing token is not the newest */
  constructor(takes: TakeStore, options: LockedTakesOptions) {
    this.#takes = takes;
    this.#options = options;
  }

  get ready(): boolean {
    return this.#takes.ready;
  }

  whenReady(timeoutMs: number): Promise<void> {
    return this.#takes.whenReady(timeoutMs);
  }

  hint(hint: LogHint): void {
    this.#takes.hint(hint);
  }

  take(batch: TakeBatch): Promise<TakeReply> {
    return this.#underLock(batch, async (handle, waiting) => {
      const refused = await this.#refusedOf(waiting, handle);
      // Deadlines may have passed while `inside` ran.
      const orders = waiting.filter((order) => isWaiting(order) && !refused.has(order));
      if (orders.length === 0 && batch.orders.length > 0) return nothingTaken(resultsOf(batch, refused));
      const reply = await this.#takes.take({ ...batch, orders, fencingToken: handle.token });
      return replyForAll(batch, orders, reply, refused);
    });
  }

  /** Only orders that were short come here; `inside` has approved them already. */
  refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply> {
    return this.#underLock(batch, async (handle, orders) => {
      const sent = { ...batch, orders, fencingToken: handle.token };
      const reply = await this.#takes.refillAndTake(sent, segments);
      return reply.status === 'stale' ? reply : { ...reply, take: replyForAll(batch, orders, reply.take) };
    });
  }

  /** @param work gets the orders whose buyers still wait when the lock is held: at least one, if the batch has any */
  async #underLock<T>(
    batch: TakeBatch,
    work: (handle: LockHandle, waiting: readonly TakeOrder[]) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#holdOf(batch).serve((handle) => {
        const waiting = batch.orders.filter(isWaiting);
        if (waiting.length === 0 && batch.orders.length > 0)
          throw new NotExecuted('nothing was taken: all buyers were answered before the lock was free');
        return work(handle, waiting);
      });
    } catch (error) {
      if (error instanceof LockLost || error instanceof LockNotAcquired) {
        throw new NotExecuted(`nothing was taken: ${error.message}`, error);
      }
      throw error;
    }
  }

  #holdOf(batch: TakeBatch): SegmentHold {
    const { locks, lockWaitMs } = this.#options;
    const { saleId, segment, generation } = batch;
    const name = `${saleId}:${segment}`;
    const ref = { saleId, segment, generation };
    let hold = this.#holds.get(name);
    if (!hold) {
      const own = new SegmentHold(
        {
          acquire: () => locks.lock(ref, lockWaitMs),
          release: (handle) => locks.release(ref, handle),
        },
        () => {
          if (this.#holds.get(name) === own) this.#holds.delete(name);
        },
      );
      hold = own;
      this.#holds.set(name, own);
    }
    return hold;
  }

  async #refusedOf(
    orders: readonly TakeOrder[],
    handle: LockHandle,
  ): Promise<ReadonlyMap<TakeOrder, TakeResult>> {
    const { inside, insideMaxMs = DEFAULT_INSIDE_MAX_MS } = this.#options;
    const unseen = orders.filter((order) => !this.#said.has(order));
    if (inside && unseen.length > 0) {
      const refusals = await runInside(inside, unseen, handle, insideMaxMs);
      handle.assertHeld();
      const reasons = new Map(refusals.map(({ orderId, reason }) => [orderId, reason]));
      for (const order of unseen) {
        const reason = reasons.get(order.orderId);
        this.#said.set(order, reason === undefined ? APPROVED : { kind: 'refused', reason });
      }
    }
    const refused = new Map<TakeOrder, TakeResult>();
    for (const order of orders) {
      const said = this.#said.get(order) ?? APPROVED;
      if (said !== APPROVED) refused.set(order, said);
    }
    return refused;
  }
}

/** Its buyer has not been answered, and there is time for a take. */
function isWaiting({ settled, deadline = Number.POSITIVE_INFINITY }: TakeOrder): boolean {
  return !settled && deadline >= monotonicMs() + LEAST_TIME_TO_TAKE_MS;
}

async function runInside(
  inside: Inside,
  orders: readonly TakeOrder[],
  { token, signal: lost }: LockHandle,
  insideMaxMs: number,
): Promise<readonly Refusal[]> {
  const over = new AbortController();
  const abort = () => over.abort(lost.reason);
  lost.addEventListener('abort', abort, { once: true });
  try {
    return await withTimeout(insideMaxMs, inside(orders, { token, signal: over.signal }));
  } catch (error) {
    over.abort(error);
    const why = error instanceof Error ? error.message : String(error);
    throw new NotExecuted(
      `nothing was taken, because the work under the segment's lock failed: ${why}`,
      error,
    );
  } finally {
    lost.removeEventListener('abort', abort);
  }
}

/** Turns the reply for the sent orders into a reply for the whole batch. */
function replyForAll(
  batch: TakeBatch,
  sent: readonly TakeOrder[],
  reply: TakeReply,
  refused: ReadonlyMap<TakeOrder, TakeResult> = new Map(),
): TakeReply {
  if (reply.status !== 'served') return reply;
  const results = new Map([...refused, ...sent.map((order, i) => [order, reply.results[i]!] as const)]);
  return { ...reply, results: resultsOf(batch, results) };
}

function resultsOf({ orders }: TakeBatch, known: ReadonlyMap<TakeOrder, TakeResult>): TakeResult[] {
  return orders.map((order) => known.get(order) ?? UNSENT);
}

/** A reply without a log entry: no order was sent. */
function nothingTaken(results: readonly TakeResult[]): TakeReply {
  return { status: 'served', results, seq: 0, committed: 0, left: 0, orders: 0, returned: 0 };
}
