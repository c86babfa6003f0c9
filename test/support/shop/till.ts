import type { Board } from '../../../src/engine/board/board.ts';
import type { Outcome, Purchase, SaleVersion } from '../../../src/engine/contract.ts';
import type { Engine } from '../../../src/engine/purchase/engine.ts';
import type { SaleDirectory } from '../../../src/node/sale-directory.ts';
import type { Buy } from '../../../src/orders/late-payment.ts';

interface TillParts {
  readonly board: Board;
  readonly directory: SaleDirectory;
  readonly faults: readonly unknown[];
}

/** Where buyers buy: an engine with its directory and its board. It sells like one worker of a node. */
export class Till {
  readonly engine: Engine;
  /** The faults that the engine has reported. */
  readonly faults: readonly unknown[];
  readonly #board: Board;
  readonly #directory: SaleDirectory;
  #closed: Promise<void> | undefined;

  constructor(engine: Engine, { board, directory, faults }: TillParts) {
    this.engine = engine;
    this.faults = faults;
    this.#board = board;
    this.#directory = directory;
  }

  /** Whether the node knows the sale's newest version, if it knows the sale at all. */
  hasLearned(saleId: string, { epoch, generation, state }: SaleVersion): boolean {
    const view = this.#directory.views.get(saleId);
    if (!view) return true;
    const { record, slot } = view;
    return record.generation === generation && record.state === state && this.#board.epoch(slot) === epoch;
  }

  /** Resolves when no purchase waits any more. */
  close(): Promise<void> {
    this.#closed ??= this.#directory.stop().then(() => this.engine.close());
    return this.#closed;
  }

  buy(saleId: string, buyerId: string, more: Partial<Purchase> = {}): Promise<Outcome> {
    return this.engine.purchase({ saleId, buyerId, quantity: 1, key: '', awaitCommit: true, ...more });
  }

  /** Buys as late payments do. */
  get take(): Buy {
    return (purchase) => this.engine.purchase(purchase);
  }

  buyAll(saleId: string, buyerIds: readonly string[], more: Partial<Purchase> = {}): Promise<Outcome[]> {
    return Promise.all(buyerIds.map((buyerId) => this.buy(saleId, buyerId, more)));
  }
}
