import type { GenerationRef, Move, TransferStore } from '../contract.ts';
import type { Keys } from './protocol/keys.ts';
import { refuseStale, type Scripts } from './protocol/scripts.ts';

/** Transfers within one Redis server: one script on both segments. */
export class RedisTransfers implements TransferStore {
  readonly #scripts: Scripts;
  readonly #keys: Keys;

  constructor(scripts: Scripts, keys: Keys) {
    this.#scripts = scripts;
    this.#keys = keys;
  }

  async transfer({ saleId, generation }: GenerationRef, { from, to, units }: Move): Promise<number> {
    const [donor, receiver] = [from, to].map((segment) => this.#keys.segment({ saleId, segment }).segment);
    const moved = await this.#scripts.transfer(donor!, receiver!, generation, units);
    refuseStale(moved, { saleId, generation });
    return moved;
  }

  /** A script is atomic, so no transfer is left unfinished. */
  async finish(): Promise<readonly Move[]> {
    return [];
  }
}
