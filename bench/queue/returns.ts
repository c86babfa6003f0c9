/**
 * Units that come back at random times, while people wait: how long each lies free, whether anybody is overtaken, and how long an
 * acceptance takes. Whoever gets a unit accepts it at once, and a buyer gives one back at a random time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { note } from '../../src/cli/terminal/output.ts';
import { rows } from '../../src/postgres/database.ts';
import { BenchFailure } from '../support/failure.ts';
import { rounded } from '../support/figures.ts';
import { Askers } from './crowd/askers.ts';
import { live } from './crowd/person.ts';
import { type FreedUnits, readFreedUnits } from './freed-units.ts';
import { percentile } from './percentile.ts';
import type { Stage } from './stage.ts';

const SALE = 'returns';
const UNITS = 20;
/** Half of the mean time between two returns. */
const PAUSE_MS = 150;
const ASK_EVERY_MS = 1_000;
/** More than the units can come to, so that somebody waits until the end. */
const SPARE_PEOPLE = 30;
const CONNECTIONS = 32;
/** The head rests for this time between two rounds. Within a round all offers are made at once. */
const ROUND_MS = 250;
const POLL_MS = 20;
const LIMIT_MS = 60_000;

export interface Returns {
  readonly units: FreedUnits;
  /** From the request that accepts an offer to its `201`. */
  readonly acceptP50Ms: number;
  readonly acceptP99Ms: number;
  /** Places that got their offer a round after a later place. */
  readonly overtaken: number;
}

export async function measureReturns(stage: Stage): Promise<Returns> {
  const { node, db, parameters } = stage;
  await stage.createSale({ id: SALE, stock: UNITS, queue: 'fifo', presenceSeconds: 60 });
  const askers = await Askers.open(node.publicUrl, CONNECTIONS);
  const endsAt = performance.now() + parameters.returns * 2 * PAUSE_MS + LIMIT_MS;
  const people = UNITS + parameters.returns + SPARE_PEOPLE;
  const ending = new AbortController();
  const stories = Array.from({ length: people }, (_, i) =>
    live({
      ...{ askers, saleId: SALE, buyerId: `person-${i}`, hasQueue: true, pays: false, arrivesAfterMs: i },
      ...{ askEveryMs: ASK_EVERY_MS, thinksMs: 0, patienceMs: undefined, endsAt, ending: ending.signal },
    }),
  );
  try {
    for (let i = 0; i < parameters.returns; i++) {
      const order = await someOrder(stage);
      await delay(Math.random() * 2 * PAUSE_MS);
      await askers.ask({ method: 'POST', path: `/v1/orders/${order.id}/cancel`, buyerId: order.buyer });
    }
    await until(async () => (await offersOf(db)).length >= UNITS + parameters.returns);
    // One more round of asking, so that all offers are accepted.
    await delay(2 * ASK_EVERY_MS);
  } finally {
    ending.abort();
  }
  const told = await Promise.all(stories);
  askers.close();
  const gotMs = told.map((story) => story.gotMs).filter((ms) => ms !== undefined);
  if (gotMs.length === 0) throw new BenchFailure('nobody has accepted an offer');
  const units = await readFreedUnits(db, SALE, { stock: UNITS });
  note(`${units.freed} units came back: free for ${units.p50Ms} ms, at most ${units.maxMs} ms`);
  return {
    units,
    acceptP50Ms: rounded(percentile(gotMs, 0.5), 1),
    acceptP99Ms: rounded(percentile(gotMs, 0.99), 1),
    overtaken: overtakenIn(await offersOf(db)),
  };
}

interface Offer {
  readonly number: number;
  readonly atMs: number;
}

async function offersOf(db: Stage['db']): Promise<Offer[]> {
  return rows<Offer>(
    db,
    `SELECT p.number::float8 AS number, (extract(epoch FROM o.committed_at) * 1000)::float8 AS "atMs"
     FROM places p JOIN orders o ON o.order_id = p.order_id WHERE p.sale_id = ? ORDER BY p.number`,
    [SALE],
  );
}

/** @param offers in the order of places */
function overtakenIn(offers: readonly Offer[]): number {
  let overtaken = 0;
  let earliestBehind = Number.POSITIVE_INFINITY;
  for (const { atMs } of offers.toReversed()) {
    if (atMs - earliestBehind >= ROUND_MS) overtaken++;
    earliestBehind = Math.min(earliestBehind, atMs);
  }
  return overtaken;
}

/** An order that was accepted. */
async function someOrder({ db }: Stage): Promise<{ readonly id: string; readonly buyer: string }> {
  let found: { id: string; buyer: string } | undefined;
  await until(async () => {
    [found] = await rows<{ id: string; buyer: string }>(
      db,
      `SELECT order_id::text AS id, buyer_id AS buyer FROM orders
       WHERE sale_id = ? AND status = 'unpaid' AND offer_of IS NULL ORDER BY random() LIMIT 1`,
      [SALE],
    );
    return found !== undefined;
  });
  return found!;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + LIMIT_MS;
  while (!(await holds())) {
    if (Date.now() > deadline)
      throw new BenchFailure(`units came back, and were not offered within ${LIMIT_MS} ms`);
    await delay(POLL_MS);
  }
}
