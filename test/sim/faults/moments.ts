/** Moments at which a fault does the most harm. The simulation waits for them; by chance a fault would rarely meet one. */
import { readBooks, type SaleBooks, type Truth } from '../audit/books.ts';
import type { QueueTruth } from '../audit/queue-watch.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import { time, WORLD } from '../machines/virtual-time.ts';
import type { World } from '../machines/world.ts';

const LOOK_EVERY_MS = 0.5;
const MAX_LOOKS = 6_000;

const unitsLeft = ({ segments }: SaleBooks) =>
  segments.reduce((sum, segment) => sum + (segment ? segment.left + segment.inTransit : 0), 0);

const MOMENTS = {
  soldOut: (_: Truth, books: SaleBooks) => unitsLeft(books) === 0,
  forSale: (_: Truth, books: SaleBooks) => unitsLeft(books) > 0,
  /** Units have left one segment and have not arrived at another. */
  transfer: (_: Truth, { segments }: SaleBooks) => segments.some((segment) => (segment?.inTransit ?? 0) > 0),
  /** Units have arrived at another segment, and the transfer is still open. */
  unsettled: (_: Truth, { segments }: SaleBooks) =>
    segments.some((segment) => segment?.isTransferOpen && segment.inTransit === 0),
  /** A log holds orders that are not in Postgres. */
  backlog: ({ cursors }: Truth, { segments }: SaleBooks) =>
    segments.some((segment, i) => segment && segment.taken > (cursors[i]?.units ?? 0)),
  /** Redis has closed the sale, and a log holds orders that are not in Postgres. */
  closedWithBacklog: (truth: Truth, books: SaleBooks): boolean =>
    books.state === 'closed' && MOMENTS.backlog(truth, books),
  /** The entries of a draw are fixed, and it was not made. */
  drawing: (_: Truth, __: SaleBooks, queue?: QueueTruth) =>
    queue?.entries != null && queue.entriesHash === null,
};

export type Moment = keyof typeof MOMENTS;

/** Looks at what is known of the sale: Postgres can't be read while a transaction is open. */
export function isMoment(moment: Moment, { saleId, truth, queue }: SaleAuditor, world: World): boolean {
  return (
    truth !== undefined && MOMENTS[moment](truth, readBooks(world, saleId, truth.segments), queue?.truth)
  );
}

/** Acts once `isSo` is true, if that happens. */
export function when(isSo: () => boolean, act: () => void, looks = MAX_LOOKS): void {
  if (isSo()) act();
  else if (looks > 0) time.after(LOOK_EVERY_MS, () => when(isSo, act, looks - 1), WORLD);
}
