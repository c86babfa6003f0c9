/** What an embedded shop answers about places if a store fails or is too slow. */
import { describe, expect, test } from 'vitest';
import { type PlaceParts, placesOf } from '../../../src/embed/embedded-places.ts';
import type { SaleRecord } from '../../../src/engine/contract.ts';
import { Busy } from '../../../src/engine/errors.ts';

const holder = { saleId: 'web', buyerId: 'ann' };
const offer = { orderId: '17', quantity: 1 };
const record = { sale: { id: 'web', perBuyerLimit: 1, queue: {} }, state: 'open' } as unknown as SaleRecord;

function placesWith(work: () => Promise<never>, parts: Partial<PlaceParts> = {}) {
  const faults: unknown[] = [];
  const places = placesOf(
    {
      queue: { join: work, look: work, leave: work, lookInMemory: () => undefined },
      acceptOffer: work,
      readRecord: async () => record,
      deadlineMs: 20,
      fault: (error) => faults.push(error),
      ...parts,
    },
    (operation) => operation(),
  );
  return { places, faults };
}

const calls = ['join', 'show', 'leave'] as const;
/** What a call is answered if it got no further than this. A leave may have been carried out. */
const failed = { join: 'unavailable', show: 'unavailable', leave: 'unknown' } as const;

describe('a call about a place', () => {
  test.each(calls)('%s is answered busy if there is too much to do', async (call) => {
    const { places, faults } = placesWith(() => Promise.reject(new Busy('too many')));
    expect(await places[call](holder)).toEqual({ code: 'busy' });
    expect(await places.accept({ buyerId: 'ann', offer })).toEqual({ code: 'busy' });
    expect(faults).toEqual([]);
  });

  test.each(calls)(
    '%s and an acceptance tell if they may have been carried out when a store fails',
    async (call) => {
      const error = new Error('connection refused');
      const { places, faults } = placesWith(() => Promise.reject(error));
      expect(await places[call](holder)).toEqual({ code: failed[call] });
      expect(await places.accept({ buyerId: 'ann', offer })).toEqual({ code: 'unknown' });
      expect(faults).toEqual([error, error]);
    },
  );

  test.each(calls)('%s ends at its deadline, and is no fault then', async (call) => {
    const { places, faults } = placesWith(() => new Promise<never>(() => {}));
    expect(await places[call](holder)).toEqual({ code: failed[call] });
    expect(await places.accept({ buyerId: 'ann', offer })).toEqual({ code: 'unknown' });
    expect(faults).toEqual([]);
  });

  test.each(calls)('%s is unavailable if the sale can’t be read', async (call) => {
    const readRecord = () => Promise.reject(new Error('connection refused'));
    const { places } = placesWith(() => Promise.reject(new Error('it was asked')), { readRecord });
    expect(await places[call](holder)).toEqual({ code: 'unavailable' });
  });

  test('reads nothing for a buyer or a sale that can’t exist', async () => {
    const { places } = placesWith(() => Promise.reject(new Error('it was asked')), {
      readRecord: () => Promise.reject(new Error('it was read')),
    });
    expect(await places.show({ saleId: '../web', buyerId: 'ann' })).toEqual({ code: 'unknown_sale' });
    const refused = { code: 'invalid_request', detail: expect.stringMatching(/^buyerId must be 1 to 128/) };
    expect(await places.show({ saleId: 'web', buyerId: 'an n' })).toEqual(refused);
    expect(await places.accept({ buyerId: '', offer })).toEqual(refused);
  });

  test.each([
    ['no_queue', { sale: { id: 'web', perBuyerLimit: 1 }, state: 'open' }],
    ['ended', { ...record, state: 'closed' }],
    ['queue_full', record],
  ])('that gets no place is answered %s, as the sale is by then', async (code, since) => {
    const records = [record, since as SaleRecord];
    const none = async () => undefined;
    const { places, faults } = placesWith(() => Promise.reject(new Error('not asked for')), {
      queue: { join: none, look: none, leave: none, lookInMemory: () => undefined },
      readRecord: async () => records.shift(),
    });
    expect(await places.join(holder)).toEqual({ code });
    expect(faults).toEqual([]);
  });

  test('is answered from memory if that is enough', async () => {
    const told = { number: 3, quantity: 1, state: 'waiting', reason: undefined, ahead: 2 } as const;
    const fails = () => Promise.reject(new Error('it was read'));
    const { places } = placesWith(fails, {
      queue: {
        ...{ join: fails, look: fails, leave: fails },
        lookInMemory: (_, known) => (known.number === 3 ? told : undefined),
      },
    });
    const last = { code: 'place', number: 3, quantity: 1, state: 'waiting' } as const;
    expect(await places.show(holder, last)).toMatchObject({ code: 'place', ahead: 2 });
  });

  test('is read if the last one told of no place', async () => {
    const looks: unknown[] = [];
    const { places } = placesWith(() => Promise.reject(new Error('not asked for')), {
      queue: {
        join: () => Promise.reject(new Error('not asked for')),
        leave: () => Promise.reject(new Error('not asked for')),
        look: async (_, buyerId, known) => void looks.push([buyerId, known]),
        lookInMemory: () => {
          throw new Error('nothing is known');
        },
      },
    });
    expect(await places.show(holder, { code: 'busy' })).toEqual({ code: 'no_place' });
    expect(looks).toEqual([['ann', undefined]]);
  });

  test.each([
    'x',
    42,
    null,
    {},
    { code: 'place' },
    { code: 'place', number: Number.NaN, quantity: 1 },
    { code: 'place', number: 1.5, quantity: 1 },
    { code: 'place', number: 0, quantity: 1 },
    { code: 'place', number: 1e15, quantity: 1 },
    { code: 'place', number: 1, quantity: 1e9 },
  ])('is refused by an error after %j, which no call tells', async (last) => {
    const { places } = placesWith(() => Promise.reject(new Error('it was read')));
    await expect(places.show(holder, last as never)).rejects.toMatchObject({
      message: expect.stringContaining('last must be what an earlier call told of this place'),
    });
  });
});
