import { monotonicMs } from './monotonic.ts';
import { rest } from './rest.ts';

export interface RoundsOptions {
  /** The pause between two rounds, in milliseconds. */
  readonly everyMs: number;
  /** `everyMs` is from the beginning of one round to that of the next. After a round that takes longer, the next begins at once. */
  readonly isSteady?: boolean;
  /** Whether there is a pause before the first round, too. */
  readonly beginsWithPause?: boolean;
  /** One round of work, which ends early if the signal aborts. @returns whether the next one is to follow at once */
  round(signal: AbortSignal): Promise<boolean>;
  failed(error: unknown): void;
}

/** Runs rounds of work one after the other, with a pause between them, until it is stopped. */
export class Rounds {
  readonly #options: RoundsOptions;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#keepRunning();
  }

  /** Ends the round under way early, and resolves when it has ended. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #keepRunning(): Promise<void> {
    const { everyMs, isSteady = false, beginsWithPause = false } = this.#options;
    const { signal } = this.#end;
    if (beginsWithPause) await rest(everyMs, signal);
    while (!signal.aborted) {
      const began = monotonicMs();
      const isMore = await this.#options.round(signal).catch((error) => {
        this.#options.failed(error);
        return false;
      });
      const pauseMs = isSteady ? everyMs - (monotonicMs() - began) : everyMs;
      await rest(isMore ? 0 : pauseMs, signal);
    }
  }
}
