import type { Author } from '../../engine/sale/author.ts';
import type { BuyerOperations, ErasureReport, ErasureWish } from '../../operations/buyer-operations.ts';
import type { BoundedWork } from './bounded-work.ts';

/** BuyerOperations with the bounds of BoundedWork. Each also throws StoresAway and OperationTimedOut. */
export class BoundedBuyers implements BuyerOperations {
  readonly #work: BuyerOperations;
  readonly #bounded: BoundedWork;

  constructor(work: BuyerOperations, bounded: BoundedWork) {
    this.#work = work;
    this.#bounded = bounded;
  }

  erase(wish: ErasureWish, author: Author): Promise<ErasureReport> {
    return this.#bounded.run('erase', () => this.#work.erase(wish, author), { changes: !wish.dryRun });
  }
}
