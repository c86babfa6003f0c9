/**
 * Resumes all callers together in the next turn of the event loop. The commands that they then send (the takes of all
 * lanes) leave in one write. With a callback for each caller, each command would cost a write and so a system call.
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
