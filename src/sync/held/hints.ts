/**
 * Which hints end the loop's sleep. `none`: in the pause after a failure, because under load the next hint comes at once.
 * `awaited`: while sync yields to buyers, only hints for which a buyer or a rebuild waits.
 */
export type WakingHints = 'all' | 'awaited' | 'none';

/** The logs that hints have named, and the loop's sleep, which a hint ends. */
export class Hints {
  #hinted = new Map<string, Set<number>>();
  #wake: (() => void) | undefined;
  #waking: WakingHints = 'all';
  #closed = false;

  get isEmpty(): boolean {
    return this.#hinted.size === 0;
  }

  /**
   * Adds a hint, and wakes the loop if it listens to such hints. @param awaited whether a buyer or a rebuild waits
   */
  add(saleId: string, segments: readonly number[] = [], awaited = true): void {
    let hinted = this.#hinted.get(saleId);
    if (!hinted) {
      hinted = new Set();
      this.#hinted.set(saleId, hinted);
    }
    for (const segment of segments) hinted.add(segment);
    if (this.#waking === 'all' || (this.#waking === 'awaited' && awaited)) this.#wake?.();
  }

  /** Ends the sleep, but not the pause after a failure. */
  notify(): void {
    if (this.#waking !== 'none') this.#wake?.();
  }

  /** Ends the sleep, whatever it listens to. */
  wake(): void {
    this.#wake?.();
  }

  takeAll(): ReadonlyMap<string, ReadonlySet<number>> {
    const hinted = this.#hinted;
    this.#hinted = new Map();
    return hinted;
  }

  async sleep(ms: number, waking: WakingHints = 'all'): Promise<void> {
    if (ms <= 0 || this.#closed) return;
    this.#waking = waking;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  /** Ends the sleep, whatever it listens to, and prevents later ones. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
  }
}
