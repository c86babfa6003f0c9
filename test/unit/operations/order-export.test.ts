/** The text of an export: quotes, formulas, and its first and last lines. */
import { expect, test, vi } from 'vitest';
import type { Order } from '../../../src/operations/order.ts';
import { csvCell, exportOrders } from '../../../src/operations/order-export.ts';
import type { OrderQuery } from '../../../src/operations/order-list.ts';

test.each([
  ['plain', 'plain'],
  ['a,b', '"a,b"'],
  ['say "so"', '"say ""so"""'],
  ['two\nlines', '"two\nlines"'],
  ['=1+1', "'=1+1"],
  ['+49 30 1', "'+49 30 1"],
  ['-1', "'-1"],
  ['@sum', "'@sum"],
  ['=a,"b"', '"\'=a,""b"""'],
  ['\tx', "'\tx"],
  ['\rx', '"\'\rx"'],
  ['\nx', '"\'\nx"'],
  [' =1', "' =1"],
  ['＝1', "'＝1"],
  ['a;b;', 'a;b;'],
  ['a;=1+1;b', "a;'=1+1;b"],
  ['=1;-2;@3', "'=1;'-2;'@3"],
  ['a; "=1&"";b', '"a;\' ""=1&"""";b"'],
  ['a;b=1', 'a;b=1'],
  [undefined, ''],
  [true, 'true'],
  [-1, '-1'],
  [{ a: '=1;b' }, '"{""a"":""=1;b""}"'],
  [{ a: 'x;=1;-2' }, '"{""a"":""x\\u003b=1\\u003b-2""}"'],
])('the cell of %j', (value, cell) => {
  expect(csvCell(value)).toBe(cell);
});

test('metadata in a cell is the same JSON, whatever a spreadsheet would do with its text', () => {
  const metadata = { ';=1': ['a;"=1&"";b', '; @x', ';\t'], n: -1 };
  const cell = csvCell(metadata);
  expect(JSON.parse(cell.slice(1, -1).replaceAll('""', '"'))).toEqual(metadata);
  expect(cell).not.toMatch(/;[\s"]*[=+@-]/);
});

async function exported(format: 'csv' | 'ndjson', after?: string) {
  const asked: OrderQuery[] = [];
  const list = async (query: OrderQuery) => {
    asked.push(query);
    const n = Number(query.after ?? 0) + 1;
    // The second page has no order that matches the filter.
    const orders = n === 2 ? [] : [{ orderId: String(n), saleId: 's', buyerId: 'b', quantity: 1 } as Order];
    return { orders, ...(n < 3 && { next: String(n) }) };
  };
  let [text, last]: [string, string | undefined] = ['', undefined];
  for await (const piece of exportOrders(list, { after, status: ['paid'] }, format)) {
    text += piece.text;
    last = piece.last;
  }
  return { text, last, asked };
}

test('NDJSON has all pages in order, and a last line that marks the end', async () => {
  const { text, last, asked } = await exported('ndjson');
  expect(text.split('\n').map((line) => line && JSON.parse(line))).toEqual([
    { orderId: '1', saleId: 's', buyerId: 'b', quantity: 1 },
    { orderId: '3', saleId: 's', buyerId: 'b', quantity: 1 },
    { end: true, orders: 2 },
    '',
  ]);
  expect(last).toBe('3');
  const page = { status: ['paid'], order: 'oldest', limit: 1_000 };
  expect(asked).toEqual([undefined, '1', '2'].map((from) => ({ ...page, after: from })));
});

test('CSV begins with the names, unless it continues another', async () => {
  expect((await exported('csv')).text).toMatch(
    /^orderId,.*\r\n1,s,b,1,,,,,,,,,,,,,\r\n3,s,b,1,,,,,,,,,,,,,\r\n$/,
  );
  expect((await exported('csv', '2')).text).toBe('3,s,b,1,,,,,,,,,,,,,\r\n');
});

test.each([
  ['csv', ''],
  ['ndjson', '\n'],
] as const)(
  '%s without a matching order gives a piece now and then, in which a reader that has gone is noticed',
  async (format, silent) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const list = async (query: OrderQuery) => {
        vi.advanceTimersByTime(4_000);
        const n = Number(query.after ?? 0) + 1;
        return { orders: [], ...(n < 9 && { next: String(n) }) };
      };
      const texts: string[] = [];
      for await (const { text } of exportOrders(list, {}, format)) texts.push(text);
      const [first, last] = format === 'csv' ? [1, undefined] : [0, -1];
      const between = texts.slice(first, last);
      expect(between.length).toBeGreaterThan(2);
      expect(new Set(between)).toEqual(new Set([silent]));
    } finally {
      vi.useRealTimers();
    }
  },
);
