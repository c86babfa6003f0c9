/** What the customers of a round have asked and been told. */

/** How one attempt ended. */
export type Answer =
  | { readonly kind: 'ok'; readonly status: 201 | 202; readonly orderId: string }
  /** This attempt left no order. `final`: asking again is of no use while nothing changes. */
  | { readonly kind: 'refused'; readonly code: string; readonly final: boolean }
  /** Nobody knows: `unknown`, no answer, a broken connection. */
  | { readonly kind: 'unknown' };

export interface Purchase {
  readonly buyerId: string;
  readonly key: string;
  readonly quantity: number;
  /** The customer is content with `202`. */
  readonly hurried: boolean;
  attempts: number;
  /** Attempts whose end nobody knows. */
  unknowns: number;
  /** The last that was told. */
  answer: Answer;
}

/** Whether the customer still does not know if there is an order. */
export function isOpen({ answer, unknowns }: Purchase): boolean {
  if (answer.kind === 'ok') return false;
  return answer.kind === 'unknown' || (unknowns > 0 && !answer.final);
}

export class History {
  readonly purchases: Purchase[] = [];
  /** When a `201` or `202` came, by `performance.now()`. */
  readonly servedAtMs: number[] = [];
  /** Repetitions of a purchase with an order that were told of another order. */
  readonly changed: string[] = [];
  readonly #committedAtMs: number[] = [];
  #units = 0;

  served({ quantity }: Purchase, status: 201 | 202): void {
    const now = performance.now();
    this.servedAtMs.push(now);
    this.#units += quantity;
    if (status === 201) this.#committedAtMs.push(now);
  }

  /** Units that were promised, of orders that were lost since too. */
  get units(): number {
    return this.#units;
  }

  /** When the first `201` after this moment came, both by `performance.now()`. */
  firstCommittedMs(afterMs: number): number | undefined {
    return this.#committedAtMs.find((ms) => ms > afterMs);
  }

  get served201(): number {
    return this.#with(201).length;
  }

  get served202(): number {
    return this.#with(202).length;
  }

  /** Purchases of which the customer has not known for a while whether there was an order. */
  get onceUnknown(): Purchase[] {
    return this.purchases.filter(({ unknowns }) => unknowns > 0);
  }

  get open(): Purchase[] {
    return this.purchases.filter(isOpen);
  }

  /** The longest time in which nobody was served, in milliseconds. */
  get longestWaitMs(): number {
    let longest = 0;
    for (let i = 1; i < this.servedAtMs.length; i++) {
      longest = Math.max(longest, this.servedAtMs[i]! - this.servedAtMs[i - 1]!);
    }
    return longest;
  }

  /** How often each refusal was the last word. */
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
