/** One unit that comes back, and the offer that it becomes. */
import { setTimeout as delay } from 'node:timers/promises';
import { rows } from '../../src/postgres/database.ts';
import { BenchFailure } from '../support/failure.ts';
import { Askers } from './crowd/askers.ts';
import type { Stage } from './stage.ts';

const POLL_MS = 2;
const LIMIT_MS = 600_000;

/** The buyer leaves, and gives its offer back. */
export async function giveBack(
  { node }: Pick<Stage, 'node'>,
  saleId: string,
  buyerId: string,
): Promise<void> {
  const askers = await Askers.open(node.publicUrl, 1);
  const { code, body } = await askers.ask({ method: 'DELETE', path: `/v1/sales/${saleId}/place`, buyerId });
  askers.close();
  if (code !== '200') throw new BenchFailure(`${buyerId} could not leave: ${code} ${body}`);
}

/** Resolves when the place has an offer. @returns the milliseconds from the last return before it, by Postgres' clock */
export async function offeredTo({ db }: Pick<Stage, 'db'>, saleId: string, number: number): Promise<number> {
  const deadline = Date.now() + LIMIT_MS;
  while (Date.now() < deadline) {
    const [found] = await rows<{ ms: number | null }>(
      db,
      `SELECT extract(epoch FROM o.committed_at - (SELECT max(e.cancelled_at) FROM orders e
         WHERE e.sale_id = o.sale_id AND e.cancelled_at < o.committed_at))::float8 * 1000 AS ms
       FROM places p JOIN orders o ON o.order_id = p.order_id
       WHERE p.sale_id = ? AND p.number = ? AND p.state = 'offered'`,
      [saleId, number],
    );
    if (found) return found.ms ?? 0;
    await delay(POLL_MS);
  }
  throw new BenchFailure(`place ${number} of sale ${saleId} had no offer within ${LIMIT_MS} ms`);
}
