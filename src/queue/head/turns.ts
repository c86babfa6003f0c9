/**
 * Whose turn has come in a round. A place that was absent then is ended (absentees.ts).
 *
 * With `fit: pass`, a place that wants more units than are free is passed over, and none of them was its to take. Units are used up along
 * the line, so how far the turn has come depends on the quantity. With `wait` such a place stops the line, and with `less` it is offered
 * fewer units: there, the turn comes for every quantity.
 */
import { MAX_PER_BUYER_LIMIT } from '../../engine/limits.ts';

export class Turns {
  /** By quantity. Who wants less comes at least as far. */
  readonly #before = Array<number>(MAX_PER_BUYER_LIMIT + 1).fill(0);

  /** Nobody's turn has come. */
  get isEmpty(): boolean {
    return this.#before.every((before) => before === 0);
  }

  /** The turn of the places before this rank has come, if they want no more than `units`. */
  come(before: number, units = MAX_PER_BUYER_LIMIT): void {
    for (let quantity = Math.min(units, MAX_PER_BUYER_LIMIT); quantity > 0; quantity--) {
      if (this.#before[quantity]! >= before) break;
      this.#before[quantity] = before;
    }
  }

  add(other: Turns): void {
    for (const [quantity, before] of other.#before.entries()) this.come(before, quantity);
  }

  /** The turn of the places before this rank that want so many units has come. */
  before(quantity: number): number {
    return this.#before[quantity] ?? 0;
  }

  /** The most units that a place of this rank may want, if its turn has come; 0: whatever it wants, it has not. */
  mostAt(rank: number): number {
    return Math.max(
      0,
      this.#before.findLastIndex((before) => before > rank),
    );
  }
}
