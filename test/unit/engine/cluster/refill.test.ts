import { expect, test } from 'vitest';
import type { ClusterSight, SegmentSight } from '../../../../src/engine/cluster/cluster-sight.ts';
import type { ClusterTransfers } from '../../../../src/engine/cluster/cluster-transfers.ts';
import { Refill, UNKNOWN_TOTAL } from '../../../../src/engine/cluster/refill.ts';
import type { Move } from '../../../../src/engine/contract.ts';
import { NotExecuted } from '../../../../src/engine/errors.ts';

const SALE = { saleId: 'sale', generation: 1 };
const EPOCH = 7;

/** @param lefts units left by segment; `undefined`: its server does not answer */
function refillOf(lefts: readonly (number | undefined)[]) {
  const moves: Move[] = [];
  const sights = lefts.map((left): SegmentSight | undefined =>
    left === undefined ? undefined : { left, out: undefined },
  );
  const sight = { epoch: async () => EPOCH, all: async () => sights };
  const transfers = { transfer: async (_sale: unknown, move: Move) => moves.push(move) };
  const refill = new Refill(transfers as unknown as ClusterTransfers, sight as unknown as ClusterSight);
  const run = (units: number) => refill.run(SALE, lefts.length, { receiver: 0, least: units, units });
  return { moves, run };
}

test('moves units from segments that can be seen', async () => {
  const { moves, run } = refillOf([0, 8, 3]);
  expect(await run(2)).toEqual({ total: 11, epoch: EPOCH });
  expect(moves).toEqual([{ from: 1, to: 0, units: 4 }]);
});

test('moves enough units, without a total, while a server does not answer', async () => {
  const { moves, run } = refillOf([0, 2, undefined]);
  expect(await run(2)).toEqual({ total: UNKNOWN_TOTAL, epoch: EPOCH });
  expect(moves).toEqual([{ from: 1, to: 0, units: 2 }]);
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
