/** What an operator should know about the queue of a sale that was made or changed. */
import type { QueueOperations } from '../../operations/queue/queue-operations.ts';
import type { SaleStatus } from '../../operations/sale-operations.ts';
import { invokedAs } from '../terminal/invoked-as.ts';

/** @returns of the draw; `undefined` if there is none, or it can't be read. The sale is made or changed all the same */
export async function commitmentOf(
  queues: Pick<QueueOperations, 'showQueue'>,
  { id, queue }: Pick<SaleStatus, 'id' | 'queue'>,
): Promise<string | undefined> {
  if (queue !== 'draw') return undefined;
  return (await queues.showQueue(id).catch(() => undefined))?.draw.commitment;
}

/** The shop is bound by a commitment only if the buyers have seen it before the draw. */
export function drawRemark(sale: Pick<SaleStatus, 'id' | 'queue'>, commitment: string | undefined): string[] {
  if (sale.queue !== 'draw') return [];
  return commitment === undefined
    ? [`The commitment of the draw could not be read. To see it: ${invokedAs()} queue show ${sale.id}`]
    : ['Publish the commitment now, before buyers take places: with it, anybody can check the draw.'];
}

export function fitRemark({ id, queue, fit, perBuyerLimit }: SaleStatus): string[] {
  if (queue === undefined || fit !== 'wait' || perBuyerLimit === 1) return [];
  return [
    'Units may lie free while the next place waits for more of them (--fit wait). With --fit less it is offered those that are free.',
    `To see whether a place waits for more: ${invokedAs()} queue show ${id}`,
  ];
}
