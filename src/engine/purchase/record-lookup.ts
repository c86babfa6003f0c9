import type { HeldOrder, SaleStore, SegmentRef } from '../contract.ts';

/** The content of a buyer's record. */
export interface BuyersRecord {
  /** The segment's cursor: orders whose log entry is at or below it are in Postgres. */
  readonly committed: number;
  readonly orders: readonly HeldOrder[];
}

interface Question {
  readonly buyerId: string;
  resolve(answer: BuyersRecord): void;
  reject(error: unknown): void;
}

interface Open {
  readonly ref: SegmentRef;
  readonly questions: Question[];
}

/** How many buyers one call asks for, at most. */
const MAX_BUYERS_PER_RECALL = 256;

/** Reads buyers' records. All reads of a segment in one turn of the event loop share one call. */
export class RecordLookup {
  readonly #sales: SaleStore;
  readonly #open = new Map<string, Open>();

  constructor(sales: SaleStore) {
    this.#sales = sales;
  }

  /** @throws StaleGeneration, or the backend's error */
  ask(ref: SegmentRef, buyerId: string): Promise<BuyersRecord> {
    return new Promise((resolve, reject) => {
      const name = `${ref.saleId}:${ref.segment}:${ref.generation}`;
      const open = this.#open.get(name) ?? this.#begin(name, ref);
      open.questions.push({ buyerId, resolve, reject });
      if (open.questions.length === MAX_BUYERS_PER_RECALL) this.#send(name, open);
    });
  }

  #begin(name: string, ref: SegmentRef): Open {
    const open: Open = { ref, questions: [] };
    this.#open.set(name, open);
    setImmediate(() => this.#send(name, open));
    return open;
  }

  async #send(name: string, { ref, questions }: Open): Promise<void> {
    if (this.#open.get(name)?.questions === questions) this.#open.delete(name);
    const asked = questions.splice(0);
    if (asked.length === 0) return;
    try {
      const buyerIds = asked.map((question) => question.buyerId);
      const { committed, holdings } = await this.#sales.recall(ref, buyerIds);
      asked.forEach((question, i) => {
        question.resolve({ committed, orders: holdings[i]!.orders });
      });
    } catch (error) {
      for (const question of asked) question.reject(error);
    }
  }
}
