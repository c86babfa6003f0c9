/**
 * What operators do with the offers of a queue: stop them, let them go on, set their pace, hand some out while they are stopped. Each
 * change is one transaction. The head reads the change at the beginning of its next round (queue/head/head.ts). So the backend has
 * nothing to apply, and the row in the ledger is closed at once.
 */
import type { SaleState } from '../../engine/contract.ts';
import type { Author } from '../../engine/sale/author.ts';
import { type QueueChange, WrongQueueState } from '../../operations/queue/queue-operations.ts';
import { WrongState } from '../../operations/sale-operations.ts';
import { transactionInTime } from '../../postgres/changes/transaction-in-time.ts';
import { type Database, rows } from '../../postgres/database.ts';
import { closeMovement, writeMovement } from '../../sales/ledger.ts';
import { lockSale } from '../../sales/sale-changes.ts';

interface Control {
  readonly isStopped: boolean;
  readonly perMinute: number | null;
  readonly allowed: number;
}

/**
 * @param latestMs as for `transactionInTime`
 * @throws UnknownSale, SaleArchived, WrongState if the sale is closed, WrongQueueState; as `transactionInTime`
 */
export async function controlOffers(
  db: Database,
  saleId: string,
  change: QueueChange,
  author: Author,
  latestMs?: number,
): Promise<void> {
  await transactionInTime(db, latestMs, async (trx) => {
    const { sale, state, generation } = await lockSale(trx, saleId);
    if (state === 'closed') throw new WrongState(saleId, state, 'changed');
    if (!sale.queue) throw noQueue(saleId, state);
    const [row] = await rows<{ is_stopped: boolean; per_minute: number | null; allowed: string }>(
      trx,
      'SELECT is_stopped, per_minute, allowed::text FROM queues WHERE sale_id = ? FOR UPDATE',
      [saleId],
    );
    const before = {
      isStopped: row!.is_stopped,
      perMinute: row!.per_minute,
      allowed: Number(row!.allowed),
    };
    const after = changed(saleId, before, change);
    await forgetBegun(trx, saleId, ruleOf(before) !== ruleOf(after), change);
    const [from, to] = [noted(before), noted(after)];
    const names = (Object.keys(to) as (keyof typeof to)[]).filter((name) => from[name] !== to[name]);
    if (names.length === 0) return;
    await trx.raw(
      `UPDATE queues SET is_stopped = ?, per_minute = ?, allowed = ?,
         pace_left = CASE WHEN ? THEN 0 ELSE pace_left END, paced_at = CASE WHEN ? THEN clock_timestamp() ELSE paced_at END
       WHERE sale_id = ?`,
      [
        ...[after.isStopped, after.perMinute, after.allowed],
        ...[change.action === 'pace', change.action === 'pace', saleId],
      ],
    );
    const only = (values: typeof to) => Object.fromEntries(names.map((name) => [name, values[name]]));
    const detail = { from: only(from), to: only(to) };
    const id = await writeMovement(trx, { saleId, action: 'queue', generation, detail }, author);
    await closeMovement(trx, id);
  });
}

const ruleOf = ({ isStopped, perMinute }: Control) =>
  isStopped ? 'handed out' : perMinute === null ? 'all' : 'paced';

/** Of offers that are begun (queue/head/begun-offers.ts). The row of the queue is locked, so no head begins or settles any meanwhile. */
async function forgetBegun(
  trx: Database,
  saleId: string,
  isOtherRule: boolean,
  { action }: QueueChange,
): Promise<void> {
  if (isOtherRule)
    await trx.raw('UPDATE begun_offers SET counts = false, may_return = false WHERE sale_id = ?', [saleId]);
  else if (action !== 'pace')
    await trx.raw('UPDATE begun_offers SET may_return = false WHERE sale_id = ?', [saleId]);
}

/** @param isArchived such a sale is closed. Neither can get a queue any more */
export function noQueue(saleId: string, state: SaleState, isArchived = false): WrongQueueState {
  const advice =
    state === 'closed'
      ? `, and can get none: it is ${isArchived ? 'archived' : state}`
      : `: turn it on with \`stockade sale queue ${saleId} --queue fifo\``;
  return new WrongQueueState(`sale ${saleId} has no queue${advice}`);
}

function changed(saleId: string, before: Control, change: QueueChange): Control {
  switch (change.action) {
    case 'pause':
      return { ...before, isStopped: true, allowed: 0 };
    case 'resume':
      return { ...before, isStopped: false, allowed: 0 };
    case 'pace':
      return { ...before, perMinute: change.perMinute };
    case 'hand-out':
      if (!before.isStopped)
        throw new WrongQueueState(
          `the offers of sale ${saleId} are not stopped, so none can be handed out: stop them with \`stockade queue pause ${saleId}\``,
        );
      return { ...before, allowed: change.offers };
  }
}

/** As the ledger has it. */
function noted({ isStopped, perMinute, allowed }: Control) {
  return { offers: isStopped ? 'stopped' : 'going on', perMinute, allowed };
}
