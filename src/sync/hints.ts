/** Which logs are said to have grown, and the sleep of the loop, which such a hint ends. */
export class Hints {
  #hinted = new Map<string, Set<number>>();
  #wake: (() => void) | undefined;
  #deaf = false;
  #closed = false;

  get isEmpty(): boolean {
    return this.#hinted.size === 0;
  }

  /** Wakes the loop, but not from the pause after a failure: under load that would be no pause. */
  add(saleId: string, segments: readonly number[] = []): void {
    let hinted = this.#hinted.get(saleId);
    if (!hinted) {
      hinted = new Set();
      this.#hinted.set(saleId, hinted);
    }
    for (const segment of segments) hinted.add(segment);
    if (!this.#deaf) this.#wake?.();
  }

  /** Ends the sleep, also a deaf one. */
  wake(): void {
    this.#wake?.();
  }

  takeAll(): ReadonlyMap<string, ReadonlySet<number>> {
    const hinted = this.#hinted;
    this.#hinted = new Map();
    return hinted;
  }

  async sleep(ms: number, hearing: 'deaf' | 'to hints' = 'to hints'): Promise<void> {
    if (ms <= 0 || this.#closed) return;
    this.#deaf = hearing === 'deaf';
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  /** Ends the sleep, also a deaf one, and leaves no room for another. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
  }
}
