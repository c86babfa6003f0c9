/** Sees one whole request. */
export type Predicate = (request: Buffer) => boolean;

export interface Loss {
  /** Resolves when the requested number were lost. */
  readonly lost: Promise<void>;
  /** How many were lost so far. */
  readonly count: number;
  /** Ends the rule. */
  cancel(): void;
}

/** A number of matching requests to lose. Each is claimed when it is seen, and confirmed when it is really lost. */
export class LossRule implements Loss {
  readonly what: 'reply' | 'request';
  readonly lost: Promise<void>;
  count = 0;
  readonly #predicate: Predicate;
  readonly #times: number;
  #claimed = 0;
  #cancelled = false;
  #resolve: () => void = () => {};

  constructor(what: 'reply' | 'request', predicate: Predicate, times: number) {
    this.what = what;
    this.#predicate = predicate;
    this.#times = times;
    this.lost = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get isOver(): boolean {
    return this.#cancelled || this.count >= this.#times;
  }

  claim(request: Buffer): boolean {
    if (this.#cancelled || this.#claimed >= this.#times || !this.#predicate(request)) return false;
    this.#claimed += 1;
    return true;
  }

  confirm(): void {
    this.count += 1;
    if (this.count >= this.#times) this.#resolve();
  }

  giveBack(): void {
    this.#claimed -= 1;
  }

  cancel(): void {
    this.#cancelled = true;
  }
}
