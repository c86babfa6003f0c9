import type { Author } from '../../engine/sale/author.ts';
import type { SaleChange } from '../../engine/sale/sale-change.ts';
import type { PageQuery } from '../../operations/checked-input.ts';
import type { Deletion } from '../../operations/delete-operations.ts';
import type { RebalanceOptions, RebalanceReport } from '../../operations/rebalance-operations.ts';
import type { Recovery } from '../../operations/recover-operations.ts';
import type { SalePage, SaleQuery } from '../../operations/sale-list.ts';
import type {
  LedgerPage,
  SaleOperations,
  SaleStatus,
  VerifyOptions,
  VerifyReport,
} from '../../operations/sale-operations.ts';
import type { BoundedWork } from './bounded-work.ts';

/** What is bounded. A change is given the time, by `monotonicMs`, after which it may not take effect. */
export interface SaleWork extends SaleOperations {
  change(saleId: string, change: SaleChange, author: Author, latestMs?: number): Promise<SaleStatus>;
}

/** SaleOperations with the bounds of BoundedWork. Each also throws StoresAway, OperationTimedOut and MetRebuild. */
export class BoundedSales implements SaleOperations {
  readonly #work: SaleWork;
  readonly #bounded: BoundedWork;

  constructor(work: SaleWork, bounded: BoundedWork) {
    this.#work = work;
    this.#bounded = bounded;
  }

  create(input: unknown, actor: string): Promise<SaleStatus> {
    return this.#change('create', () => this.#work.create(input, actor));
  }

  list(query?: SaleQuery): Promise<SalePage> {
    return this.#bounded.run('list', () => this.#work.list(query));
  }

  show(saleId: string): Promise<SaleStatus> {
    return this.#bounded.run('show', () => this.#work.show(saleId));
  }

  change(saleId: string, change: SaleChange, author: Author): Promise<SaleStatus> {
    return this.#change(change.action, (latestMs) => this.#work.change(saleId, change, author, latestMs));
  }

  ledger(saleId: string, query?: PageQuery): Promise<LedgerPage> {
    return this.#bounded.run('ledger', () => this.#work.ledger(saleId, query));
  }

  verify(saleId: string, options: VerifyOptions = {}): Promise<VerifyReport> {
    const { verifyMs } = this.#bounded.bounds;
    const { repair = false } = options;
    const work = () => this.#work.verify(saleId, options);
    return this.#bounded.run('verify', work, { deadlineMs: verifyMs, changes: repair });
  }

  rebalance(saleId: string, options: RebalanceOptions): Promise<RebalanceReport> {
    return this.#bounded.run('rebalance', () => this.#work.rebalance(saleId, options), {
      changes: !options.dryRun,
    });
  }

  recover(saleId: string): Promise<Recovery> {
    return this.#bounded.run('recover', () => this.#work.recover(saleId), { changes: true });
  }

  recovery(saleId: string): Promise<Recovery> {
    return this.#bounded.run('recover', () => this.#work.recovery(saleId));
  }

  delete(saleId: string, orders: number, author: Author): Promise<Deletion> {
    // As much time as for a verify: both go through all orders of the sale.
    const { verifyMs } = this.#bounded.bounds;
    const work = () => this.#work.delete(saleId, orders, author);
    return this.#bounded.run('delete', work, { deadlineMs: verifyMs, changes: true });
  }

  deletion(saleId: string): Promise<Deletion> {
    return this.#bounded.run('deletion', () => this.#work.deletion(saleId));
  }

  #change(name: string, work: (latestMs: number) => Promise<SaleStatus>): Promise<SaleStatus> {
    return this.#bounded.run(name, work, { changes: true });
  }
}
