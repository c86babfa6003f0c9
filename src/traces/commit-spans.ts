/** The spans of sync: for each traced order of a batch, the transaction that committed it, as a part of the order's trace. */
import type { Rejection, TakeOrder } from '../engine/contract.ts';
import { traceOf } from '../engine/sale/order-note.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { Tracer } from './open-telemetry.ts';

const NAME = 'commit';

/** A batch that is in Postgres. */
export interface AppliedBatch {
  readonly slices: readonly { readonly entries: readonly { readonly orders: readonly TakeOrder[] }[] }[];
  /** How many there are. */
  readonly orders: number;
  /** When the transaction began, on the clock of `monotonicMs`. */
  readonly beganMs: number;
  /** The orders that Postgres refused, by id. */
  readonly rejected: ReadonlyMap<string, Rejection>;
}

export function addCommitSpans(tracer: Tracer, { slices, orders, beganMs, rejected }: AppliedBatch): void {
  const toMs = Date.now();
  const fromMs = toMs - (monotonicMs() - beganMs);
  for (const { entries } of slices) {
    for (const order of entries.flatMap((entry) => entry.orders)) {
      const trace = traceOf(order.note);
      const parent = trace && tracer.parse(trace);
      if (!parent) continue;
      const rejection = rejected.get(order.orderId);
      const attributes = {
        'stockade.order': order.orderId,
        'stockade.batch.orders': orders,
        ...(rejection && { 'stockade.rejected': rejection.reason }),
      };
      tracer.add({ name: NAME, fromMs, parent, attributes }, toMs);
    }
  }
}
