import { expect, test } from 'vitest';
import type { ClusterSight, SegmentSight } from '../../../../src/engine/cluster/cluster-sight.ts';
import type { ClusterTransfers } from '../../../../src/engine/cluster/cluster-transfers.ts';
import { Refill, UNKNOWN_TOTAL } from '../../../../src/engine/cluster/refill.ts';
import type { Move } from '../../../../src/engine/contract.ts';
import { NotExecuted } from '../../../../src/engine/errors.ts';

type Transfer = NonNullable<SegmentSight['out']>;

const SALE = { saleId: 'sale', generation: 1 };
const EPOCH = 7;

/**
 * @param lefts units left by segment; `undefined`: its server does not answer
 * @param open transfers that others have begun, by donor; `complete` is what is left by segment then
 */
function refillOf(
  lefts: readonly (number | undefined)[],
  { open = {}, complete = lefts }: { open?: Record<number, Transfer>; complete?: typeof lefts } = {},
) {
  const moves: Move[] = [];
  const completed: [donor: number, transfer: Transfer][] = [];
  let looks = 0;
  const all = async () => {
    const isFirst = looks++ === 0;
    // Completed are those whose receivers answer.
    const outOf = (i: number) =>
      isFirst || (open[i] && lefts[open[i].receiver] === undefined) ? open[i] : undefined;
    return (isFirst ? lefts : complete).map((left, i): SegmentSight | undefined =>
      left === undefined ? undefined : { left, out: outOf(i) },
    );
  };
  const sight = { epoch: async () => EPOCH, all };
  const transfers = {
    transfer: async (_sale: unknown, move: Move) => moves.push(move),
    complete: async (_sale: unknown, donor: number, transfer: Transfer) => completed.push([donor, transfer]),
  };
  const refill = new Refill(transfers as unknown as ClusterTransfers, sight as unknown as ClusterSight);
  const run = (units: number) => refill.run(SALE, lefts.length, { receiver: 0, least: units, units });
  return { moves, completed, looks: () => looks, run };
}

test('moves units from segments that can be seen', async () => {
  const { moves, run } = refillOf([0, 8, 3]);
  expect(await run(2)).toEqual({ total: 11, epoch: EPOCH });
  expect(moves).toEqual([{ from: 1, to: 0, units: 4 }]);
});

test('finishes the transfers of others first, and counts their units', async () => {
  const out: Transfer = { seq: '5', receiver: 0, units: 3 };
  const { moves, completed, looks, run } = refillOf([0, 2, 1], { open: { 2: out }, complete: [3, 2, 1] });
  expect(await run(4)).toEqual({ total: 6, epoch: EPOCH });
  expect(completed).toEqual([[2, out]]);
  expect(looks()).toBe(2);
  expect(moves).toEqual([{ from: 1, to: 0, units: 1 }]);
});

test('looks once if there are none', async () => {
  const { looks, run } = refillOf([0, 8]);
  await run(2);
  expect(looks()).toBe(1);
});

test('moves enough units, without a total, while a server does not answer', async () => {
  const { moves, run } = refillOf([0, 2, undefined]);
  expect(await run(2)).toEqual({ total: UNKNOWN_TOTAL, epoch: EPOCH });
  expect(moves).toEqual([{ from: 1, to: 0, units: 2 }]);
});

test('leaves a transfer open to a server that does not answer, and takes no units of its donor', async () => {
  const open = { 1: { seq: '5', receiver: 3, units: 3 } };
  const { moves, completed, looks, run } = refillOf([0, 9, 2, undefined], { open });
  expect(await run(2)).toEqual({ total: UNKNOWN_TOTAL, epoch: EPOCH });
  expect([completed, looks()]).toEqual([[], 1]);
  expect(moves).toEqual([{ from: 2, to: 0, units: 2 }]);
  const own = refillOf([9, 0, undefined], { open: { 0: { seq: '5', receiver: 2, units: 3 } } });
  expect(await own.run(2), 'the segment’s own units are there').toEqual({
    total: UNKNOWN_TOTAL,
    epoch: EPOCH,
  });
  expect(own.moves).toEqual([]);
});

test('is not executed if the servers that answer have too few units', async () => {
  const { moves, run } = refillOf([0, 1, undefined]);
  await expect(run(2)).rejects.toThrow(NotExecuted);
  expect(moves).toEqual([]);
});

test('moves nothing if the whole sale has too few units', async () => {
  const { moves, run } = refillOf([0, 1, 0]);
  expect(await run(2)).toEqual({ total: 1, epoch: EPOCH });
  expect(moves).toEqual([]);
});
