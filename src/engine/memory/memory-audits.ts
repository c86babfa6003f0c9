import type { AuditStore, Holding, SegmentAudit, SegmentRef } from '../contract.ts';
import type { MemoryStock } from './memory-stock.ts';

/** No other program writes to this memory, so every segment is sound. */
export class MemoryAudits implements AuditStore {
  readonly #stock: MemoryStock;

  constructor(stock: MemoryStock) {
    this.#stock = stock;
  }

  async audit(saleId: string, segments: number, generation: number): Promise<readonly SegmentAudit[]> {
    return Array.from({ length: segments }, (_, segment) => {
      const found = this.#stock.segment({ saleId, segment, generation });
      if (!found) return { found: 'nothing' };
      const { state, left, taken, supplied, returned, credited, withdrawn, seq } = found;
      return {
        found: 'sound',
        state,
        left,
        taken,
        supplied,
        returned,
        credited,
        withdrawn,
        seq,
        inTransit: 0,
      };
    });
  }

  async records(ref: SegmentRef): Promise<{ holdings: readonly Holding[]; next: string }> {
    const segment = this.#stock.published(ref);
    return { holdings: [...segment.buyers.keys()].map((id) => segment.holding(id)), next: '' };
  }

  async correct(ref: SegmentRef, field: 'left' | 'supplied', off: number | undefined): Promise<boolean> {
    const segment = this.#stock.published(ref);
    const right = field === 'left' ? segment.supplied - segment.taken : segment.left + segment.taken;
    if (segment.supplied - segment.left - segment.taken !== off || right < 0) return false;
    segment[field] = right;
    return true;
  }

  async remember(ref: SegmentRef, { buyerId, orders }: Holding, returned: number): Promise<boolean> {
    const segment = this.#stock.published(ref);
    if (segment.returned !== returned) return false;
    const held = segment.holding(buyerId).orders;
    const missing = orders.filter(({ orderId }) => !held.some((order) => order.orderId === orderId));
    segment.setHolding({ buyerId, orders: [...held, ...missing] });
    return true;
  }
}
