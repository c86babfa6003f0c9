/**
 * The rules by which a node admits purchases before it asks Redis: the sale's window, whether purchases need a
 * purchase token, the limit per buyer, and whether only the head of a queue may buy. Every node keeps them in memory,
 * and learns of a change a moment late. So each take names the rules by which its orders were admitted, and a segment
 * refuses orders that were admitted by other rules. When a change is answered, no node sells by the old rules any more.
 *
 *   changed in Postgres ──segments──> their rules are new ──record──> nodes learn them ──> the change is answered
 *
 *   admitted by its node's rules ──take──> served
 *                               └──the segment has others──> waits for the record ──> admitted anew, or refused
 *
 * | the process that makes the change dies | a reader sees | how it is resolved |
 * |---|---|---|
 * | after Postgres | the old rules, everywhere; the change was not answered | sync's reconciler applies it (sales/movements.ts) |
 * | between segments (a cluster) | purchases of some segments wait, the others sell by the old rules | the same |
 * | after the segments, before the record | all purchases wait, until their deadline | the same |
 * | after the record, before the message | a node that was not notified meets other rules in a segment | it reads the record |
 *
 * Segments and record may also come to differ after an answered change: one server of a cluster loses writes, or a
 * rebuild writes an older record over a newer one and dies. Sync's reconciler compares the rules of both with those
 * in Postgres, as it does the state, and sets them again.
 *
 * The limit is also a field of each segment, which the takes apply to the buyers' records. One script writes it together
 * with the rules, so a segment with the rules of Postgres has the limit of Postgres.
 *
 * Rules are compared as text and not by a counter. So it does not matter whether the same rules are written twice, or
 * earlier ones again. A version that does not know rules writes records without them. Then takes name none and segments compare
 * none, until the reconciler has set them.
 *
 * A change that admits more purchases, such as a higher limit, is not as strict: a node that was not notified refuses
 * by the old rules, without asking Redis, until its next poll (at most BOARD_REPAIR_MS).
 */
import type { Sale } from '../contract.ts';

/** Takes name these if their orders were admitted without rules: nothing is compared. */
export const NO_RULES = '';

export function rulesOf({
  startsAt,
  endsAt,
  requireToken,
  perBuyerLimit,
  queue,
}: Pick<Sale, 'startsAt' | 'endsAt' | 'requireToken' | 'perBuyerLimit'> & {
  readonly queue?: unknown;
}): string {
  const rules = `${startsAt}:${endsAt ?? ''}:${requireToken ? 'token' : ''}:${perBuyerLimit}`;
  return queue ? `${rules}:queue` : rules;
}
