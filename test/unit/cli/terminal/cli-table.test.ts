/** Lists as tables: whole where there is room, and what is needed most in a narrow terminal. */
import { describe, expect, test } from 'vitest';
import { orderColumns, REFUND_COLUMNS } from '../../../../src/cli/order/show-order.ts';
import { placeColumns } from '../../../../src/cli/queue/queue-text.ts';
import { LEDGER_COLUMNS } from '../../../../src/cli/sale/ledger.ts';
import { SALE_COLUMNS } from '../../../../src/cli/sale/show-sale.ts';
import { type Column, Table } from '../../../../src/cli/terminal/table.ts';
import { parseSale, saleToJson } from '../../../../src/engine/sale/sale-json.ts';
import type { Order } from '../../../../src/operations/order-operations.ts';
import type { LedgerEntry, SaleStatus } from '../../../../src/operations/sale-operations.ts';

const AT = '2026-11-22T15:24:56.389Z';

interface Row {
  readonly id: string;
  readonly at?: string;
  readonly count?: number;
  readonly title?: string;
  readonly note?: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { head: 'id', of: ({ id }) => id },
  { head: 'count', of: ({ count }) => count, align: 'right', spare: 2 },
  { head: 'at', of: ({ at = AT }) => at, spare: 1 },
  { head: 'note', of: ({ note }) => note, spare: 3 },
  { head: 'title', of: ({ title = '' }) => title, isText: true },
];

const ROWS: readonly Row[] = [
  { id: 'first', count: 12, note: 'so', title: 'A title of several words' },
  { id: 'x', note: 'so' },
];

function fitted(room: number, rows = ROWS): { lines: string[]; remark: string | undefined } {
  const table = new Table(COLUMNS, room);
  return { lines: table.page(rows).split('\n'), remark: table.remark };
}

describe('a table', () => {
  test('is whole where it has room', () => {
    const whole = [
      'id     count  at                        note  title',
      `first     12  ${AT}  so    A title of several words`,
      `x          -  ${AT}  so`,
    ];
    expect(fitted(Infinity)).toEqual({ lines: whole, remark: undefined });
    expect(fitted(70)).toEqual({ lines: whole, remark: undefined });
  });

  test('first shows less of its times, and says nothing of that', () => {
    expect(fitted(69).lines[1]).toBe('first     12  2026-11-22 15:24:56Z  so    A title of several words');
    expect(fitted(65).lines[1]).toBe('first     12  2026-11-22 15:24Z  so    A title of several words');
    expect(fitted(63).remark).toBeUndefined();
  });

  test('then cuts its texts, and then leaves columns out, those that are needed least first', () => {
    expect(fitted(62)).toEqual({
      lines: [
        'id     count  at                 note  title',
        'first     12  2026-11-22 15:24Z  so    A title of several wor…',
        'x          -  2026-11-22 15:24Z  so',
      ],
      remark: 'The terminal is too narrow for all texts.\nTo see the whole list, add: | less -S',
    });
    expect(fitted(49).lines[1]).toBe('first     12  2026-11-22 15:24Z  so    A title o…');
    expect(fitted(48)).toEqual({
      lines: [
        'id     count  note  title',
        'first     12  so    A title of several words',
        'x          -  so',
      ],
      remark: 'The terminal is too narrow for at.\nTo see the whole list, add: | less -S',
    });
    expect(fitted(25)).toMatchObject({
      lines: ['id     note  title', 'first  so    A title of …', 'x      so'],
      remark: expect.stringContaining('too narrow for all texts, count, at.\n'),
    });
  });

  test('leaves out a column without any entry before all others', () => {
    const rows = ROWS.map(({ note: _, ...row }) => row);
    expect(fitted(46, rows).lines[0]).toBe('id     count  at                 title');
    expect(fitted(46, rows).remark).toContain('too narrow for all texts, note.\n');
  });

  test('shows what is needed even if its lines wrap', () => {
    const id = 'i'.repeat(90);
    expect(fitted(80, [{ id, title: 'so' }]).lines).toEqual([`${'id'.padEnd(92)}title`, `${id}  so`]);
  });

  test('has its titles once, and its columns in one place: a wider cell pushes its own row only', () => {
    const table = new Table(COLUMNS, 62);
    const pages = [
      table.page(ROWS),
      table.page([{ id: 'y', count: 1_000, note: 'no', title: 'short' }]),
      table.page([{ id: 'a longer id', title: 'B' }]),
      table.page([{ id: 'z', title: 'C' }]),
    ];
    expect(pages.slice(1)).toEqual([
      'y       1000  2026-11-22 15:24Z  no    short',
      'a longer id      -  2026-11-22 15:24Z  -     B',
      'z          -  2026-11-22 15:24Z  -     C',
    ]);
  });
});

describe('a long id', () => {
  const IDS: readonly Column<Row>[] = [{ ...COLUMNS[0]!, isId: true }, ...COLUMNS.slice(1)];
  const id = `spring-2027-${'x'.repeat(40)}-balcony`;
  const table = (room: number, ...rows: Row[]) => new Table(IDS, room).page(rows);

  test('is whole where it has room, as in a pipe', () =>
    expect(table(Infinity, { id, note: 'so', title: 'A' })).toContain(id));

  test('loses its middle before a column with entries goes', () => {
    const narrow = new Table(IDS, 70);
    const [head, row] = narrow.page([{ id, count: 3, note: 'so', title: 'A' }]).split('\n');
    expect(head).toMatch(/^id +count +at +note +title$/);
    expect(row).toMatch(/^spring-2027-x+…x+-balcony {6}3 {2}2026-11-22 15:24Z {2}so {4}A$/);
    expect(row!.length).toBeLessThanOrEqual(70);
    expect(narrow.remark).toBe(
      'The terminal is too narrow for whole ids.\nTo see the whole list, add: | less -S',
    );
  });

  test('is whole rather than beside an empty column', () =>
    expect(table(100, { id, count: 3, title: 'A' })).toContain(id));

  test('such as a UUID is never cut', () => {
    const uuid = '7d3b9a52-51ce-4a35-9f8e-4c2a0d6b8f11';
    expect(table(60, { id: uuid, count: 3, note: 'so', title: 'A' })).toContain(uuid);
  });

  test('of a later page is cut too, if its row has no room', () => {
    const narrow = new Table(IDS, 70);
    narrow.page(ROWS);
    const row = narrow.page([{ id, count: 3, note: 'so', title: 'A' }]);
    expect(row.length).toBeLessThanOrEqual(70);
    expect(row).toMatch(/^spring-.*….*-balcony /);
    expect(narrow.remark).toContain('too narrow for whole ids.');
  });
});

describe('on 80 columns', () => {
  const sale: SaleStatus = {
    ...saleToJson(
      parseSale({
        id: 'spring-2027',
        stock: 2_000,
        title: 'Spring 2027',
        startsAt: AT,
        endsAt: '2027-01-01T00:00:00Z',
      }),
    ),
    ...{ state: 'open', remaining: 0, soldOut: true, generation: 1, movedUnits: 0 },
    ...{ committedOrders: 2_000, committedUnits: 2_000 },
  };
  const order = {
    ...{ orderId: '662996473760193638', saleId: 'spring-2027', buyerId: 'buyer-4711', quantity: 2 },
    ...{ status: 'cancelled', payType: 'transfer', committedAt: AT, expiredAt: AT, refundDue: true },
  } as unknown as Order;
  const ofUuid = { ...order, buyerId: '7d3b9a52-51ce-4a35-9f8e-4c2a0d6b8f11' };
  const entry = (part: Partial<LedgerEntry>) =>
    ({
      id: '1',
      at: AT,
      action: 'pause',
      units: 0,
      actor: 'ann',
      reason: '',
      applied: true,
      detail: { from: 'open' },
      ...part,
    }) as LedgerEntry;
  const creation = entry({
    action: 'create',
    detail: { stock: 1_000, segments: 8, perBuyerLimit: 2, startsAt: AT, requireToken: false },
  });
  const place = {
    ...({ number: 1_200, buyerId: 'buyer-4711', quantity: 1, state: 'offered' } as const),
    ...{ givenAt: AT, ahead: 1_000, offeredUntil: AT, orderId: '662996473760193638' },
  } as const;

  test.each<[string, string, string[]]>([
    ['sale list', new Table(SALE_COLUMNS, 80).page([sale]), ['spring-2027', 'sold out', '2,000', AT]],
    [
      'sale ledger',
      new Table(LEDGER_COLUMNS, 80).page([creation, entry({ reason: 'sound check' })]),
      ['pause', 'was open', 'sound check'],
    ],
    [
      'order list',
      new Table(orderColumns(false), 80).page([order]),
      ['buyer-4711', 'cancelled', '2026-11-22 15:24'],
    ],
    [
      'order list of long ids',
      new Table(orderColumns(false), 80).page([ofUuid]),
      [ofUuid.buyerId, 'cancelled'],
    ],
    [
      'sale list of the longest ids',
      new Table(SALE_COLUMNS, 80).page([{ ...sale, id: `spring-${'x'.repeat(57)}` }]),
      ['spring-xx', '…', 'sold out', '2,000'],
    ],
    [
      'order list of the longest ids',
      new Table(orderColumns(false), 80).page([{ ...order, buyerId: `tenant-${'x'.repeat(70)}` }]),
      ['tenant-xx', '…', 'cancelled', '2026-11-22 15:24'],
    ],
    [
      'order refunds-due of the longest ids',
      new Table(REFUND_COLUMNS, 80).page([{ ...order, saleId: 's'.repeat(64), buyerId: 'b'.repeat(77) }]),
      ['sss…sss', 'bbb…bbb', 'transfer'],
    ],
    ['order list --buyer', new Table(orderColumns(true), 80).page([ofUuid]), ['transfer', AT]],
    ['order refunds-due', new Table(REFUND_COLUMNS, 80).page([order]), ['buyer-4711', 'transfer']],
    [
      'queue places',
      new Table(placeColumns([place]), 80).page([place]),
      ['1,200', 'buyer-4711', `until ${AT}`],
    ],
  ])('%s fits, with what is needed most', (_, text, needed) => {
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    for (const word of needed) expect(text).toContain(word);
  });
});
