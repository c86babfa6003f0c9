/** The verdict on the demo of the queue: what was sold, whether anybody was overtaken, and what `verify` says. */
import type { VerifyReport } from '../../../client/index.ts';
import { number, plural } from '../../terminal/output.ts';
import type { Seen } from './crowd.ts';
import type { QueuePlan } from './plan.ts';
import type { Standing } from './standing.ts';

/** Offers of one round are made in any order, and a round takes less than this. */
const ROUND_MS = 1_000;

export interface QueueVerdict {
  readonly sold: number;
  readonly distinctBuyers: number;
  /** Units that nobody has, although somebody waits. */
  readonly undersold: number;
  readonly oversold: number;
  readonly givenBack: number;
  readonly lapsed: number;
  /** People of the crowd behind whom somebody got an offer before them. */
  readonly overtaken: number;
  readonly verify: 'ok' | 'failed';
  readonly holds: boolean;
  /** What does not hold, in words; empty if all does. */
  readonly failures: readonly string[];
}

export function judgeQueue(
  { stock }: QueuePlan,
  seen: readonly Seen[],
  standing: Standing,
  report: VerifyReport,
): QueueVerdict {
  const { committedOrders: sold, distinctBuyers } = report;
  const { offered, lapsed, givenBack, waiting, hopeless } = standing;
  const oversold = Math.max(0, sold - stock);
  const undersold = Math.min(Math.max(0, stock - sold - offered), waiting + hopeless);
  const overtaken = countOvertaken(seen);
  const lost = seen.filter(({ orderId, place }) => place?.state === 'bought' && !orderId).length;
  const told = new Set(seen.flatMap(({ orderId }) => orderId ?? [])).size;
  const failures = [
    ...(oversold > 0 ? [`${number(oversold)} more units sold than the ${number(stock)} for sale`] : []),
    ...(undersold > 0 ? [`${plural(undersold, 'unit')} not sold although buyers waited`] : []),
    ...(overtaken > 0 ? [`${plural(overtaken, 'place')} overtaken`] : []),
    ...(distinctBuyers === sold
      ? []
      : [`${plural(sold, 'order')} belong to only ${plural(distinctBuyers, 'buyer')}`]),
    ...(lost > 0 ? [`${plural(lost, 'buyer')} got no answer with an order`] : []),
    // A visitor of the page may have bought too.
    ...(told > sold ? [`buyers were told of ${plural(told, 'order')}, Postgres has ${number(sold)}`] : []),
    ...(report.ok ? [] : ['verify failed']),
  ];
  return {
    ...{ sold, distinctBuyers, undersold, oversold, lapsed, givenBack, overtaken },
    verify: report.ok ? 'ok' : 'failed',
    holds: failures.length === 0,
    failures,
  };
}

/** How many wait, or waited, while somebody behind them was already served. A buyer that left before it got an offer counts as served. */
export function countOvertaken(seen: readonly Seen[]): number {
  const line = seen
    .flatMap(({ place, offeredAtMs = Number.POSITIVE_INFINITY }) =>
      place?.rank === undefined || (place.state === 'left' && offeredAtMs === Number.POSITIVE_INFINITY)
        ? []
        : [{ rank: place.rank, offeredAtMs }],
    )
    .sort((a, b) => b.rank - a.rank);
  // From the last place to the first.
  let earliestBehind = Number.POSITIVE_INFINITY;
  let overtaken = 0;
  for (const { offeredAtMs } of line) {
    if (offeredAtMs > earliestBehind + ROUND_MS) overtaken++;
    earliestBehind = Math.min(earliestBehind, offeredAtMs);
  }
  return overtaken;
}

/** The demo's last words. */
export function queueVerdictText({ holds, failures, ...verdict }: QueueVerdict): string {
  const { sold, distinctBuyers, lapsed, givenBack } = verdict;
  if (!holds) return `DOES NOT HOLD: ${failures.join('; ')}.`;
  return (
    `Holds: ${plural(sold, 'unit')} went to ${plural(distinctBuyers, 'buyer')} in their turn; nobody was overtaken; verify is ok.\n` +
    (givenBack + lapsed === 0
      ? 'No offer was given back, and none lapsed.'
      : `${plural(givenBack, 'offer')} given back and ${number(lapsed)} lapsed: their units went to the next in the queue.`)
  );
}
