/**
 * The rules by which a node lets purchases in before it asks Redis: the sale's window, and whether it asks for purchase tokens.
 * Every node keeps them in its memory, and hears of a change a moment late. So each take names the rules by which its orders
 * were let in, and a segment serves none that were let in by others: the answer to a change means that no node sells by the
 * old rules any more.
 *
 *   changed in Postgres ──segments──> their rules are new ──record──> nodes learn them ──> the change is answered
 *
 *   let in by its node's rules ──take──> served
 *                               └──the segment has others──> waits for the record ──> let in anew, or refused
 *
 * | the change dies | a reader sees | who mends it |
 * |---|---|---|
 * | behind Postgres | the old rules, everywhere; the change was not answered | sync's sweep follows it (changes/movements.ts) |
 * | between segments (a cluster) | purchases of some segments wait, the others sell by the old rules | the same |
 * | behind the segments, before the record | all purchases wait, until their deadline | the same |
 * | behind the record, before the message | a node that has not heard meets other rules in a segment, and reads the record | itself |
 *
 * Segments and record may also come to differ behind an answered change: one server of a cluster goes back, or a rebuild that
 * publishes writes an older record over a newer one and dies. Sync's sweep compares the rules of both with those of Postgres,
 * as it does the state, and sets them again.
 *
 * Rules are compared as text, and not counted: to write the same ones twice, or to go back to earlier ones, needs no order.
 * A version that does not know them writes records without them; then none are named, and none compared, until the
 * sweep has set them.
 *
 * A change that lets more in is not as strict: a node that has not heard refuses by the old rules, without asking Redis, until
 * its next look (at most BOARD_REPAIR_MS).
 */
import type { Sale } from '../contract.ts';

/** Named by takes that were let in by none: they are not compared. */
export const NO_RULES = '';

export function rulesOf({
  startsAt,
  endsAt,
  requireToken,
}: Pick<Sale, 'startsAt' | 'endsAt' | 'requireToken'>): string {
  return `${startsAt}:${endsAt ?? ''}:${requireToken ? 'token' : ''}`;
}
