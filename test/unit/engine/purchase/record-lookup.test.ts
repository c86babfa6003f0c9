import { beforeEach, describe, expect, it } from 'vitest';
import type { Holding, Recall, SaleStore, SegmentRef } from '../../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../../src/engine/errors.ts';
import { RecordLookup } from '../../../../src/engine/purchase/record-lookup.ts';

const MAX_BUYERS = 256;
const HOME: SegmentRef = { saleId: 'sale', segment: 0, generation: 1 };

interface Call {
  readonly ref: SegmentRef;
  readonly buyerIds: readonly string[];
}

let calls: Call[];
let answer: (call: Call) => Promise<Recall>;
let lookup: RecordLookup;

beforeEach(() => {
  calls = [];
  answer = async ({ buyerIds }) => ({ committed: 7, holdings: buyerIds.map(holding) });
  const recall: SaleStore['recall'] = (ref, buyerIds) => {
    calls.push({ ref, buyerIds });
    return answer(calls.at(-1)!);
  };
  lookup = new RecordLookup({ recall } as SaleStore);
});

/** Every buyer holds one order, which has the buyer's name. */
function holding(buyerId: string): Holding {
  return { buyerId, orders: [{ orderId: `of-${buyerId}`, quantity: 1, key: '', seq: 1 }] };
}

const crowd = (count: number) => Array.from({ length: count }, (_, i) => `buyer-${i}`);
const sizes = () => calls.map((call) => call.buyerIds.length);

describe('reads of records', () => {
  it('give the orders of each buyer, and the cursor', async () => {
    const answers = await Promise.all(crowd(3).map((buyerId) => lookup.ask(HOME, buyerId)));
    expect(answers).toEqual(crowd(3).map((buyerId) => ({ committed: 7, orders: holding(buyerId).orders })));
  });

  it('of one turn about one segment are one call', async () => {
    const first = lookup.ask(HOME, 'anna');
    await Promise.resolve();
    await Promise.all([first, lookup.ask(HOME, 'ben')]);
    expect(calls).toEqual([{ ref: HOME, buyerIds: ['anna', 'ben'] }]);
    await lookup.ask(HOME, 'cleo');
    expect(sizes()).toEqual([2, 1]);
  });

  it('about different sales, segments and generations are different calls', async () => {
    const refs = [HOME, { ...HOME, saleId: 'other' }, { ...HOME, segment: 1 }, { ...HOME, generation: 2 }];
    await Promise.all(refs.map((ref) => lookup.ask(ref, 'anna')));
    expect(calls.map((call) => call.ref)).toEqual(refs);
  });

  it.each([
    [MAX_BUYERS - 1, [MAX_BUYERS - 1]],
    [MAX_BUYERS, [MAX_BUYERS]],
    [MAX_BUYERS + 1, [MAX_BUYERS, 1]],
    [2 * MAX_BUYERS, [MAX_BUYERS, MAX_BUYERS]],
    [2 * MAX_BUYERS + 3, [MAX_BUYERS, MAX_BUYERS, 3]],
  ])('of %d buyers are made in several calls', async (count, portions) => {
    const answers = await Promise.all(crowd(count).map((buyerId) => lookup.ask(HOME, buyerId)));
    expect(answers.map(({ orders }) => orders[0]!.orderId)).toEqual(crowd(count).map((id) => `of-${id}`));
    expect(sizes()).toEqual(portions);
  });
});

it('begins a new call after a full one, and all later reads of that turn join it', async () => {
  const full = crowd(MAX_BUYERS).map((buyerId) => lookup.ask(HOME, buyerId));
  // Comes after the turn's end of the full call, and before that of the next one.
  const late = new Promise((resolve) => {
    setImmediate(() => resolve(lookup.ask(HOME, 'late')));
  });
  await Promise.all([...full, lookup.ask(HOME, 'next'), late]);
  expect(sizes()).toEqual([MAX_BUYERS, 2]);
});

describe('a failure', () => {
  it('rejects all reads in that call, and no others', async () => {
    const stale = new StaleGeneration('sale', 1);
    answer = async () => Promise.reject(stale);
    const failed = await Promise.allSettled([lookup.ask(HOME, 'anna'), lookup.ask(HOME, 'ben')]);
    expect(failed).toEqual([
      { status: 'rejected', reason: stale },
      { status: 'rejected', reason: stale },
    ]);
    answer = async ({ buyerIds }) => ({ committed: 0, holdings: buyerIds.map(holding) });
    expect(await lookup.ask(HOME, 'anna')).toEqual({ committed: 0, orders: holding('anna').orders });
  });

  it('to answer for every buyer rejects all reads', async () => {
    answer = async () => ({ committed: 0, holdings: [holding('anna')] });
    const [anna, ben] = await Promise.allSettled([lookup.ask(HOME, 'anna'), lookup.ask(HOME, 'ben')]);
    expect([anna!.status, ben!.status]).toEqual(['fulfilled', 'rejected']);
  });

  it('thrown by the call itself rejects them too', async () => {
    answer = () => {
      throw new Error('not even sent');
    };
    await expect(lookup.ask(HOME, 'anna')).rejects.toThrow('not even sent');
  });
});
