/** How fast each sale sells, from pictures in turn. The units are those of the whole shop, so the rates are too. */
import type { ConsolePicture } from '../../operations/console/console-operations.ts';
import { soldUnitsOf } from '../../operations/sale-list.ts';

/** A rate is that of this time, or a bit more. */
const WINDOW_MS = 5_000;
/** Over less time a rate says nothing. */
const MIN_MS = 500;
/** After such a pause the units say nothing about now: the node was away. */
const PAUSE_MS = 10_000;

interface Seen {
  readonly sold: number;
  readonly atMs: number;
}

export class SoldRates {
  #seen = new Map<string, Seen[]>();

  /** @returns units a second by the sale's id; sales of which it can't be told yet are missing */
  add({ at, list }: Pick<ConsolePicture, 'at' | 'list'>): ReadonlyMap<string, number> {
    const rates = new Map<string, number>();
    if (list?.value === undefined) return rates;
    const atMs = Date.parse(at) - (list.ageMs ?? 0);
    const seen = new Map<string, Seen[]>();
    for (const sale of list.value.sales) {
      const sold = soldUnitsOf(sale);
      if (sold === undefined) continue;
      const before = this.#seen.get(sale.id) ?? [];
      const isNow = before.length > 0 && atMs - before.at(-1)!.atMs < PAUSE_MS;
      const all = [...(isNow ? before : []), { sold, atMs }];
      while (all.length > 2 && atMs - all[1]!.atMs >= WINDOW_MS) all.shift();
      seen.set(sale.id, all);
      const [first, last] = [all[0]!, all.at(-1)!];
      if (last.atMs - first.atMs < MIN_MS) continue;
      rates.set(sale.id, Math.max(0, ((last.sold - first.sold) * 1_000) / (last.atMs - first.atMs)));
    }
    this.#seen = seen;
    return rates;
  }
}
