import { sqlState } from './database.ts';

const DEADLOCK = '40P01';
const MAX_ATTEMPTS = 5;

/**
 * A transaction that Postgres may choose as the victim of a deadlock: then nothing of it was done, the others go on, and it
 * is made once more.
 *
 * Who changes orders locks their rows before the sale's, so that there are none in ordinary work. But what is gone through
 * piece by piece (apply/apply-each.ts) holds the sale's row when it inserts the next orders, which others may be changing.
 */
export async function despiteDeadlocks<T>(transaction: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction();
    } catch (error) {
      if (sqlState(error) !== DEADLOCK || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
