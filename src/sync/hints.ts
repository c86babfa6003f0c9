/**
 * Which hints end the loop's sleep. none: in the pause after a failure, which under load would be no pause. awaited:
 * while it lets the crowd go first.
 */
export type Hearing = 'all' | 'awaited' | 'none';

/** Which logs are said to have grown, and the sleep of the loop, which such a hint ends. */
export class Hints {
  #hinted = new Map<string, Set<number>>();
  #wake: (() => void) | undefined;
  #hearing: Hearing = 'all';
  #closed = false;

  get isEmpty(): boolean {
    return this.#hinted.size === 0;
  }

  /** Wakes the loop, if it hears such hints. @param awaited whether somebody waits for it */
  add(saleId: string, segments: readonly number[] = [], awaited = true): void {
    let hinted = this.#hinted.get(saleId);
    if (!hinted) {
      hinted = new Set();
      this.#hinted.set(saleId, hinted);
    }
    for (const segment of segments) hinted.add(segment);
    if (this.#hearing === 'all' || (this.#hearing === 'awaited' && awaited)) this.#wake?.();
  }

  /** Ends the sleep, whatever it hears. */
  wake(): void {
    this.#wake?.();
  }

  takeAll(): ReadonlyMap<string, ReadonlySet<number>> {
    const hinted = this.#hinted;
    this.#hinted = new Map();
    return hinted;
  }

  async sleep(ms: number, hearing: Hearing = 'all'): Promise<void> {
    if (ms <= 0 || this.#closed) return;
    this.#hearing = hearing;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  /** Ends the sleep, whatever it hears, and leaves no room for another. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
  }
}
