import type { VerifyReport } from '../operations/sale-operations.ts';

/** A rebuild that takes longer than this, from look to look, is no longer work under way. */
const REBUILD_MAX_S = 120;

/** Which of the reports that come one after the other are alarms. A sale that is being rebuilt can't be counted: that is one only if it lasts. */
export class VerifyAlarms {
  readonly #everyS: number;
  readonly #buildingS = new Map<string, number>();

  /** @param everyS seconds from look to look */
  constructor(everyS: number) {
    this.#everyS = everyS;
  }

  isAlarm({ saleId, ok, differences }: VerifyReport): boolean {
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
