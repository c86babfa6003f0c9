/** What must be let go of, last in first out, once: each part registers its end as soon as it has begun. */
export class Releasers {
  readonly #stack: (() => unknown)[] = [];
  readonly #onError: (error: unknown) => void;
  #releasing: Promise<void> | undefined;

  /** @param onError told of ends that fail; those after them are run all the same */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  add(release: () => unknown): void {
    this.#stack.push(release);
  }

  release(): Promise<void> {
    this.#releasing ??= this.#run();
    return this.#releasing;
  }

  async #run(): Promise<void> {
    for (let release = this.#stack.pop(); release; release = this.#stack.pop()) {
      try {
        await release();
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}
