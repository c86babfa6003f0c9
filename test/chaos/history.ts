/** The requests and answers of all customers of a round. */

/** The outcome of one attempt. */
export type Answer =
  | { readonly kind: 'ok'; readonly status: 201 | 202; readonly orderId: string }
  /** This attempt left no order. `final`: repeating it is of no use unless something changes. */
  | { readonly kind: 'refused'; readonly code: string; readonly final: boolean }
  /** The outcome is unknown: the answer `unknown`, no answer, or a broken connection. */
  | { readonly kind: 'unknown' };

export interface Purchase {
  readonly buyerId: string;
  readonly key: string;
  readonly quantity: number;
  /** The customer accepts `202`. */
  readonly hurried: boolean;
  attempts: number;
  /** Attempts whose outcome is unknown. */
  unknowns: number;
  /** The last answer. */
  answer: Answer;
}

/** Whether the customer does not know yet if there is an order. */
export function isOpen({ answer, unknowns }: Purchase): boolean {
  if (answer.kind === 'ok') return false;
  return answer.kind === 'unknown' || (unknowns > 0 && !answer.final);
}

export class History {
  readonly purchases: Purchase[] = [];
  /** The times of all answers `201` and `202`, by `performance.now()`. */
  readonly servedAtMs: number[] = [];
  /** Repetitions of a purchase that were answered with another order than the first time. */
  readonly changed: string[] = [];
  readonly #committedAtMs: number[] = [];
  #units = 0;

  served({ quantity }: Purchase, status: 201 | 202): void {
    const now = performance.now();
    this.servedAtMs.push(now);
    this.#units += quantity;
    if (status === 201) this.#committedAtMs.push(now);
  }

  /** The units of all orders that were answered `201` or `202`, including orders lost since. */
  get units(): number {
    return this.#units;
  }

  /** When the first `201` after the given time came, both by `performance.now()`. */
  firstCommittedMs(afterMs: number): number | undefined {
    return this.#committedAtMs.find((ms) => ms > afterMs);
  }

  get served201(): number {
    return this.#with(201).length;
  }

  get served202(): number {
    return this.#with(202).length;
  }

  /** Purchases whose outcome was unknown at some time. */
  get onceUnknown(): Purchase[] {
    return this.purchases.filter(({ unknowns }) => unknowns > 0);
  }

  get open(): Purchase[] {
    return this.purchases.filter(isOpen);
  }

  /** The longest time in which no customer was served, in milliseconds. */
  get longestWaitMs(): number {
    let longest = 0;
    for (let i = 1; i < this.servedAtMs.length; i++) {
      longest = Math.max(longest, this.servedAtMs[i]! - this.servedAtMs[i - 1]!);
    }
    return longest;
  }

  /** How many purchases ended with each refusal. */
  get refusals(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { answer } of this.purchases) {
      if (answer.kind === 'refused') counts[answer.code] = (counts[answer.code] ?? 0) + 1;
    }
    return counts;
  }

  #with(status: number): Purchase[] {
    return this.purchases.filter(({ answer }) => answer.kind === 'ok' && answer.status === status);
  }
}
