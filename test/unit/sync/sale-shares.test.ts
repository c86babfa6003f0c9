/**
 * Syncs that know each other only by their news divide the sales. Here a hall of them passes the news by hand, so that it can be
 * lost, late or repeated, and so that a sync can stop at any moment.
 */
import { expect, test, vi } from 'vitest';
import type { SyncNews } from '../../../src/engine/contract.ts';
import { SaleShares } from '../../../src/sync/sale-shares.ts';
import { seed } from '../../support/fixtures.ts';
import { random } from '../../support/random.ts';

let nowMs = 0;
vi.mock('../../../src/lib/monotonic.ts', () => ({ monotonicMs: () => nowMs }));

const A_SECOND_MS = 1_000;
const UNTIL_FORGOTTEN = 6;
const RUNS = 100;

class Hall {
  readonly free: Set<string>;
  readonly syncs: OneSync[] = [];
  /** News that no sync has heard yet. */
  readonly news: SyncNews[] = [];
  handOvers = 0;
  moved = 0;

  constructor(sales: number) {
    this.free = new Set(Array.from({ length: sales }, (_, i) => `sale-${i}`));
  }

  open(): OneSync {
    const sync = new OneSync(this);
    this.syncs.push(sync);
    return sync;
  }

  get living(): OneSync[] {
    return this.syncs.filter(({ isStopped }) => !isStopped);
  }

  get counts(): number[] {
    return this.living.map(({ held }) => held.size).sort((a, b) => b - a);
  }

  /** All that happens until everyone has heard the news of this second, and what it leads to. */
  async second(deliver: (news: SyncNews) => readonly SyncNews[] = (news) => [news]): Promise<void> {
    nowMs += A_SECOND_MS;
    for (const sync of this.living) await sync.turn();
    for (let news = this.news.shift(); news; news = this.news.shift()) {
      for (const heard of deliver(news)) for (const sync of this.living) sync.shares.hear(heard);
      for (const sync of this.living) await sync.turn();
    }
  }
}

/** A sync without stores: it holds sales, and takes those that nobody has. */
class OneSync {
  readonly held = new Set<string>();
  readonly shares: SaleShares;
  isStopped = false;
  readonly #hall: Hall;

  constructor(hall: Hall) {
    this.#hall = hall;
    const tell = (news: SyncNews) => {
      if (news.handedOver) hall.handOvers++;
      hall.news.push(news);
    };
    const held = this.held;
    this.shares = new SaleShares(
      { tell },
      {
        get count() {
          return held.size;
        },
        handOver: async (count) => {
          const given = [...held].slice(0, count);
          for (const saleId of given) {
            held.delete(saleId);
            hall.free.add(saleId);
          }
          hall.moved += given.length;
          return given;
        },
        takeReleased: async (saleIds) => this.take(saleIds),
      },
      () => {},
    );
  }

  take(saleIds: Iterable<string>): void {
    for (const saleId of [...saleIds]) if (this.#hall.free.delete(saleId)) this.held.add(saleId);
  }

  turn(): Promise<void> {
    return this.shares.advance(async () => {});
  }
}

/** @param sales all of them belong to the first of the syncs */
function hallOf(sales: number, syncs: number): Hall {
  const hall = new Hall(sales);
  hall.open().take(hall.free);
  for (let i = 1; i < syncs; i++) hall.open();
  return hall;
}

test.each([
  [1, 2, [1, 0]],
  [2, 2, [1, 1]],
  [4, 3, [2, 1, 1]],
  [12, 3, [4, 4, 4]],
  [18, 10, [2, 2, 2, 2, 2, 2, 2, 2, 1, 1]],
])('%i sales of the first of %i syncs are divided, and then nothing moves', async (sales, syncs, wanted) => {
  const hall = hallOf(sales, syncs);
  for (let i = 0; i < 3; i++) await hall.second();
  expect(hall.counts).toEqual(wanted);
  expect(hall.moved).toBe(sales - wanted[0]!);
  for (let i = 0; i < 10; i++) await hall.second();
  expect(hall.moved).toBe(sales - wanted[0]!);
});

test('one more sync gets its share of all others, and no sale moves between these', async () => {
  const hall = hallOf(40, 4);
  for (let i = 0; i < 3; i++) await hall.second();
  hall.moved = 0;
  hall.open();
  for (let i = 0; i < 3; i++) await hall.second();
  expect(hall.counts).toEqual([8, 8, 8, 8, 8]);
  expect(hall.moved).toBe(8);
});

test('half of a thousand sales goes over at the second news, at most 20 at once', async () => {
  const hall = hallOf(1_000, 2);
  await hall.second();
  expect(hall.counts).toEqual([1_000, 0]);
  await hall.second();
  expect(hall.counts).toEqual([500, 500]);
  expect(hall.handOvers).toBe(25);
});

test('a stopped sync gets nothing, and its share is divided once it is forgotten', async () => {
  const hall = hallOf(12, 3);
  const [first, second, third] = hall.syncs;
  await hall.second();
  await hall.second();
  third!.isStopped = true;
  for (let i = 0; i < 3; i++) await hall.second();
  expect(hall.counts).toEqual([4, 4]);
  // Its process dies: the first that looks has all its sales.
  for (const saleId of third!.held) hall.free.add(saleId);
  third!.held.clear();
  first!.take(hall.free);
  for (let i = 0; i < UNTIL_FORGOTTEN; i++) await hall.second();
  expect(hall.counts).toEqual([6, 6]);
  expect(second!.held.size).toBe(6);
  expect(hall.free.size).toBe(0);
});

test('a stopped sync that goes on without its sales gets its share again', async () => {
  const hall = hallOf(9, 3);
  const [first, , third] = hall.syncs;
  for (let i = 0; i < 2; i++) await hall.second();
  third!.isStopped = true;
  for (const saleId of third!.held) hall.free.add(saleId);
  third!.held.clear();
  first!.take(hall.free);
  for (let i = 0; i < UNTIL_FORGOTTEN; i++) await hall.second();
  third!.isStopped = false;
  for (let i = 0; i < 3; i++) await hall.second();
  expect(hall.counts).toEqual([3, 3, 3]);
});

test('news that was sent before a hand-over and is heard after it starts no second one', async () => {
  const hall = hallOf(10, 2);
  const [first, second] = hall.syncs;
  const news = { from: second!.shares.name, sales: 0 };
  first!.shares.hear(news);
  nowMs += A_SECOND_MS;
  first!.shares.hear(news);
  await first!.turn();
  expect(hall.moved).toBe(5);
  first!.shares.hear(news);
  await first!.turn();
  expect(hall.moved).toBe(5);
});

test('whatever news is lost, late or repeated, the sales are divided soon after, and nothing moves any more', {
  timeout: 60_000,
}, async () => {
  const first = seed();
  for (let runSeed = first; runSeed < first + RUNS; runSeed++) {
    const { whole, chance, pick } = random(runSeed);
    const [sales, syncs] = [whole(0, 60), whole(1, 6)];
    const hall = hallOf(sales, syncs);
    const late: SyncNews[] = [];
    const faulty = (news: SyncNews) => {
      if (chance(0.2)) late.push(news);
      return chance(0.2)
        ? []
        : [news, ...(chance(0.2) ? [news] : []), ...(chance(0.3) ? late.splice(0) : [])];
    };
    for (let second = 0; second < 20; second++) {
      for (const sync of hall.syncs) sync.isStopped = chance(0.2);
      await hall.second(faulty);
      // Anyone takes what nobody has, as a hint or a sweep makes it do.
      if (hall.living.length > 0) pick(hall.living).take(hall.free);
    }
    for (const sync of hall.syncs) sync.isStopped = false;
    for (let second = 0; second < UNTIL_FORGOTTEN; second++) {
      await hall.second();
      pick(hall.syncs).take(hall.free);
    }
    const where = `seed ${runSeed}: ${sales} sales, ${syncs} syncs: ${hall.counts}`;
    expect(hall.counts[0]! - hall.counts.at(-1)!, where).toBeLessThanOrEqual(1);
    expect(
      hall.counts.reduce((sum, n) => sum + n, 0),
      where,
    ).toBe(sales);
    const { moved } = hall;
    for (let second = 0; second < 3; second++) await hall.second();
    expect(hall.moved, where).toBe(moved);
  }
});

test('without a channel nothing is told, and nothing moves', async () => {
  const sales = { count: 5, handOver: vi.fn(), takeReleased: vi.fn() };
  const shares = new SaleShares(undefined, sales, () => {});
  await shares.advance(async () => {});
  expect([sales.handOver, sales.takeReleased].map((called) => called.mock.calls.length)).toEqual([0, 0]);
});
