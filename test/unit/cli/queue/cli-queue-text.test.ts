/** What `stockade queue` and `stockade sale queue` say. */
import { describe, expect, test } from 'vitest';
import { placeColumns, queueSheet } from '../../../../src/cli/queue/queue-text.ts';
import { remarks, toldOfTurningOff } from '../../../../src/cli/sale/queue.ts';
import { invokedAs } from '../../../../src/cli/terminal/invoked-as.ts';
import { Table } from '../../../../src/cli/terminal/table.ts';
import type { PlaceStatus, QueueStatus } from '../../../../src/operations/queue/queue-operations.ts';
import type { SaleStatus } from '../../../../src/operations/sale-operations.ts';

const SETTINGS = { offerSeconds: 120, presenceSeconds: 60, maxWaiting: 1_000, fit: 'less' } as const;
const QUEUE: QueueStatus = {
  ...{
    saleId: 'tickets',
    order: 'fifo',
    ...SETTINGS,
    phase: 'offering',
    places: 1_200,
    head: 400,
    behindHead: 800,
  },
  counts: { waiting: 760, offered: 40, bought: 350, lapsed: 30, left: 20 },
  ...{ freeUnits: 0, hopelessFrom: 901, offersMade: 420, offersLastMinute: 38, stopped: false, allowed: 0 },
  draw: { commitment: 'c0ffee' },
};

describe('a queue', () => {
  test('in words', () => {
    const sheet = queueSheet(QUEUE);
    for (const line of [
      /^queue +first come, first served$/m,
      /^offers +free units go to the next places$/m,
      /^pace +as many as there are units$/m,
      /^offers stand +120 s$/m,
      /^absent after +60 s$/m,
      /^places at most +1,000$/m,
      /^too few units +the next place gets an offer of fewer$/m,
      /^last minute +38 offers$/m,
      /^places given +1,200$/m,
      /^waiting +760$/m,
      /^head +rank 400: no place up to it waits$/m,
      /^hopeless +rank 901 and all behind: /m,
    ])
      expect(sheet).toMatch(line);
    expect(sheet).not.toMatch(/commitment|drawn|undefined/);
  });

  test('that is off has no settings', () => {
    const none = {
      offerSeconds: undefined,
      presenceSeconds: undefined,
      maxWaiting: undefined,
      fit: undefined,
    };
    expect(queueSheet({ ...QUEUE, ...none, order: 'off', phase: 'off' })).not.toMatch(
      /stand|absent|too few|at most/,
    );
  });

  test('that is too long to be counted says how many wait at most', () => {
    const sheet = queueSheet({
      ...QUEUE,
      counts: undefined,
      freeUnits: undefined,
      offersLastMinute: 100_000,
    });
    expect(sheet).toMatch(/^waiting +at most 800; to count: --count$/m);
    expect(sheet).toMatch(/^free units +not known yet$/m);
    expect(sheet).toMatch(/^last minute +at least 100,000 offers$/m);
    expect(sheet).not.toMatch(/^bought/m);
  });

  test.each<[Partial<QueueStatus>, RegExp]>([
    [{ phase: 'stopped' }, /^offers +stopped$/m],
    [{ phase: 'stopped', allowed: 5 }, /^offers +stopped; 5 more offers may still be made$/m],
    [{ phase: 'stopped', allowed: 1 }, /^offers +stopped; 1 more offer may still be made$/m],
    [{ presenceSeconds: 0 }, /^absent after +never$/m],
    [{ fit: 'wait' }, /^too few units +the next place waits for more units$/m],
    [{ maxWaiting: 800 }, /^waiting +760\. The queue is full: new buyers are refused$/m],
    [{ head: 0 }, /^head +before the first place$/m],
    [{ phase: 'no-head' }, /^offers +no node makes offers: no node has ever told of this queue\./m],
    [{ phase: 'no-head', toldAt: 'T' }, /no node makes offers: the last told at T\./],
    [{ phase: 'before' }, /^offers +none yet: the window/m],
    [
      { phase: 'before', stopped: true, allowed: 5 },
      /^offers +none yet: .*\. They are stopped; 5 more offers may/m,
    ],
    [
      { freeUnits: 1, waitsForUnits: { number: 1_200, quantity: 3 } },
      /^offers +place 1,200 is next and wants 3 units; 1 is free, and it waits for more \(fit wait\)$/m,
    ],
    [{ perMinute: 60 }, /^pace +at most 60 offers a minute$/m],
    [{ order: 'draw' }, /^commitment +c0ffee$/m],
    [{ draw: { commitment: 'c', drawnAt: 'T', entries: 3 } }, /^drawn +T, 3 places$/m],
  ])('%o', (part, line) => expect(queueSheet({ ...QUEUE, ...part })).toMatch(line));
});

const placeTable = (places: readonly PlaceStatus[]) => new Table(placeColumns(places), Infinity).page(places);

test('places in a table: ahead only where it is known', () => {
  const place = { number: 7, buyerId: 'ann', quantity: 2, state: 'waiting', givenAt: 'G' } as const;
  expect(placeTable([place])).not.toContain('ahead');
  const table = placeTable([
    { ...place, ahead: 5 },
    { ...place, number: 3, state: 'left', reason: 'absent', endedAt: 'E' },
    { ...place, number: 2, state: 'offered', offeredUntil: 'U', orderId: '17' },
  ]);
  expect(table).toMatch(/^ *7 +ann +2 +waiting +5 +G/m);
  expect(table).toMatch(/^ *3 +ann +2 +left \(absent\) +G +E/m);
  expect(placeTable([{ ...place, state: 'left', reason: 'asked' }])).toContain('left (asked)');
  const back = placeTable([{ ...place, state: 'left', reason: 'asked', orderId: '17' }]);
  expect(back).toContain('left (offer given back)');
  expect(table).toMatch(/^ *2 +ann +2 +offered +G +until U +17$/m);
});

describe('before a queue is turned off', () => {
  test('is said how many lose their turn', () => {
    const told = toldOfTurningOff(QUEUE).join('\n');
    expect(told).toContain('760 places wait in order. From now on the first to buy gets the units.');
    expect(told).toContain('40 offers that buyers have can still be accepted');
    const counts = { ...QUEUE.counts!, waiting: 1, offered: 0 };
    expect(toldOfTurningOff({ ...QUEUE, counts }).join('\n')).toMatch(/^1 place waits.*\nThere is no offer/);
    expect(toldOfTurningOff({ ...QUEUE, counts: undefined })[0]).toContain('Up to 800 places wait');
  });
});

describe('after a change of a queue', () => {
  const sale = (part: Partial<SaleStatus>) =>
    ({
      ...{ id: 'tickets', state: 'open', startsAt: '2020-01-01T00:00:00Z', committedOrders: 3 },
      ...part,
    }) as SaleStatus;

  test('that is on now, the operator is told what buyers are answered', () => {
    const on = remarks(sale({}), sale({ queue: 'fifo' })).join('\n');
    expect(on).toContain('a purchase without an offer is refused (offer_required)');
    expect(on).toContain('3 earlier orders stay as they are.');
    expect(on).toContain(`To see it: ${invokedAs()} queue show `);
    const one = remarks(sale({ committedOrders: 1 }), sale({ committedOrders: 1, queue: 'fifo' }));
    expect(one).toContain('1 earlier order stays as it is.');
    const before = remarks(sale({ startsAt: '2999-01-01' }), sale({ startsAt: '2999-01-01', queue: 'draw' }));
    expect(before.join('\n')).toMatch(
      /buyers can ask for places now\.\nPlaces .* before 2999-01-01 are shuffled/,
    );
  });

  test('that waits for more units, that units may lie free meanwhile', () => {
    const line = 'Units may lie free while the next place waits for more of them';
    const waits = sale({ queue: 'fifo', fit: 'wait', perBuyerLimit: 4 });
    expect(remarks(sale({ queue: 'fifo', fit: 'less' }), waits)[0]).toContain(line);
    expect(remarks(sale({}), waits).join()).toContain(line);
    expect(remarks(waits, { ...waits, offerSeconds: 9 })).toEqual([]);
    expect(remarks(sale({}), { ...waits, perBuyerLimit: 1 }).join()).not.toContain(line);
    expect(remarks(waits, sale({})).join()).not.toContain(line);
  });

  test('that is drawn now, that the commitment is to be published', () => {
    const drawn = sale({ startsAt: '2999-01-01', queue: 'draw' });
    const line =
      'Publish the commitment now, before buyers take places: with it, anybody can check the draw.';
    expect(remarks(sale({ queue: 'fifo' }), drawn, 'c0ffee')).toContain(line);
    expect(remarks(sale({}), drawn, 'c0ffee')).toContain(line);
    expect(remarks(sale({}), drawn).join()).toContain(`${invokedAs()} queue show tickets`);
    expect(remarks(drawn, { ...drawn, offerSeconds: 9 })).toEqual([]);
  });

  test('that is off now, how it is turned on', () =>
    expect(remarks(sale({ queue: 'fifo' }), sale({})).join()).toContain('buyers buy directly'));

  test('whose order has changed, the new one; otherwise nothing', () => {
    expect(remarks(sale({ queue: 'draw' }), sale({ queue: 'fifo' }))).toEqual([
      'Places are served in the order in which they are given.',
      'There will be no draw, although the buyers were told of one.',
    ]);
    const [before, after] = [sale({ startsAt: '2999-01-01', queue: 'draw' }), { queue: 'fifo' } as const];
    expect(remarks(before, { ...before, ...after }).at(-1)).toBe(
      'There will be no draw, although the buyers were told of one. Until 2999-01-01, --queue draw brings it back with the same commitment.',
    );
    expect(remarks(sale({ queue: 'fifo' }), sale({ queue: 'fifo', offerSeconds: 9 }))).toEqual([]);
  });
});
