/**
 * A lane's hold on the lock of its segment. One acquisition serves a whole batch, and is kept for the next one if the
 * lane has it ready within two turns of the event loop; after `HOLD_MAX_MS` others get their turn in between.
 *
 *   free ──batch──> held, serving ──served──> held, idle ──two turns──> free
 *                      ▲                        │
 *                      └────────batch───────────┘ ──held for long enough──> given back, and acquired anew
 */
import pLimit from 'p-limit';
import { monotonicMs } from '../../lib/monotonic.ts';
import type { LockHandle } from '../../locks/lock-handle.ts';
import { KEEP_MAX_MS } from '../../locks/lock-limits.ts';

/** Not less than KEEP_MAX_MS, or the lock would be handed to ourselves instead of being released. */
export const HOLD_MAX_MS = 100;

if (HOLD_MAX_MS < KEEP_MAX_MS) throw new Error('a segment must be held for as long as a lock is kept');

export class SegmentHold {
  readonly #acquire: () => Promise<LockHandle>;
  readonly #over: () => void;
  readonly #line = pLimit(1);
  #handle: LockHandle | undefined;
  #heldSince = 0;

  /** @param over called when nothing is held and nobody waits */
  constructor(acquire: () => Promise<LockHandle>, over: () => void) {
    this.#acquire = acquire;
    this.#over = over;
  }

  /** One batch at a time. @throws what the acquisition or the work throws */
  serve<T>(work: (handle: LockHandle) => Promise<T>): Promise<T> {
    return this.#line(async () => {
      try {
        this.#handle = await this.#current();
        return await work(this.#handle);
      } catch (error) {
        // Perhaps the lock is lost, and nobody has told us yet. It is acquired anew in any case.
        const handle = this.#handle;
        this.#handle = undefined;
        void giveBack(handle);
        throw error;
      } finally {
        setImmediate(() => setImmediate(() => this.#letGo()));
      }
    });
  }

  async #current(): Promise<LockHandle> {
    const handle = this.#handle;
    const now = monotonicMs();
    if (handle?.held && now - this.#heldSince < HOLD_MAX_MS) return handle;
    this.#handle = undefined;
    // Asked for before the old one is given back: so this process is known to wait, and lets others go first.
    const [next] = await Promise.all([this.#acquire(), giveBack(handle)]);
    this.#heldSince = monotonicMs();
    return next;
  }

  #letGo(): void {
    if (this.#line.activeCount + this.#line.pendingCount > 0) return;
    const handle = this.#handle;
    this.#handle = undefined;
    void giveBack(handle);
    this.#over();
  }
}

/** A lock that turns out to be lost has done no harm: the take was refused, or nobody else has had the lock before it. */
async function giveBack(handle: LockHandle | undefined): Promise<void> {
  await handle?.release().catch(() => {});
}
