/**
 * The offers that an operator has handed out while the offers of a sale are stopped. They are used up before they are begun: if the head
 * dies in between, fewer offers are made than were handed out, and never more.
 */
import { type Database, rows } from '../../postgres/database.ts';

export class HandedOut {
  readonly #db: Database;
  readonly #saleId: string;

  constructor(db: Database, saleId: string) {
    this.#db = db;
    this.#saleId = saleId;
  }

  /** @returns false if so many are not left, because an operator or another head has changed their number; then none is used up */
  async useUp(offers: number): Promise<boolean> {
    if (offers === 0) return true;
    const used = await rows(
      this.#db,
      'UPDATE queues SET allowed = allowed - ? WHERE sale_id = ? AND is_stopped AND allowed >= ? RETURNING 1',
      [offers, this.#saleId, offers],
    );
    return used.length > 0;
  }

  /** Of those that were used up, so many were not begun. */
  async giveBack(offers: number): Promise<void> {
    if (offers === 0) return;
    await this.#db.raw('UPDATE queues SET allowed = allowed + ? WHERE sale_id = ? AND is_stopped', [
      offers,
      this.#saleId,
    ]);
  }
}
