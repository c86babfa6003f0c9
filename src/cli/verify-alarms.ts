import type { VerifyReport } from '../operations/sale-operations.ts';

/** A rebuild that takes longer than this counts as a fault. */
const REBUILD_MAX_S = 120;

/**
 * Decides which reports of `verify --watch` are alarms. The units of a sale can't be counted while it is rebuilt, so its
 * report is not ok; that is an alarm only if it lasts.
 */
export class VerifyAlarms {
  readonly #everyS: number;
  readonly #buildingS = new Map<string, number>();

  /** @param everyS seconds between two reports */
  constructor(everyS: number) {
    this.#everyS = everyS;
  }

  /** Call it once for each report: it counts how long a sale has been rebuilt. @returns whether the report is an alarm */
  judge({ saleId, ok, differences }: VerifyReport): boolean {
    const faults = differences.filter(({ isFault }) => isFault);
    if (ok || faults.some(({ cause }) => cause !== 'rebuild_pending')) {
      this.#buildingS.delete(saleId);
      return !ok;
    }
    const seconds = (this.#buildingS.get(saleId) ?? 0) + this.#everyS;
    this.#buildingS.set(saleId, seconds);
    return seconds > REBUILD_MAX_S;
  }
}
