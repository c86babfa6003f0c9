/**
 * How far a process is, in the words of `/readyz`:
 *
 *   starting ──run──> running ──stop──> stopping
 *
 * While it runs, it may still be unable to do its work. Both the ops port and the probe port ask here.
 */
export class Stage {
  #stage: 'starting' | 'running' | 'stopping' = 'starting';
  #whyNot: () => Promise<string | undefined> = async () => undefined;

  get isStopping(): boolean {
    return this.#stage === 'stopping';
  }

  /** @param whyNot why the process can't do its work now; `undefined` if it can. Answers in bounded time */
  run(whyNot: () => Promise<string | undefined>): void {
    this.#stage = 'running';
    this.#whyNot = whyNot;
  }

  stop(): void {
    this.#stage = 'stopping';
  }

  /** Why the process is not ready now; `undefined` if it is. Answers in bounded time. */
  async notReady(): Promise<string | undefined> {
    return this.#stage === 'running' ? this.#whyNot() : this.#stage;
  }
}
