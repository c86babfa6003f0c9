import type { Author } from '../../engine/sale/author.ts';
import type { BuyerOperations, ErasureReport, ErasureWish } from '../../operations/buyer-operations.ts';
import { BuyerService } from '../../shop/buyer-service.ts';
import { StoreWatch } from '../stores/store-watch.ts';
import type { Stores } from '../stores/stores.ts';
import { BoundedWork } from './bounded-work.ts';

/** BuyerOperations with the bounds of BoundedWork. Each also throws StoresAway and OperationTimedOut. */
class BoundedBuyers implements BuyerOperations {
  readonly #work: BuyerOperations;
  readonly #bounded: BoundedWork;

  constructor(work: BuyerOperations, bounded: BoundedWork) {
    this.#work = work;
    this.#bounded = bounded;
  }

  erase(wish: ErasureWish, author: Author): Promise<ErasureReport> {
    return this.#bounded.run('erase', () => this.#work.erase(wish, author), { changes: true });
  }
}

export function boundedBuyers(stores: Stores): BuyerOperations {
  const { db, backend } = stores;
  const service = new BuyerService({ db, backend, hint: (hint) => backend.takes.hint(hint) });
  return new BoundedBuyers(service, new BoundedWork(new StoreWatch(stores)));
}
