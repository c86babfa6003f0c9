/** The sales of a run beside the first one. */
import type { Random } from '../../support/random.ts';
import { NO_DEALINGS } from './dealings.ts';
import type { Scenario } from './scenario.ts';

/** What differs from the first sale. */
export type OtherSale = Pick<Scenario, 'stock' | 'segments' | 'limit' | 'requests' | 'lives' | 'pauseMs'>;

export function otherSale({ whole, pick }: Random, lives = 0): OtherSale {
  return {
    stock: pick([1, 4, 16]),
    segments: whole(1, 4),
    limit: pick([1, 1, 2, 3]),
    requests: whole(4, 24),
    lives,
    pauseMs: pick([0, 0, 1_500]),
  };
}

/** The run of another sale, as if it were the only one. */
export function scenarioOfOther(scenario: Scenario, other: OtherSale): Scenario {
  const { payments, pairs } = scenario.dealings;
  const { queue: _, ...rest } = scenario;
  return { ...rest, ...other, others: [], dealings: { ...NO_DEALINGS, payments, pairs } };
}

/** What an operator sends to create the sale. */
export function saleToCreate(
  id: string,
  {
    stock,
    segments,
    limit: perBuyerLimit,
    payWithinSeconds,
    queue,
  }: Pick<Scenario, 'stock' | 'segments' | 'limit' | 'payWithinSeconds' | 'queue'>,
) {
  const opensAfterMs = queue?.opensAfterMs;
  const startsAt =
    opensAfterMs === undefined ? '2026-01-01T00:00:00Z' : new Date(Date.now() + opensAfterMs).toISOString();
  const sale = { id, stock, segments, perBuyerLimit, startsAt };
  const line = queue && {
    ...{ queue: queue.order, presenceSeconds: queue.presenceSeconds },
    ...{ offerSeconds: queue.offerSeconds, fit: queue.fit, maxWaiting: queue.maxWaiting },
  };
  return { ...sale, ...line, ...(payWithinSeconds && { payWithinSeconds }) };
}
