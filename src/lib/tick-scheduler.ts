/**
 * Waits for the next turn of the event loop, all who wait in one callback. What they then do in one go (the takes of all
 * lanes) leaves in one write, where a callback each would make a write, and a system call, each.
 */
export class TickScheduler {
  #waiting: (() => void)[] = [];

  next(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#run());
      this.#waiting.push(resolve);
    });
  }

  #run(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
