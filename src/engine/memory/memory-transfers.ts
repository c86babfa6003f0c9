import type { GenerationRef, Move, TransferStore } from '../contract.ts';
import type { MemoryStock } from './memory-stock.ts';

/** Transfers in memory are atomic, so none is left unfinished. */
export class MemoryTransfers implements TransferStore {
  readonly #stock: MemoryStock;

  constructor(stock: MemoryStock) {
    this.#stock = stock;
  }

  async transfer(sale: GenerationRef, { from, to, units }: Move): Promise<number> {
    const donor = this.#stock.published({ ...sale, segment: from });
    const receiver = this.#stock.published({ ...sale, segment: to });
    const moved = Math.min(units, donor.left);
    donor.supply(-moved);
    receiver.supply(moved);
    return moved;
  }

  async finish(): Promise<readonly Move[]> {
    return [];
  }
}
