import { describe, expect, test } from 'vitest';
import { ERASURE_COLUMNS, erasureRows } from '../../../src/cli/buyer.ts';
import { expectDone } from '../../../src/cli/order/show-order.ts';
import { recoveryText } from '../../../src/cli/recover.ts';
import { saleInput } from '../../../src/cli/sale/create.ts';
import { LEDGER_COLUMNS } from '../../../src/cli/sale/ledger.ts';
import { SALE_COLUMNS, saleSheet } from '../../../src/cli/sale/show-sale.ts';
import { identityText, reportText } from '../../../src/cli/terminal/identity-text.ts';
import { invokedAs, shellWord } from '../../../src/cli/terminal/invoked-as.ts';
import { columns, plural } from '../../../src/cli/terminal/output.ts';
import { createCommand } from '../../../src/cli/terminal/ready.ts';
import { Table } from '../../../src/cli/terminal/table.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import type { OrderChange, OrderStatus } from '../../../src/operations/order-operations.ts';
import type { LedgerEntry, SaleStatus } from '../../../src/operations/sale-operations.ts';

describe('sale create', () => {
  test('the flags of a queue become fields of the sale', () => {
    const given = { stock: '5', queue: 'fifo', offerSeconds: '30', presenceSeconds: '0', fit: 'pass' };
    expect(saleInput('tickets', given)).toEqual({
      ...{ id: 'tickets', stock: 5, queue: 'fifo', offerSeconds: 30, presenceSeconds: 0, fit: 'pass' },
    });
    expect(() => saleInput('tickets', { stock: '5', queue: 'lottery', maxWaiting: '0' })).toThrow(
      /--queue must be one of off, fifo, draw; --max-waiting must be at least 1/,
    );
    expect(() => saleInput('tickets', { stock: '5', offerSeconds: '30' })).toThrow(/--offer-seconds needs/);
  });

  test('flags become the JSON of a sale', () => {
    const given = {
      stock: '100',
      segments: '16',
      startsAt: '2026-11-27T20:00:00+01:00',
      priceMinor: '1999',
      currency: 'EUR',
      requireToken: true,
      metadata: '{"hall":"A"}',
      opsUrl: 'http://elsewhere',
      json: true,
    };
    expect(saleInput('tickets', given)).toEqual({
      id: 'tickets',
      stock: 100,
      segments: 16,
      startsAt: '2026-11-27T20:00:00+01:00',
      priceMinor: 1999,
      currency: 'EUR',
      requireToken: true,
      metadata: { hall: 'A' },
    });
  });

  test('a number that is not quite whole is refused, and not rounded', () => {
    for (const stock of ['100.00000000000000001', '99.99999999999999999'])
      expect(() => saleInput('tickets', { stock })).toThrow(/--stock must be a whole number/);
    // 49 euros, and not 49 cents.
    expect(() => saleInput('tickets', { stock: '100', priceMinor: '49.00', currency: 'EUR' })).toThrow(
      /--price-minor must be a whole number/,
    );
    expect(() => saleInput('tickets', { stock: '100', priceMinor: '4900' })).toThrow(
      /--price-minor needs a --currency, such as EUR$/,
    );
  });

  test('all faults at once, by the names of the flags', () => {
    const faulty = { stock: '1.5', perBuyerLimit: 'two', endsAt: 'tomorrow', metadata: '{hall' };
    expect(() => saleInput('-', faulty)).toThrow(
      /<id> must be .*; --stock .*; --ends-at .*; --per-buyer-limit .*; --metadata must be an object/,
    );
    expect(() => saleInput('tickets', {})).toThrow(/--stock is required: the units for sale, from 1 to \d+$/);
    expect(() => parseSale([])).toThrow(/: the sale must be a JSON object$/);
    expect(() => parseSale({})).toThrow(/: id is required: 1 to .*; stock is required: the units for sale,/);
    expect(() => parseSale({ id: 5, stock: 1 })).toThrow(/: id must be a string$/);
    const over = { stock: '1', endsAt: '2020-01-01T00:00:00Z' };
    expect(() => saleInput('tickets', over)).toThrow(/--ends-at must be after --starts-at$/);
  });
});

const saleTable = (sales: readonly SaleStatus[]) => new Table(SALE_COLUMNS, Infinity).page(sales);
const ledgerTable = (entries: readonly LedgerEntry[]) => new Table(LEDGER_COLUMNS, Infinity).page(entries);

const sale: SaleStatus = {
  ...saleToJson(
    parseSale({ id: 'tickets', stock: 100, title: 'A concert', startsAt: '2020-11-27T20:00:00Z' }),
  ),
  state: 'open',
  remaining: 0,
  soldOut: true,
  generation: 1,
  movedUnits: 0,
  committedOrders: 100,
  committedUnits: 100,
};

test('a sale in words', () => {
  expect(saleSheet(sale)).toMatch(/^state {2,}open, sold out$/m);
  expect(saleSheet(sale)).toMatch(/^ends {2,}open end$/m);
  expect(saleSheet(sale)).not.toMatch(/price|metadata|undefined/);
  expect(saleTable([{ ...sale, remaining: undefined, soldOut: false, state: 'paused' }])).toMatch(
    /^tickets +paused +100 +not loaded/m,
  );
});

test('a sale whose last units are in offers is not sold out', () => {
  const offered = { ...sale, behindHead: 1_200, offeredUnits: 60 };
  expect(saleTable([offered])).toMatch(/^tickets +open, in offers +100 /m);
  expect(saleSheet(offered)).toMatch(
    /^committed +100 units in 100 orders\nin offers +60 of these units\nwaiting +1,200 at most$/m,
  );
  expect(saleSheet({ ...offered, offeredUnits: 0 })).toMatch(/^state +open, sold out$/m);
  for (const one of [sale, { ...sale, behindHead: 0, offeredUnits: 0 }])
    expect(saleSheet(one)).not.toMatch(/^(in offers|waiting)/m);
});

test('a closed sale has no end that is still to come', () => {
  const closed: SaleStatus = { ...sale, state: 'closed' };
  expect(saleSheet(closed)).not.toMatch(/^ends /m);
  expect(saleTable([closed])).not.toContain('open end');
  expect(saleSheet({ ...closed, endsAt: '2100-01-01T00:00:00Z' })).not.toMatch(/^ends /m);
  expect(saleTable([{ ...closed, endsAt: '2100-01-01T00:00:00Z' }])).not.toContain('2100');
  expect(saleSheet({ ...closed, endsAt: '2021-01-01T00:00:00Z' })).toMatch(/^ends +2021-01-01T00:00:00Z$/m);
});

test('the sheet has a line for the purchase token only if one is required', () => {
  expect(saleSheet({ ...sale, requireToken: true })).toMatch(/^purchase token +required$/m);
  expect(saleSheet(sale)).not.toContain('purchase token');
});

test('a currency without an amount is shown', () => {
  expect(saleSheet({ ...sale, currency: 'EUR' })).toMatch(/^currency +EUR$/m);
  expect(saleSheet({ ...sale, currency: 'EUR', faceValueMinor: 900 })).not.toMatch(/^currency/m);
});

test('the sheet of a sale with a queue shows how it works', () => {
  const queue = {
    queue: 'draw',
    offerSeconds: 90,
    presenceSeconds: 0,
    maxWaiting: 5_000,
    fit: 'less',
  } as const;
  const sheet = saleSheet({ ...sale, ...queue });
  expect(sheet).toMatch(/^queue +drawn when the window opens$/m);
  expect(sheet).toMatch(/^offers stand +90 s$/m);
  expect(sheet).toMatch(/^absent after +never$/m);
  expect(sheet).toMatch(/^places at most +5,000$/m);
  expect(sheet).toMatch(/^too few units +the next place gets an offer of fewer$/m);
  expect(saleSheet(sale)).not.toContain('queue');
});

test('units that operators added are shown beside the initial stock', () => {
  expect(saleTable([{ ...sale, movedUnits: 20 }])).toMatch(/^tickets +open, sold out +100 \+ 20 /m);
  expect(saleTable([{ ...sale, movedUnits: -1 }])).toMatch(/ 100 - 1 /);
  expect(saleSheet({ ...sale, movedUnits: 20 })).toMatch(/^added since +20 units$/m);
  expect(saleSheet({ ...sale, movedUnits: -1 })).toMatch(/^withdrawn since +1 unit$/m);
});

test.each<[LedgerEntry['action'], number, Record<string, unknown>, string]>([
  [
    'create',
    0,
    { stock: 1_000, segments: 8, perBuyerLimit: 2, requireToken: false, startsAt: 'A' },
    '1,000 units in 8 segments; 2 per buyer; starts A; ends never',
  ],
  [
    'create',
    0,
    {
      stock: 1,
      segments: 1,
      perBuyerLimit: 1,
      requireToken: true,
      startsAt: 'A',
      endsAt: 'B',
      payWithinSeconds: 9,
    },
    '1 unit in 1 segment; 1 per buyer; starts A; ends B; purchase token required; pay within 9 s',
  ],
  ['resize', 0, { from: 8, to: 3 }, 'from 8 to 3 segments'],
  ['window', 0, { from: ['A', null], to: ['A', 'B'] }, 'ends B, was never'],
  ['window', 0, { from: ['A', 'B'], to: ['C', null] }, 'starts C, was A; ends never, was B'],
  ['pause', 0, { from: 'open' }, 'was open'],
  ['require-token', 0, { from: false, to: true }, 'required now'],
  ['require-token', 0, { from: true, to: false }, 'no longer required'],
  [
    'queue',
    0,
    { from: { queue: 'off' }, to: { queue: 'fifo', offerSeconds: 120 } },
    'queue fifo, was off; offerSeconds 120',
  ],
  ['queue', 0, { from: { queue: 'draw', fit: 'wait' }, to: { queue: 'off' } }, 'queue off, was draw'],
  ['queue', 0, { from: { perMinute: null }, to: { perMinute: 60 } }, 'perMinute 60, was none'],
  ['top-up', 5, {}, ''],
  ['archive', 0, {}, ''],
  ['erase', 0, { pseudonym: 'erased-07', orders: 2 }, '2 orders of one buyer, now erased-07'],
  ['withdraw', -3, { wanted: 3 }, ''],
  ['withdraw', 0, { wanted: 3 }, 'wanted 3'],
  ['withdraw', 0, { wanted: 3, void: true }, 'had no effect, wanted 3'],
])('a %s in the ledger, in words', (action, units, detail, text) => {
  const entry = { id: '1', at: 'now', action, units, detail, actor: 'ann', reason: 'so', applied: true };
  const [, row] = ledgerTable([entry]).split('\n');
  expect(row!.replace(/^now +\S+ +([+-]\d+ +)?ann +applied */, '')).toBe(`${text}${text && '  '}so`);
});

test('a creation without an entry in the ledger has no author', () => {
  const detail = { stock: 1, segments: 1, perBuyerLimit: 1, requireToken: false, startsAt: 'A' };
  const entry = { id: '0', at: 'now', action: 'create', units: 0, detail, applied: true } as const;
  expect(ledgerTable([{ ...entry, actor: undefined, reason: '' }])).toMatch(
    /^now +create +not known +applied/m,
  );
});

test.each<[OrderChange, OrderStatus, RegExp]>([
  [
    { kind: 'pay', payType: 'card' },
    'paid',
    /^order 7 is paid already, by another means than card; if it was paid twice/,
  ],
  [{ kind: 'pay', payType: 'card' }, 'cancelled', /^order 7 is cancelled; only an unpaid order can be paid$/],
  [{ kind: 'cancel' }, 'paid', /^order 7 is paid; only an unpaid order .* goes back by `order refund`$/],
  [{ kind: 'refund' }, 'expired', /^order 7 is expired; only an order that is paid, or was paid too late/],
])('%o of an order that is %s: what would be allowed', (change, orderStatus, text) => {
  expect(() => expectDone({ code: 'wrong_status', orderStatus }, '7', change)).toThrow(text);
});

test('an order that may still reach Postgres is not called unknown', () => {
  expect(() => expectDone({ code: 'not_arrived' }, '17')).toThrow(
    /^order 17 is not in Postgres yet, .* may still be in an order log/,
  );
  expect(() => expectDone({ code: 'unknown_order' }, '17')).toThrow('there is no order 17');
});

test('a single thing is named in the singular', () => {
  const one = { ...sale, stock: 1_000, segments: 1, committedOrders: 1, committedUnits: 1, priceMinor: 1 };
  expect(saleSheet(one)).toMatch(/^stock +1,000 in 1 segment$/m);
  expect(saleSheet(one)).toMatch(/^committed +1 unit in 1 order$/m);
  expect(saleSheet(one)).toMatch(/^price +1 minor unit$/m);
});

test('numbers for people have separators', () => {
  const large = { ...sale, perBuyerLimit: 1_000, payWithinSeconds: 3_600, generation: 1_234 };
  const sheet = saleSheet({
    ...large,
    ...{ queue: 'fifo', offerSeconds: 7_200, presenceSeconds: 1_800, maxWaiting: 5_000, fit: 'wait' },
  });
  for (const line of [
    /^limit per buyer +1,000$/m,
    /^pay within +3,600 s$/m,
    /^offers stand +7,200 s$/m,
    /^absent after +1,800 s$/m,
    /^generation +1,234$/m,
  ])
    expect(sheet).toMatch(line);
  const entry = { ...{ id: '1', at: 'now', units: 0, actor: 'ann', reason: '', applied: true } };
  const changes = [
    { ...entry, action: 'resize', detail: { from: 8, to: 1_024 } },
    { ...entry, action: 'withdraw', detail: { wanted: 5_000 } },
    { ...entry, action: 'edit', detail: { from: { priceMinor: 1_900 }, to: { priceMinor: 2_900 } } },
    { ...entry, action: 'queue', detail: { from: { perMinute: null }, to: { perMinute: 6_000 } } },
  ] as const;
  const ledger = ledgerTable(changes);
  for (const text of [
    'from 8 to 1,024 segments',
    'wanted 5,000',
    'priceMinor 2,900, was 1,900',
    'perMinute 6,000, was none',
  ])
    expect(ledger).toContain(text);
  const [left, right] = [100_000, 99_000].map((units) => [{ name: 'units', units }]);
  expect(identityText({ name: 'truth', left: left!, right: right!, difference: 1_000 })).toBe(
    '100,000 units ≠ 99,000 units   (off by 1,000)',
  );
  const done = { saleId: 'x', state: 'done', generation: 1_000, tookMs: 1, losses: [] } as const;
  expect(
    recoveryText({ ...done, loadedBuyers: 20_000, salvagedOrders: 3_000, rejectedOrders: 1_000 }),
  ).toContain(
    'generation 1,000 in 0.0 s. Buyers loaded: 20,000; orders saved from the logs: 3,000, of which Postgres rejected 1,000.',
  );
  const erasure = { saleId: 'x', orders: 2_000, pseudonym: 'erased-07' };
  const rows = erasureRows({ erased: [erasure], waiting: [] });
  expect(new Table(ERASURE_COLUMNS, Infinity).page(rows)).toContain(' 2,000 ');
});

test('the state of a sale includes other reasons why buyers can’t buy', () => {
  const far = { startsAt: '2100-01-01T00:00:00Z', soldOut: false };
  expect(saleSheet({ ...sale, ...far, state: 'paused' })).toMatch(/^state +paused, not started$/m);
  expect(saleSheet({ ...sale, endsAt: '2021-01-01T00:00:00Z' })).toMatch(/^state +open, ended$/m);
  expect(saleSheet({ ...sale, state: 'closed' })).toMatch(/^state +closed$/m);
});

test('an equation, term by term', () => {
  const left = [
    { name: 'initial', units: 100 },
    { name: 'movements', units: 5 },
  ];
  const right = [{ name: 'unsold', units: 104 }];
  expect(identityText({ name: 'truth', left, right, difference: 1 })).toBe(
    '100 initial + 5 movements ≠ 104 unsold   (off by 1)',
  );
  const counts = { rejectedOrders: 2, lostOrders: 1, committedOrders: 1, distinctBuyers: 1 };
  expect(
    reportText({
      ...{ saleId: 'x', ok: false, identities: [], findings: ['segment 3 is missing'], ...counts },
      differences: [
        { cause: 'lost_entries', units: 0, isFault: true, what: 'segment 3 is missing' },
        { cause: 'in_flight', units: 2, isFault: false, what: '2 units are taken' },
      ],
      repairs: [
        { cause: 'lost_entries', done: true, what: 'built generation 2' },
        { cause: 'foreign_postgres', done: false, what: 'left alone: stock is 3' },
      ],
    }),
  ).toBe(
    [
      'x: FAILED, 1 order of 1 buyer',
      '  found: segment 3 is missing (lost log entries)',
      '  under way: 2 units are taken (in flight)',
      '  repaired: built generation 2',
      '  left alone: stock is 3',
      '  2 orders rejected by the guard in Postgres',
      '  at least 1 order lost by Redis for good',
    ].join('\n'),
  );
});

test('columns are aligned, without trailing blanks', () => {
  const text = columns(
    [
      ['a', 1],
      ['bbb', undefined],
    ],
    { head: ['name', 'n'], align: ['left', 'right'] },
  );
  expect(text).toBe('name  n\na     1\nbbb   -');
  expect(plural(1, 'unit')).toBe('1 unit');
  expect(plural(20_000, 'request')).toBe('20,000 requests');
});

test('the command that finds a node says only what differs from the defaults', () => {
  const usual = { opsUrl: 'http://127.0.0.1:9090' };
  expect(createCommand(usual, loadConfig({}, {}), 'stockade')).toBe(
    'stockade sale create my-sale --stock 100',
  );
  const config = loadConfig({ DATA_DIR: '/srv/my shop' }, {});
  expect(createCommand({ opsUrl: 'http://127.0.0.1:4711' }, config, 'stockade')).toBe(
    "stockade sale create my-sale --stock 100 --ops-url http://127.0.0.1:4711 --data-dir '/srv/my shop'",
  );
  expect(shellWord("it's")).toBe("'it'\\''s'");
});

test('commands for others are written as this program was started', () => {
  const at = (script: string, env = {}, cwd = '/srv/shop') => invokedAs(script, env, cwd);
  expect(at('/usr/bin/stockade', { PATH: '/bin:/usr/bin' })).toBe('stockade');
  const npx = { PATH: '/srv/shop/node_modules/.bin', npm_command: 'exec' };
  expect(at('/srv/shop/node_modules/.bin/stockade', npx)).toBe('npx --no stockade');
  // Fetched by npx, and in no project.
  expect(at('/home/ann/.npm/_npx/5f3bd9e/node_modules/.bin/stockade', npx)).toBe(
    'npx @stockade-engine/stockade',
  );
  expect(at('/srv/shop/dist/cli/main.js', { PATH: '/usr/bin' })).toBe('node dist/cli/main.js');
  expect(at('/opt/my clone/dist/cli/main.js')).toBe("node '/opt/my clone/dist/cli/main.js'");
});

test('a sheet says how many buyers are still to be erased', () => {
  expect(saleSheet({ ...sale, waitingErasures: 1 })).toMatch(/^to be erased +1 buyer$/m);
  expect(saleSheet(sale)).not.toContain('erased');
});
