/** Turns a sale's queue on or off, and changes its settings: the Postgres part, within the transaction of the change. */
import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import { InvalidInput } from '../engine/errors.ts';
import {
  changedQueue,
  QUEUE_DEFAULTS,
  type QueueJson,
  queueToJson,
  settingsWithoutQueue,
} from '../engine/sale/queue-json.ts';
import { WrongState } from '../operations/sale-operations.ts';
import { rows } from '../postgres/database.ts';
import { refuseBesideOlderNodes } from '../postgres/older-nodes.ts';
import { newSaltKey } from '../queue/draw/entry-digest.ts';
import { newSeed } from '../queue/draw/seed.ts';
import type { NewMovement } from './ledger.ts';
import type { SaleRow } from './sale-rows.ts';

/** For `refuseBesideOlderNodes`. */
export const SELL_PAST_QUEUES = 'sell past the queue';

/** @returns what the ledger notes; `undefined` if nothing has changed. @throws InvalidInput, WrongState */
export async function changeQueue(
  trx: Knex.Transaction,
  { sale, state }: SaleRow,
  change: QueueJson,
): Promise<Pick<NewMovement, 'action' | 'detail'> | undefined> {
  if (state === 'closed') throw new WrongState(sale.id, state, 'changed');
  const after = changedQueue(sale.queue, change);
  refuse(
    settingsWithoutQueue(change, after).map((field) => ({
      field,
      problem: 'means nothing, because the sale has no queue: turn it on with `queue`',
    })),
  );
  if (isDeepStrictEqual(after, sale.queue)) return undefined;
  await trx.raw(
    'INSERT INTO queues (sale_id, seed, salt_key) VALUES (?, ?, ?) ON CONFLICT (sale_id) DO NOTHING',
    [sale.id, Buffer.from(newSeed()), Buffer.from(newSaltKey())],
  );
  if (after && after.order !== sale.queue?.order) await refuseLateDraw(trx, sale.id, after.order);
  if (!sale.queue) await refuseBesideOlderNodes(trx, SELL_PAST_QUEUES);
  const { offerSeconds, presenceSeconds, maxWaiting, fit } = after ?? QUEUE_DEFAULTS;
  await trx.raw(
    `UPDATE sales SET queue = ?, offer_seconds = ?, presence_seconds = ?, max_waiting = ?, fit = ?, had_queue = true
     WHERE id = ?`,
    [after?.order ?? 'off', offerSeconds, presenceSeconds, maxWaiting, fit, sale.id],
  );
  // What is stored of presence is about periods of another length, or nobody was heard of while there was no queue. Until new marks
  // come, everybody counts as present.
  if (after?.presenceSeconds !== sale.queue?.presenceSeconds)
    await trx.raw('DELETE FROM queue_presence WHERE sale_id = ?', [sale.id]);
  const noted = (queue: typeof after) => ({ queue: 'off', ...queueToJson(queue) });
  return { action: 'queue', detail: { from: noted(sale.queue), to: noted(after) } };
}

/**
 * Refuses `draw` after the window has opened or offers were made, and `fifo` after the draw: buyers were told their order, and must be
 * served in it.
 */
async function refuseLateDraw(trx: Knex, saleId: string, order: string): Promise<void> {
  const [row] = await rows<{ has_begun: boolean; has_offered: boolean; has_drawn: boolean }>(
    trx,
    `SELECT s.starts_at <= now() AS has_begun, q.offers_made > 0 AS has_offered, q.drawn_at IS NOT NULL AS has_drawn
     FROM sales s JOIN queues q ON q.sale_id = s.id WHERE s.id = ?`,
    [saleId],
  );
  if (row!.has_drawn && order === 'fifo')
    refuse([{ field: 'queue', problem: 'can’t be fifo any more: the order of the places was drawn' }]);
  if (row!.has_drawn || order !== 'draw') return;
  if (row!.has_begun)
    refuse([{ field: 'queue', problem: `${NO_DRAW} the draw is when the window opens, and it is open` }]);
  // The window was moved to a later time. A draw would give ranks among those who wait to buyers who had offers already.
  if (row!.has_offered) refuse([{ field: 'queue', problem: `${NO_DRAW} offers were made in another order` }]);
}

const NO_DRAW = 'can’t be draw any more:';

function refuse(faults: readonly { field: string; problem: string }[]): void {
  if (faults.length > 0) throw new InvalidInput('the change is not valid', faults);
}
