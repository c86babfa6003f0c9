/**
 * Transfers between segments that may lie on different servers: no script sees both.
 *
 *   debit the donor, and record there which segment gets the units
 *     -> credit the receiver, once per record -> raise the sale's epoch -> remove the record
 *
 * | the process dies after | what remains | how it is resolved |
 * |---|---|---|
 * | the debit | units in the record, in no segment | the next process that finds the record finishes the transfer: the next transfer out of this donor, a refill, or sync's rebalancer |
 * | the credit | the record, of units that have arrived | the same: the credit is known by its number and not repeated |
 * | the epoch | the same | the same; one epoch too many costs one query |
 *
 * The epoch rises between credit and removal for readers that look for the last unit (cluster-sight.ts): they see the
 * unit in its donor, in the record or in its receiver, or they see that the epoch has changed. No node needs to be
 * notified of that epoch: while units are in transit, no board shows the sale as sold out.
 */
import type { GenerationRef, Move, TransferStore } from '../contract.ts';
import { NotExecuted, StaleGeneration } from '../errors.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import { STALE } from '../redis/protocol/scripts.ts';
import { type ClusterSight, isStuck } from './cluster-sight.ts';
import type { OpenTransfer, TransferScripts } from './transfer-scripts.ts';

/** How many open transfers of the same donor one call finishes before its own, at most. */
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
    // Units for a missing segment would stay in the record until the next rebuild.
    const [receiver] = await this.#sight.of(sale, [to]);
    if (!receiver) throw new NotExecuted(`nothing was moved: the server of segment ${to} does not answer`);
    for (let others = 0; others <= MAX_OTHERS; others++) {
      const debit = await this.#scripts.debit(this.#segment(sale, from), sale.generation, to, units);
      if (debit.kind === STALE) throw new StaleGeneration(sale.saleId, sale.generation);
      if (debit.kind === 'empty') return 0;
      await this.complete(sale, from, debit.transfer);
      // An earlier transfer to the same receiver, perhaps this one after a lost reply, serves as well.
      if (debit.transfer.receiver === to) return debit.transfer.units;
    }
    return 0;
  }

  async finish(sale: GenerationRef, segments: number): Promise<readonly Move[]> {
    const sights = await this.#sight.all(sale, segments);
    const moves: Move[] = [];
    for (const [from, sight] of sights.entries()) {
      if (!sight?.out || isStuck(sight, sights)) continue;
      await this.complete(sale, from, sight.out);
      moves.push({ from, to: sight.out.receiver, units: sight.out.units });
    }
    return moves;
  }

  /** The steps after the debit. Several processes may run them, even at the same time. @throws StaleGeneration */
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
