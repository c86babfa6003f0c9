/** Transfers between segments on different servers, as the steps that they send. The test plays the servers. */
import { describe, expect, it } from 'vitest';
import type { ClusterSight, SegmentSight } from '../../../../src/engine/cluster/cluster-sight.ts';
import { ClusterTransfers } from '../../../../src/engine/cluster/cluster-transfers.ts';
import {
  type Debit,
  decodeTransfer,
  type OpenTransfer,
  type TransferScripts,
} from '../../../../src/engine/cluster/transfer-scripts.ts';
import { unarrived } from '../../../../src/engine/cluster/unarrived.ts';
import { BackendCorrupt, NotExecuted, StaleGeneration } from '../../../../src/engine/errors.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { Command, Reply } from '../../../../src/redis/send-all.ts';

const SALE = { saleId: 's', generation: 2 };
const KEYS = new Keys('p:');
const keyOf = (segment: number) => KEYS.segment({ saleId: 's', segment }).segment;
const open = (seq: string, receiver: number, units: number): OpenTransfer => ({ seq, receiver, units });

/**
 * @param debits what the donor answers, one after the other; the last one for ever
 * @param sights what is seen of each segment; `undefined`: its server does not answer
 */
function transfersOf(
  debits: readonly Debit[],
  sights: readonly (SegmentSight | undefined)[] = [0, 0, 0].map((left) => ({ left, out: undefined })),
  isReceiverThere = true,
) {
  const steps: unknown[][] = [];
  const note =
    (name: string) =>
    async (...args: unknown[]) => {
      steps.push([name, ...args]);
    };
  let asked = 0;
  const scripts = {
    debit: async (...args: unknown[]) => {
      steps.push(['debit', ...args]);
      return debits[Math.min(asked++, debits.length - 1)]!;
    },
    credit: async (...args: unknown[]) => {
      steps.push(['credit', ...args]);
      return isReceiverThere;
    },
    raiseEpoch: note('raiseEpoch'),
    settle: note('settle'),
  };
  const sight = {
    of: async (_: unknown, segments: readonly number[]) => segments.map((segment) => sights[segment]),
    all: async (_: unknown, segments: number) => sights.slice(0, segments),
  };
  const transfers = new ClusterTransfers(
    scripts as unknown as TransferScripts,
    sight as unknown as ClusterSight,
    KEYS,
  );
  return { transfers, steps, names: () => steps.map(([name]) => name) };
}

const completion = (donor: number, transfer: OpenTransfer) => [
  ['credit', keyOf(transfer.receiver), 2, donor, transfer],
  ['raiseEpoch', KEYS.sale('s')],
  ['settle', keyOf(donor), 2, transfer],
];

describe('a transfer', () => {
  it('debits, credits, raises the epoch and removes the record, in this order', async () => {
    const { transfers, steps } = transfersOf([{ kind: 'open', transfer: open('4', 1, 3) }]);
    expect(await transfers.transfer(SALE, { from: 0, to: 1, units: 5 })).toBe(3);
    expect(steps).toEqual([['debit', keyOf(0), 2, 1, 5], ...completion(0, open('4', 1, 3))]);
  });

  it('finishes transfers to other segments first', async () => {
    const others = [open('4', 2, 9), open('5', 1, 3)];
    const { transfers, steps } = transfersOf(others.map((transfer) => ({ kind: 'open', transfer })));
    expect(await transfers.transfer(SALE, { from: 0, to: 1, units: 5 })).toBe(3);
    const debit = ['debit', keyOf(0), 2, 1, 5];
    expect(steps).toEqual([debit, ...completion(0, others[0]!), debit, ...completion(0, others[1]!)]);
  });

  it('moves nothing if others are always ahead: it finishes 17 of them', async () => {
    const { transfers, names } = transfersOf([{ kind: 'open', transfer: open('4', 2, 9) }]);
    expect(await transfers.transfer(SALE, { from: 0, to: 1, units: 5 })).toBe(0);
    expect(names().filter((name) => name === 'settle')).toHaveLength(17);
  });

  it('moves nothing from an empty donor', async () => {
    const { transfers, names } = transfersOf([{ kind: 'empty' }]);
    expect(await transfers.transfer(SALE, { from: 0, to: 1, units: 5 })).toBe(0);
    expect(names()).toEqual(['debit']);
  });

  it('is refused by a stale donor', async () => {
    const { transfers, names } = transfersOf([{ kind: 'stale' }]);
    const transfer = transfers.transfer(SALE, { from: 0, to: 1, units: 5 });
    await expect(transfer).rejects.toThrow(StaleGeneration);
    expect(names()).toEqual(['debit']);
  });

  it('does not begin while the receiver can’t be seen', async () => {
    const { transfers, names } = transfersOf([{ kind: 'empty' }], [{ left: 9, out: undefined }, undefined]);
    await expect(transfers.transfer(SALE, { from: 0, to: 1, units: 5 })).rejects.toThrow(NotExecuted);
    expect(names()).toEqual([]);
  });

  it('keeps its record if the receiver is gone', async () => {
    const { transfers, names } = transfersOf([{ kind: 'open', transfer: open('4', 1, 3) }], undefined, false);
    const transfer = transfers.transfer(SALE, { from: 0, to: 1, units: 5 });
    await expect(transfer).rejects.toThrow(StaleGeneration);
    expect(names()).toEqual(['debit', 'credit']);
  });
});

it('all open transfers of a sale are finished and told, except those to a server that does not answer', async () => {
  const [first, third] = [open('4', 2, 9), open('1', 0, 2)];
  const sights = [{ left: 0, out: first }, { left: 0, out: undefined }, undefined, { left: 1, out: third }];
  const { transfers, steps } = transfersOf([], sights);
  expect(await transfers.finish(SALE, 4)).toEqual([{ from: 3, to: 0, units: 2 }]);
  expect(steps).toEqual(completion(3, third));
});

describe('the record of a transfer', () => {
  it('names its number, its receiver and its units', () => {
    expect(decodeTransfer('12 34 567')).toEqual({ seq: '12', receiver: 34, units: 567 });
  });

  it.each(['', 'x12 34 567', '12 34 567x', '12 34', 'a 3 5', '1 b 5', '1 3 c', '12  34 567'])(
    'is not %j',
    (record) => {
      expect(() => decodeTransfer(record)).toThrow(BackendCorrupt);
    },
  );
});

describe('the units of a transfer that have not arrived', () => {
  /** @param arrived the number of the last transfer that the receiver has from this donor */
  const unarrivedWith = (arrived: string | null, record: string | null | undefined) => {
    const answer = ([name, key, field]: Command): Reply => {
      expect([name, key, field]).toEqual(['hget', keyOf(34), 'from:3']);
      return [null, arrived];
    };
    const sendAll = async (commands: readonly Command[]) => commands.map(answer);
    return unarrived(sendAll, KEYS, { saleId: 's', segment: 3 }, record);
  };

  it.each([
    ['none has arrived from this donor', null, 567],
    ['an older one has', '11', 567],
    ['this one has', '12', 0],
    ['a newer one has', '13', 0],
  ])('are counted right when %s', async (_, arrived, units) => {
    expect(await unarrivedWith(arrived, '12 34 567')).toBe(units);
  });

  it.each(['', null, undefined])('are none without a record: %j', async (record) => {
    expect(await unarrivedWith('1', record)).toBe(0);
  });
});
