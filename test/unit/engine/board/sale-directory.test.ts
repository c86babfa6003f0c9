/** The directory, which keeps a node's board up to date: its reaction to a lost connection, and when it reads which epochs. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Board } from '../../../../src/engine/board/board.ts';
import type { Backend, BackendEvents, SaleVersion } from '../../../../src/engine/contract.ts';
import { BOARD_POLL_MS } from '../../../../src/engine/limits.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { SaleDirectory } from '../../../../src/node/sale-directory.ts';
import { elapse, freezeTime } from '../../../support/engine/frozen-time.ts';
import { gate } from '../../../support/gate.ts';
import { aSale } from '../../../support/shop/sales.ts';

const EPOCH = 3;

let events: BackendEvents;
let board: Board;
let directory: SaleDirectory;
let reads: number;
/** What a read waits for. */
let answers: Promise<void>;
/** Gives the epochs of sales. */
let versions: (saleIds: readonly string[]) => Promise<readonly SaleVersion[]>;
/** Gives the counter of changes. */
let changeCounter: () => Promise<string>;
let isSpread: boolean;
const VERSION: SaleVersion = { epoch: EPOCH, generation: 1, state: 'open' };

beforeEach(async () => {
  freezeTime();
  board = new Board(4);
  reads = 0;
  answers = Promise.resolve();
  // Without it, there are no polls.
  changeCounter = () => Promise.reject(new Error('the connection broke'));
  versions = async (saleIds) => saleIds.map(() => VERSION);
  isSpread = false;
  const backend = {
    get isSpread() {
      return isSpread;
    },
    sales: {
      read: async (id: string) => {
        reads++;
        await answers;
        return { sale: aSale({ id }), state: 'open', generation: 1, epoch: EPOCH };
      },
      versions: (saleIds: readonly string[]) => versions(saleIds),
      changeCounter: () => changeCounter(),
    },
    takes: { hint() {} },
    subscribe: async (added: BackendEvents) => {
      events = added;
      return async () => {};
    },
  } as unknown as Backend;
  directory = new SaleDirectory(backend, board, async () => false);
  await directory.start();
});

afterEach(async () => {
  await directory.stop();
  vi.useRealTimers();
});

test('a reconnection reopens all sales on the board, because a backend that lost writes has units again at the old epoch', async () => {
  const slots = [(await directory.lookup('sale-a'))!.slot, (await directory.lookup('sale-b'))!.slot];
  for (const slot of slots) board.close(slot, EPOCH, monotonicMs());
  expect(slots.map((slot) => board.isSoldOut(slot))).toEqual([true, true]);
  events.reconnected!();
  expect(slots.map((slot) => board.isSoldOut(slot))).toEqual([false, false]);
  // Observations from now on count.
  board.close(slots[0]!, EPOCH, monotonicMs());
  expect(slots.map((slot) => board.isSoldOut(slot))).toEqual([true, false]);
});

test('the end of a read leaves alone the one that a change has begun meanwhile', async () => {
  const gates: (() => void)[] = [];
  const nextRead = () => {
    answers = new Promise((resolve) => void gates.push(resolve));
    return directory.refresh('sale-a', 1);
  };
  const first = nextRead();
  events.saleChanged!('sale-a');
  const second = nextRead();
  expect(reads).toBe(2);
  gates[0]!();
  await first;
  await vi.advanceTimersByTimeAsync(1_000);
  const third = directory.refresh('sale-a', 1);
  expect(reads).toBe(2);
  gates[1]!();
  expect(await third).toBe(await second);
});

/** Lets the directory poll. */
async function polls(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await elapse(BOARD_POLL_MS);
}

describe('the epochs of all sales, also of those that are not sold out,', () => {
  let readings: number;
  let fails: boolean;
  beforeEach(async () => {
    [readings, fails] = [0, false];
    changeCounter = async () => '0';
    versions = async (saleIds) => {
      if (saleIds.length === 0) return [];
      readings++;
      if (fails) throw new Error('the connection broke');
      return saleIds.map(() => VERSION);
    };
    await directory.lookup('sale-a');
    await polls(1);
    expect(readings).toBe(1);
  });

  test('are read again at the next poll if that fails, and then not for ten seconds', async () => {
    await polls(119);
    expect(readings).toBe(1);
    fails = true;
    await polls(1);
    expect(readings).toBe(2);
    fails = false;
    await polls(110);
    expect(readings).toBe(3);
  });

  test('are read after ten seconds although the polls are slow', async () => {
    changeCounter = async () => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      return '0';
    };
    await polls(10_600 / BOARD_POLL_MS);
    expect(readings).toBe(2);
  });
});

describe('in a cluster of which a server', () => {
  const STEP_MS = 10;
  /** @returns what the board has told of the sale in this time */
  async function watched(slot: number, ms: number) {
    const seen = new Set<boolean>();
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      await elapse(STEP_MS);
      seen.add(board.isSoldOut(slot));
    }
    return [...seen];
  }

  test.each([
    ['hangs', 'stuck', false],
    ['hangs, one with the counter', 'stuck', true],
    ['can’t be reached', 'refused', true],
  ] as const)('%s, the board is confirmed by the others', async (_, other, hasCounter) => {
    isSpread = true;
    changeCounter = async () => '0';
    const asked: string[] = [];
    const { open: thaw, opened: thawed } = gate();
    const fine = (await directory.lookup('fine'))!.slot;
    const away = (await directory.lookup(other))!.slot;
    await polls(2);
    for (const slot of [fine, away]) board.close(slot, EPOCH, monotonicMs());
    let isAway = true;
    versions = async (saleIds) => {
      asked.push(...saleIds);
      if (!isAway || !saleIds.includes(other)) return saleIds.map(() => VERSION);
      if (other === 'refused') throw new Error('connection refused');
      await thawed;
      return [VERSION];
    };
    if (hasCounter)
      changeCounter = async () => {
        if (isAway) await thawed;
        return '0';
      };
    expect(await watched(fine, 3_000)).toEqual([true]);
    expect(board.isSoldOut(away)).toBe(false);
    if (other === 'stuck') expect(asked.filter((saleId) => saleId === other)).toHaveLength(1);
    isAway = false;
    thaw();
    await polls(4);
    expect(await watched(away, 1_000)).toEqual([true]);
  });

  test('hangs, what its sales have become is learned when it answers', async () => {
    isSpread = true;
    changeCounter = async () => '0';
    const { open: thaw, opened: thawed } = gate();
    await directory.lookup('stuck');
    versions = async () => {
      await thawed;
      return [{ ...VERSION, epoch: EPOCH + 1 }];
    };
    await polls(10);
    const before = reads;
    thaw();
    await polls(1);
    expect(reads).toBe(before + 1);
  });
});
