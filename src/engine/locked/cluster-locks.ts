/**
 * The locks of segments on a cluster. The keys of a lock are in the slot of its segment, so they are on the same server, and move
 * with it. Each server has connections of its own for locks. This file only chooses the server.
 *
 *   lock ──MOVED, ASK, or the server can't be reached──> the map of the cluster is read again, and the lock asked for there
 *
 * | event | what remains | how it is resolved |
 * |---|---|---|
 * | a slot moves to another server | the lock and its token move with it | takes go on with that token. The holder releases the lock at the new server. If it has to renew the lock first, it has lost it |
 * | a replica takes over, which may lack the lock or the token | a free lock, and a holder | takes with a token that is not the newest there are refused |
 */
import { setTimeout as delay } from 'node:timers/promises';
import { monotonicMs } from '../../lib/monotonic.ts';
import { LOCKS_CLOSED, LockMoved, LockNotAcquired } from '../../locks/lock-errors.ts';
import type { LockHandle } from '../../locks/lock-handle.ts';
import type { LocksOptions } from '../../locks/lock-options.ts';
import { Locks } from '../../locks/locks.ts';
import { type Primaries, removedFrom } from '../cluster/primaries.ts';
import { slotOf } from '../cluster/slot.ts';
import type { SegmentRef } from '../contract.ts';
import { NotExecuted } from '../errors.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import type { SegmentLocks } from './segment-locks.ts';

/** Pause before the next attempt, while the map may not show the new server yet. */
const PAUSE_MS = 20;
/** After this time a lock that has moved is left to its ttl. */
const RELEASE_MAX_MS = 2_000;

export class ClusterLocks implements SegmentLocks {
  readonly #primaries: Primaries;
  readonly #keys: Keys;
  readonly #options: Pick<LocksOptions, 'ttlMs'>;
  /** By the url of the server. */
  readonly #servers = new Map<string, Promise<Locks>>();
  #closed = false;

  constructor(primaries: Primaries, keys: Keys, options: Pick<LocksOptions, 'ttlMs'>) {
    this.#primaries = primaries;
    this.#keys = keys;
    this.#options = options;
  }

  async lock(segment: SegmentRef, waitMs: number): Promise<LockHandle> {
    const name = this.#keys.segment(segment).lock;
    const deadline = monotonicMs() + waitMs;
    for (;;) {
      try {
        const locks = await this.#locksOf(name);
        return await locks.lock(name, { waitMs: Math.max(1, deadline - monotonicMs()) });
      } catch (error) {
        if (!isElsewhere(error)) throw error;
        if (monotonicMs() + PAUSE_MS >= deadline) throw new NotExecuted(error.message, error);
        await this.#primaries.refresh();
        await delay(PAUSE_MS);
      }
    }
  }

  async release(segment: SegmentRef, handle: LockHandle): Promise<void> {
    try {
      await handle.release();
    } catch (error) {
      if (!(error instanceof LockMoved) || error.owner === undefined) throw error;
      await this.#releaseMoved(this.#keys.segment(segment).lock, error.owner);
    }
  }

  /** The map may show the old server for a while, as other servers tell it. */
  async #releaseMoved(name: string, owner: string): Promise<void> {
    const deadline = monotonicMs() + RELEASE_MAX_MS;
    for (;;) {
      await this.#primaries.refresh();
      try {
        const locks = await this.#locksOf(name);
        return await locks.releaseMoved(name, owner);
      } catch (error) {
        if (!isElsewhere(error) || monotonicMs() >= deadline) throw error;
        await delay(PAUSE_MS);
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#servers.values()].map(closeOpened));
    this.#servers.clear();
  }

  async #locksOf(name: string): Promise<Locks> {
    // A lock may be looked for meanwhile. Nobody would close another connection.
    if (this.#closed) throw new LockNotAcquired(name, LOCKS_CLOSED);
    const url = this.#primaries.of(slotOf(name));
    if (url === undefined) throw new NotExecuted('no server of the cluster has this segment now');
    const known = this.#servers.get(url);
    if (known) return known;
    this.#leaveRemoved();
    const opened = Locks.open({ url, ...this.#options });
    this.#servers.set(url, opened);
    opened.catch(() => {
      // Not a newer one: the server may have left the map and come back since.
      if (this.#servers.get(url) === opened) this.#servers.delete(url);
    });
    return opened;
  }

  #leaveRemoved(): void {
    const all = new Set(this.#primaries.all());
    for (const url of removedFrom(all, this.#servers.keys())) {
      void closeOpened(this.#servers.get(url)!);
      this.#servers.delete(url);
    }
  }
}

/** Whether another server may have the lock. */
function isElsewhere(error: unknown): error is LockMoved | NotExecuted {
  return error instanceof LockMoved || error instanceof NotExecuted;
}

async function closeOpened(opened: Promise<Locks>): Promise<void> {
  const locks = await opened.catch(() => undefined);
  await locks?.close();
}
