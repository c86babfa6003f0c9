/** A node forgets sales that are gone, and gives their slots to others when no listener uses them any more. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Board, NO_SLOT } from '../../../../src/engine/board/board.ts';
import type { SaleListener, SaleView } from '../../../../src/engine/board/directory.ts';
import type { Backend, BackendEvents, SaleRecord, SaleVersion } from '../../../../src/engine/contract.ts';
import { BOARD_POLL_MS } from '../../../../src/engine/limits.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { SaleDirectory } from '../../../../src/node/sale-directory.ts';
import { elapse, freezeTime, settledTurns } from '../../../support/engine/frozen-time.ts';
import { aSale } from '../../../support/shop/sales.ts';

/** In this time the directory has read the epochs of all sales whose counter has changed. */
const POLLED_MS = 500;
const EPOCH = 7;

let records: Map<string, SaleRecord>;
let inPostgres: Set<string>;
/** Answers of the store that the test holds back. */
let held: Promise<void> | undefined;
let existsFails: boolean;
let asksOfPostgres: string[];
let counter: number;
let events: BackendEvents;
let board: Board;
let directory: SaleDirectory;

beforeEach(async () => {
  freezeTime();
  records = new Map();
  inPostgres = new Set();
  held = undefined;
  existsFails = false;
  asksOfPostgres = [];
  counter = 0;
  board = new Board(2);
  const version = ({ epoch, generation, state }: SaleRecord): SaleVersion => ({ epoch, generation, state });
  const backend = {
    sales: {
      read: async (id: string) => {
        const record = records.get(id);
        await held;
        return record;
      },
      versions: async (ids: readonly string[]) => {
        const found = ids.map((id) => records.get(id));
        await held;
        return found.map((record) => record && version(record));
      },
      changeCounter: async () => String(counter),
    },
    takes: { hint() {} },
    subscribe: async (added: BackendEvents) => {
      events = added;
      return async () => {};
    },
  } as unknown as Backend;
  directory = new SaleDirectory(backend, board, async (id) => {
    asksOfPostgres.push(id);
    if (existsFails) throw new Error('Postgres is away');
    return inPostgres.has(id);
  });
  await directory.start();
});

afterEach(async () => {
  await directory.stop();
  vi.useRealTimers();
});

function put(id: string, generation = 1): void {
  records.set(id, { sale: aSale({ id }), state: 'open', generation, epoch: EPOCH });
  inPostgres.add(id);
}

/** As an archive does it: Postgres first. */
function remove(id: string): void {
  inPostgres.delete(id);
  records.delete(id);
  counter++;
}

/** Lets the directory poll for so long. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += BOARD_POLL_MS) await elapse(BOARD_POLL_MS);
}

async function tellOf(id: string): Promise<void> {
  events.saleChanged!(id);
  await settledTurns();
}

/** A listener whose answers the test gives, as a thread that is slow. */
class Slow implements SaleListener {
  readonly told: string[] = [];
  readonly #answers: { answer: () => void; fail: (error: Error) => void }[] = [];

  changed({ record }: SaleView): Promise<void> {
    return this.#hear(`${record.sale.id} ${record.generation}`);
  }

  gone(saleId: string): Promise<void> {
    return this.#hear(`${saleId} gone`);
  }

  async answer(): Promise<void> {
    this.#answers.shift()!.answer();
    await settledTurns();
  }

  async fail(): Promise<void> {
    this.#answers.shift()!.fail(new Error('a bug'));
    await settledTurns();
  }

  #hear(news: string): Promise<void> {
    this.told.push(news);
    return new Promise((resolve, reject) => this.#answers.push({ answer: resolve, fail: reject }));
  }
}

async function slotOf(id: string): Promise<number> {
  return ((await directory.lookup(id)) as SaleView).slot;
}

describe('a sale that neither store has', () => {
  beforeEach(async () => {
    put('sale');
    await slotOf('sale');
  });

  it('is forgotten at the message, and is unknown from then on', async () => {
    const listener = new Slow();
    directory.listen(listener);
    remove('sale');
    await tellOf('sale');
    expect(listener.told).toEqual(['sale 1', 'sale gone']);
    expect(directory.views.size).toBe(0);
    expect(await directory.lookup('sale')).toBeUndefined();
  });

  it('is forgotten though the message is lost', async () => {
    await pass(POLLED_MS);
    remove('sale');
    await pass(POLLED_MS);
    expect(directory.views.size).toBe(0);
  });

  it('is forgotten though the message is lost and the writer died before it raised the counter', async () => {
    await pass(POLLED_MS);
    remove('sale');
    counter--;
    await pass(POLLED_MS);
    expect(directory.views.size).toBe(1);
    await pass(10_000);
    expect(directory.views.size).toBe(0);
  });

  it('is known again when it was made again, in a slot that has nothing of the old one', async () => {
    board.close(await slotOf('sale'), 99, monotonicMs());
    remove('sale');
    await tellOf('sale');
    put('sale', 3);
    await tellOf('sale');
    const { record, slot } = (await directory.lookup('sale')) as SaleView;
    expect([record.generation, board.epoch(slot), board.isSoldOut(slot)]).toEqual([3, EPOCH, false]);
  });
});

describe('a sale that stays', () => {
  beforeEach(async () => {
    put('sale');
    await slotOf('sale');
    await pass(POLLED_MS);
    asksOfPostgres = [];
  });

  it('is one that only Redis has lost: it is being rebuilt', async () => {
    records.delete('sale');
    counter++;
    await tellOf('sale');
    await pass(11_000);
    expect(asksOfPostgres).toContain('sale');
    expect([...directory.views.keys()]).toEqual(['sale']);
  });

  it('is one about which Postgres can not be asked', async () => {
    remove('sale');
    existsFails = true;
    await tellOf('sale');
    await pass(11_000);
    expect([...directory.views.keys()]).toEqual(['sale']);
    existsFails = false;
    counter++;
    await pass(POLLED_MS);
    expect(directory.views.size).toBe(0);
  });

  it('is one that was made again while a read that had missed it went on', async () => {
    let go = () => {};
    held = new Promise((resolve) => (go = resolve));
    remove('sale');
    const missed = tellOf('sale');
    held = undefined;
    put('sale', 2);
    await tellOf('sale');
    inPostgres.delete('sale');
    go();
    await missed;
    await settledTurns();
    expect(directory.views.get('sale')?.record.generation).toBe(2);
  });
});

describe('a slot', () => {
  let listeners: [Slow, Slow];

  beforeEach(async () => {
    listeners = [new Slow(), new Slow()];
    for (const listener of listeners) directory.listen(listener);
    for (const id of ['a', 'b']) {
      put(id);
      await slotOf(id);
      for (const listener of listeners) await listener.answer();
    }
    put('c');
  });

  it('of a sale that is gone is free when every listener has answered, and not before', async () => {
    remove('a');
    await tellOf('a');
    await listeners[0].answer();
    expect([await slotOf('c'), directory.usedSlots]).toEqual([NO_SLOT, 2]);
    await listeners[1].answer();
    expect(directory.usedSlots).toBe(1);
    // This generation of the sale stays without a slot.
    expect(await slotOf('c')).toBe(NO_SLOT);
    put('d');
    expect(await slotOf('d')).toBe(0);
  });

  it('of a generation that is over is free when every listener has answered', async () => {
    remove('b');
    await tellOf('b');
    for (const listener of listeners) await listener.answer();
    put('a', 2);
    await tellOf('a');
    expect([await slotOf('a'), directory.usedSlots]).toEqual([1, 2]);
    for (const listener of listeners) await listener.answer();
    expect([await slotOf('c'), directory.usedSlots]).toEqual([0, 2]);
  });

  it('stays in use when an older copy of the record comes up: engines do not go back', async () => {
    put('a', 3);
    await tellOf('a');
    for (const listener of listeners) await listener.answer();
    put('a', 2);
    await tellOf('a');
    expect(listeners.map(({ told }) => told.at(-1))).toEqual(['a 3', 'a 3']);
    expect(directory.views.get('a')?.record.generation).toBe(3);
  });

  it('is not free if a listener has failed, which may still use it', async () => {
    remove('a');
    await tellOf('a');
    await listeners[0].fail();
    await listeners[1].answer();
    expect([await slotOf('c'), directory.usedSlots]).toEqual([NO_SLOT, 2]);
  });

  it('does not get what a poll has read of the generation before', async () => {
    board.close(await slotOf('a'), EPOCH, monotonicMs());
    let go = () => {};
    held = new Promise((resolve) => (go = resolve));
    records.set('a', { ...records.get('a')!, epoch: 50 });
    // The poll has read the epoch 50, and its reply is on its way.
    await pass(100);
    held = undefined;
    remove('a');
    await tellOf('a');
    for (const listener of listeners) await listener.answer();
    const slot = await slotOf('c');
    expect(slot).toBe(0);
    go();
    await settledTurns();
    expect(board.epoch(slot)).toBe(EPOCH);
  });
});
