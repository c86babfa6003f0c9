/** Others' words on a terminal: titles, reasons, names and messages show what is in them, and do nothing. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { orderSheet, REFUND_COLUMNS } from '../../../../src/cli/order/show-order.ts';
import { LEDGER_COLUMNS } from '../../../../src/cli/sale/ledger.ts';
import { SALE_COLUMNS, saleSheet } from '../../../../src/cli/sale/show-sale.ts';
import { reportText } from '../../../../src/cli/terminal/identity-text.ts';
import { note, print, printJson, visible } from '../../../../src/cli/terminal/output.ts';
import { Table } from '../../../../src/cli/terminal/table.ts';
import { parseChange } from '../../../../src/engine/sale/sale-change.ts';
import { parseSale, saleToJson } from '../../../../src/engine/sale/sale-json.ts';
import type { Order } from '../../../../src/operations/order-operations.ts';
import type { LedgerEntry, SaleStatus, VerifyReport } from '../../../../src/operations/sale-operations.ts';

/** Clears the screen, forges a row, sets the window's title, ends the string by C1, turns the line around, deletes. */
const EVIL = 'a\x1b[2J\r\nforged   open\t\x1b]0;owned\x07\x9b31m\u202egpj.exe\u2066\u2028\x7f';
const SHOWN =
  'a\\u001b[2J\\r\\nforged   open\\t\\u001b]0;owned\\u0007\\u009b31m\\u202egpj.exe\\u2066\\u2028\\u007f';
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through.
const OBEYED = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

const sale: SaleStatus = {
  ...saleToJson(parseSale({ id: 'tickets', stock: 100, startsAt: '2020-11-27T20:00:00Z' })),
  title: EVIL,
  shopId: EVIL,
  metadata: { hall: EVIL },
  state: 'open',
  remaining: 0,
  soldOut: false,
  generation: 1,
  movedUnits: 0,
  committedOrders: 0,
  committedUnits: 0,
};

const entry: LedgerEntry = {
  ...{ id: '1', at: '2026-11-20T12:30:00.000Z', units: 0, action: 'pause', applied: true },
  ...{ actor: EVIL, reason: EVIL, detail: { from: EVIL } },
};

const order = {
  ...{ orderId: '1', saleId: EVIL, buyerId: EVIL, quantity: 1, status: 'paid', payType: EVIL },
  ...{ committedAt: EVIL, refundDue: false },
} as unknown as Order;

const report = {
  ...{ saleId: EVIL, ok: false, committedOrders: 0, distinctBuyers: 0, rejectedOrders: 0, lostOrders: 0 },
  ...{ identities: [], findings: [], differences: [{ cause: 'foreign_redis', isFault: true, what: EVIL }] },
} as unknown as VerifyReport;

afterEach(() => vi.restoreAllMocks());

function written(stream: NodeJS.WriteStream, write: () => void): string {
  const pieces: string[] = [];
  vi.spyOn(stream, 'write').mockImplementation((piece) => {
    pieces.push(String(piece));
    return true;
  });
  write();
  vi.restoreAllMocks();
  return pieces.join('');
}

test('a line of others’ words is one line, with all that a terminal would obey', () => {
  expect(visible(EVIL)).toBe(SHOWN);
  expect(visible('Konzert für Zoë 🎟️, שלום, 한국')).toBe('Konzert für Zoë 🎟️, שלום, 한국');
});

describe.each<[string, () => string, number]>([
  ['sale list', () => new Table(SALE_COLUMNS, Infinity).page([sale]), 2],
  ['sale show', () => saleSheet(sale), 12],
  ['sale ledger', () => new Table(LEDGER_COLUMNS, Infinity).page([entry]), 2],
  ['order show', () => orderSheet(order), 7],
  ['order refunds-due', () => new Table(REFUND_COLUMNS, Infinity).page([order]), 2],
  ['verify', () => reportText(report), 2],
])('%s', (_, text, lineCount) => {
  test('has no line but its own, and shows what it was given', () => {
    const out = written(process.stdout, () => print(text()));
    expect(out.trimEnd().split('\n')).toHaveLength(lineCount);
    expect(out).not.toMatch(OBEYED);
    expect(out).toContain(SHOWN);
  });
});

test('no text that is printed contains control sequences for the terminal', () => {
  expect(written(process.stdout, () => print(`one\n${EVIL}`))).not.toMatch(OBEYED);
  expect(written(process.stderr, () => note(`one\n${EVIL}`))).not.toMatch(OBEYED);
});

test('--json has the very words', () => {
  const out = written(process.stdout, () => printJson({ title: EVIL }));
  expect(out.trimEnd()).not.toMatch(OBEYED);
  expect(JSON.parse(out)).toEqual({ title: EVIL });
});

describe('an update is one line', () => {
  test.each(['a\nb', 'a\tb', 'a\x1b[2Jb', 'a\x9bb', 'a\x7fb', 'a\u2028b', 'a\0b', '\ud800'])('%j', (text) => {
    const problem = /one line of well-formed text without control characters/;
    expect(() => parseSale({ id: 'tickets', stock: 1, title: text })).toThrow(problem);
    expect(() => parseSale({ id: 'tickets', stock: 1, shopId: text })).toThrow(problem);
    expect(() => parseChange({ action: 'pause', reason: text })).toThrow(problem);
  });

  test.each(['Zoë 🎟️', '\u200fשלום', 'a\u200db'])('%s is', (text) => {
    expect(parseSale({ id: 'tickets', stock: 1, title: text }).title).toBe(text);
    expect(parseChange({ action: 'pause', reason: text }).reason).toBe(text);
  });
});
