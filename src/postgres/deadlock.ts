import { setTimeout as delay } from 'node:timers/promises';
import { sqlState } from './database.ts';

const DEADLOCK = '40P01';
const MAX_ATTEMPTS = 5;
/** Before the first repetition; before each later one as much more. */
const PAUSE_MS = 25;

/**
 * Runs a transaction, and repeats it if Postgres ends it to resolve a deadlock: then it has changed nothing.
 *
 * Transactions that change orders lock the orders' rows before the sale's row, so deadlocks do not happen in ordinary
 * work. Three transactions lock the sale's row first, and then orders whose rows others may have locked: a batch that is
 * applied piece by piece (sync/apply/apply-each.ts), the resume of a sale with a queue, which renews the offers
 * (sales/sale-changes.ts), and an erasure, with orders that came while it locked the others (rebuild/erasures.ts). A repair of offers
 * locks the row of the queue first, and then orders (queue/place-counts.ts).
 *
 * It pauses before a repetition. A row that becomes free goes to whoever comes first, and on a busy machine that may be the repetition
 * instead of the transaction that waits for the row. Then the same two meet again.
 */
export async function despiteDeadlocks<T>(transaction: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction();
    } catch (error) {
      if (sqlState(error) !== DEADLOCK || attempt === MAX_ATTEMPTS) throw error;
      await delay(PAUSE_MS * attempt);
    }
  }
}
