/** Which orders of a batch are sent under the lock of their segment. The test plays the locks and the store. */
import { describe, expect, it, vi } from 'vitest';
import {
  type LogHint,
  NO_ENTRY,
  type TakeBatch,
  type TakeOrder,
  type TakeStore,
} from '../../../../src/engine/contract.ts';
import { NotExecuted } from '../../../../src/engine/errors.ts';
import { LEAST_TIME_TO_TAKE_MS } from '../../../../src/engine/limits.ts';
import { type Inside, LockedTakes } from '../../../../src/engine/locked/locked-takes.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { LockLost, LockNotAcquired } from '../../../../src/locks/lock-errors.ts';
import { LockHandle } from '../../../../src/locks/lock-handle.ts';
import { settledTurns } from '../../../support/engine/frozen-time.ts';

type Order = TakeOrder & { settled?: boolean };

const order = (orderId: string, settled = false): Order => ({
  orderId,
  buyerId: `b${orderId}`,
  quantity: 1,
  key: '',
  settled,
});

const batchOf = (orders: readonly TakeOrder[], segment = 0): TakeBatch => ({
  saleId: 's',
  segment,
  generation: 1,
  lane: 1,
  ticket: 1,
  answeredTicket: 0,
  newest: NO_ENTRY,
  orders,
});

const TAKEN = { kind: 'taken' };
const UNSENT = { kind: 'unsent' };

function lockedTakes({
  inside,
  locking = async () => {},
}: {
  inside?: Inside;
  locking?: () => Promise<void>;
} = {}) {
  const sent: { ids: string[]; token: number | undefined }[] = [];
  const locked: string[] = [];
  const released: number[] = [];
  const hints: LogHint[] = [];
  const handles: LockHandle[] = [];
  const reply = ({ orders, fencingToken }: TakeBatch) => {
    sent.push({ ids: orders.map(({ orderId }) => orderId), token: fencingToken });
    const results = orders.map(() => ({ kind: 'taken' }) as const);
    return { status: 'served', results, seq: 3, committed: 2, left: 1, orders: 4, returned: 5 } as const;
  };
  const store: TakeStore = {
    ready: true,
    whenReady: async () => {},
    hint: (hint) => hints.push(hint),
    take: async (batch) => reply(batch),
    refillAndTake: async (batch) => ({ status: 'refilled', take: reply(batch), total: 9, epoch: 1 }),
  };
  const locks = {
    lock: async ({ segment }: { segment: number }, waitMs: number) => {
      locked.push(`${segment} for ${waitMs}`);
      await locking();
      const host = { trusted: true, release: async () => true };
      const handle = new LockHandle(`lock ${segment}`, handles.length + 1, host);
      handles.push(handle);
      return handle;
    },
    release: async (_: unknown, handle: LockHandle) => {
      released.push(handle.token);
      await handle.release();
    },
    close: async () => {},
  };
  const takes = new LockedTakes(store, { locks, lockWaitMs: 500, inside, insideMaxMs: 10_000 });
  return { takes, sent, locked, released, hints, handles };
}

describe('takes under a lock', () => {
  it('carry its token, one lock for each segment', async () => {
    const { takes, sent, locked } = lockedTakes();
    const reply = await takes.take(batchOf([order('1'), order('2')]));
    expect(reply).toEqual({
      status: 'served',
      results: [TAKEN, TAKEN],
      seq: 3,
      committed: 2,
      left: 1,
      orders: 4,
      returned: 5,
    });
    await takes.take(batchOf([order('3')], 7));
    expect(locked).toEqual(['0 for 500', '7 for 500']);
    expect(sent).toEqual([
      { ids: ['1', '2'], token: 1 },
      { ids: ['3'], token: 2 },
    ]);
  });

  it('of no orders are sent, because they find lost writes', async () => {
    const inside = vi.fn<Inside>(async () => []);
    const { takes, sent } = lockedTakes({ inside });
    expect(await takes.take(batchOf([]))).toMatchObject({ status: 'served', results: [], seq: 3 });
    expect(sent).toEqual([{ ids: [], token: 1 }]);
    expect(inside).not.toHaveBeenCalled();
  });

  it('pass hints on', () => {
    const { takes, hints } = lockedTakes();
    const hint = { saleId: 's', segment: 0, generation: 1, seq: 1 } as unknown as LogHint;
    takes.hint(hint);
    expect(hints).toEqual([hint]);
  });

  it('leave out orders whose buyers are answered, before the shop’s work and after it', async () => {
    const orders = [order('1', true), order('2'), order('3')];
    const seen: string[][] = [];
    const inside: Inside = async (waiting) => {
      seen.push(waiting.map(({ orderId }) => orderId));
      orders[1]!.settled = true;
      return [];
    };
    const { takes, sent } = lockedTakes({ inside });
    expect(await takes.take(batchOf(orders))).toMatchObject({ results: [UNSENT, UNSENT, TAKEN], seq: 3 });
    expect(seen).toEqual([['2', '3']]);
    expect(sent).toEqual([{ ids: ['3'], token: 1 }]);
  });

  it('are not sent if the shop refuses all orders, or their buyers are answered meanwhile', async () => {
    const orders = [order('1'), order('2')];
    const inside: Inside = async () => {
      orders[0]!.settled = true;
      return [{ orderId: '2', reason: 'fraud' }];
    };
    const { takes, sent } = lockedTakes({ inside });
    expect(await takes.take(batchOf(orders))).toEqual({
      status: 'served',
      results: [UNSENT, { kind: 'refused', reason: 'fraud' }],
      seq: 0,
      committed: 0,
      left: 0,
      orders: 0,
      returned: 0,
    });
    expect(sent).toEqual([]);
  });

  it('are not executed if all buyers were answered before the lock was free', async () => {
    const inside = vi.fn<Inside>(async () => []);
    const { takes, sent } = lockedTakes({ inside });
    await expect(takes.take(batchOf([order('1', true)]))).rejects.toThrow(NotExecuted);
    expect([sent, inside.mock.calls]).toEqual([[], []]);
  });

  it('show the shop each order once, also if it comes again', async () => {
    const seen: string[][] = [];
    const inside: Inside = async (orders) => {
      seen.push(orders.map(({ orderId }) => orderId));
      return orders
        .filter(({ orderId }) => orderId === '2')
        .map(({ orderId }) => ({ orderId, reason: 'fraud' }));
    };
    const { takes, sent } = lockedTakes({ inside });
    const orders = [order('1'), order('2')];
    for (let i = 0; i < 2; i++) {
      const results = [TAKEN, { kind: 'refused', reason: 'fraud' }];
      expect(await takes.take(batchOf(orders))).toMatchObject({ results });
    }
    await takes.take(batchOf([orders[0]!]));
    expect(seen).toEqual([['1', '2']]);
    expect(sent.map(({ ids }) => ids)).toEqual([['1'], ['1'], ['1']]);
  });

  it('after a refill serve the orders that still wait, without the shop’s work', async () => {
    const inside = vi.fn<Inside>(async () => []);
    const { takes, sent } = lockedTakes({ inside });
    const reply = await takes.refillAndTake(batchOf([order('1', true), order('2')]), 3);
    expect(reply).toMatchObject({ status: 'refilled', take: { results: [UNSENT, TAKEN] }, total: 9 });
    expect(sent).toEqual([{ ids: ['2'], token: 1 }]);
    expect(inside).not.toHaveBeenCalled();
  });

  it.each([new LockNotAcquired('lock', 'too late'), new LockLost('lock', 1, 'it expired')])(
    'are not executed after %s',
    async (error) => {
      const { takes, sent } = lockedTakes({ locking: () => Promise.reject(error) });
      await expect(takes.take(batchOf([order('1')]))).rejects.toMatchObject({
        code: 'not_executed',
        message: `nothing was taken: ${error.message}`,
        cause: error,
      });
      expect(sent).toEqual([]);
    },
  );

  it('pass other errors on', async () => {
    const { takes } = lockedTakes({ locking: () => Promise.reject(new Error('a bug')) });
    await expect(takes.take(batchOf([order('1')]))).rejects.toThrow(/^a bug$/);
  });

  it('release the lock when no batch follows, and get it again for a later one', async () => {
    const { takes, sent, released } = lockedTakes();
    await takes.take(batchOf([order('1')]));
    await takes.take(batchOf([order('2')]));
    await settledTurns();
    expect(released).toEqual([1]);
    await takes.take(batchOf([order('3')]));
    expect(sent.map(({ token }) => token)).toEqual([1, 1, 2]);
  });
});

describe('the shop’s work under a lock', () => {
  it('is told of the lock’s loss, and the orders are not sent', async () => {
    let told: unknown;
    const { takes, sent, handles } = lockedTakes({
      inside: async (_, { signal, token }) => {
        signal.addEventListener('abort', () => (told = signal.reason));
        expect(token).toBe(1);
        handles[0]!.lose('it expired');
        return [];
      },
    });
    const take = takes.take(batchOf([order('1')]));
    await expect(take).rejects.toMatchObject({
      code: 'not_executed',
      message: expect.stringContaining('it expired'),
    });
    expect(told).toBeInstanceOf(LockLost);
    expect(sent).toEqual([]);
  });

  it('that fails takes nothing, and ends its signal', async () => {
    let signal: AbortSignal | undefined;
    const inside: Inside = async (_, lock) => {
      signal = lock.signal;
      throw new Error('no answer');
    };
    const { takes, sent } = lockedTakes({ inside });
    await expect(takes.take(batchOf([order('1')]))).rejects.toMatchObject({
      code: 'not_executed',
      message: expect.stringMatching(/nothing was taken.*no answer/),
    });
    expect([signal!.aborted, sent]).toEqual([true, []]);
  });

  it('listens for the loss of the lock only while it runs', async () => {
    let signal: AbortSignal | undefined;
    const { takes, handles } = lockedTakes({
      inside: async (_, lock) => {
        signal = lock.signal;
        return [];
      },
    });
    await takes.take(batchOf([order('1')]));
    handles[0]!.lose('it expired');
    expect(signal!.aborted).toBe(false);
  });
});

describe('an order', () => {
  it('is left out if its deadline is near', async () => {
    const { takes, sent } = lockedTakes();
    const near = { ...order('1'), deadline: monotonicMs() + LEAST_TIME_TO_TAKE_MS / 2 };
    const far = { ...order('2'), deadline: monotonicMs() + 60_000 };
    const reply = await takes.take(batchOf([near, far]));
    expect(sent.map(({ ids }) => ids)).toEqual([['2']]);
    expect(reply).toMatchObject({ results: [UNSENT, TAKEN] });
  });
});
