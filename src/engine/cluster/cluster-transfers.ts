/**
 * Transfers between segments of which each may lie on a server of its own: no script sees both.
 *
 *   debit the donor, and write down there whom the units are for
 *     -> credit the receiver, once per record -> raise the sale's epoch -> remove the record
 *
 * | it dies after | what is left | who mends it |
 * |---|---|---|
 * | the debit | units in the record, in no segment | whoever finds the record: the next transfer out of this donor, a refill, sync's rebalancer |
 * | the credit | the record, of units that have arrived | the same: the credit is known by its number and not made again |
 * | the epoch | the same | the same; an epoch too many costs a question |
 *
 * The epoch rises between credit and removal for the sake of who looks for the last unit (cluster-sight.ts): he sees a
 * unit in its donor, in the record, in its receiver, or an epoch that has changed meanwhile. Nobody needs to be told of
 * that epoch: a sale with units on their way is on nobody's board.
 */
import type { GenerationRef, Move, TransferStore } from '../contract.ts';
import { NotExecuted, StaleGeneration } from '../errors.ts';
import type { Keys } from '../redis/keys.ts';
import { STALE } from '../redis/scripts.ts';
import type { ClusterSight } from './cluster-sight.ts';
import type { OpenTransfer, TransferScripts } from './transfer-scripts.ts';

/** Other transfers out of the same donor that are finished before one's own, at most. */
const MAX_OTHERS = 16;

export class ClusterTransfers implements TransferStore {
  readonly #scripts: TransferScripts;
  readonly #sight: ClusterSight;
  readonly #keys: Keys;

  constructor(scripts: TransferScripts, sight: ClusterSight, keys: Keys) {
    this.#scripts = scripts;
    this.#sight = sight;
    this.#keys = keys;
  }

  async transfer(sale: GenerationRef, { from, to, units }: Move): Promise<number> {
    // Units for a segment that is not there would lie in the record until the sale is built anew.
    const [receiver] = await this.#sight.of(sale, [to]);
    if (!receiver) throw new NotExecuted(`nothing was moved: the server of segment ${to} does not answer`);
    for (let others = 0; others <= MAX_OTHERS; others++) {
      const debit = await this.#scripts.debit(this.#segment(sale, from), sale.generation, to, units);
      if (debit.kind === STALE) throw new StaleGeneration(sale.saleId, sale.generation);
      if (debit.kind === 'empty') return 0;
      await this.complete(sale, from, debit.transfer);
      // It may have been begun before: by this call, whose reply was lost, or by another. It serves as well.
      if (debit.transfer.receiver === to) return debit.transfer.units;
    }
    return 0;
  }

  async finish(sale: GenerationRef, segments: number): Promise<readonly Move[]> {
    const sights = await this.#sight.all(sale, segments);
    const moves: Move[] = [];
    for (const [from, sight] of sights.entries()) {
      if (!sight?.out) continue;
      await this.complete(sale, from, sight.out);
      moves.push({ from, to: sight.out.receiver, units: sight.out.units });
    }
    return moves;
  }

  /** All that follows the debit. Everybody may do it, also at the same time. @throws StaleGeneration */
  async complete(sale: GenerationRef, donor: number, transfer: OpenTransfer): Promise<void> {
    const { generation, saleId } = sale;
    const receiver = this.#segment(sale, transfer.receiver);
    const isThere = await this.#scripts.credit(receiver, generation, donor, transfer);
    if (!isThere) throw new StaleGeneration(saleId, generation);
    await this.#scripts.raiseEpoch(this.#keys.sale(saleId));
    await this.#scripts.settle(this.#segment(sale, donor), generation, transfer);
  }

  #segment({ saleId }: GenerationRef, segment: number): string {
    return this.#keys.segment({ saleId, segment }).segment;
  }
}
