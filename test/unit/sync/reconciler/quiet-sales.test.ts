import { beforeEach, describe, expect, it } from 'vitest';
import type { ComparedSale } from '../../../../src/sales/sales-at-work.ts';
import { SaleLog } from '../../../../src/sync/apply/sale-log.ts';
import { QuietSales } from '../../../../src/sync/reconciler/quiet-sales.ts';

/** Longer than any sale needs to become quiet. */
const LONG_SCANS = 20;
const ROUND_SCANS = 4;

function aHead(id: string, change: Partial<ComparedSale> = {}): ComparedSale {
  return { id, generation: 1, state: 'open', rules: 'r1', isArchived: false, ...change };
}

function aLog(saleId: string): SaleLog {
  const cursor = { saleId, segment: 0, generation: 1, seq: 0, tail: '', orders: 0, units: 0 };
  return new SaleLog(saleId, [cursor]);
}

let logs: Map<string, SaleLog>;
let sales: ComparedSale[];
let quiet: QuietSales;

function begin(count: number): void {
  const ids = Array.from({ length: count }, (_, i) => `sale-${i}`);
  sales = ids.map((id) => aHead(id));
  logs = new Map(ids.map((id) => [id, aLog(id)]));
  quiet = new QuietSales();
}

/** A scan that finds everything as it was known. @returns the compared sales */
function scan(): string[] {
  const compared = quiet.choose(sales, ({ id }) => logs.get(id));
  for (const sale of compared) {
    const log = logs.get(sale.id);
    if (log) quiet.matched(sale, log);
  }
  return compared.map(({ id }) => id);
}

const scans = (count: number) => Array.from({ length: count }, scan);

/** How often the sale is compared in the next scans. */
const timesOf = (id: string, count: number) =>
  scans(count).filter((compared) => compared.includes(id)).length;

function sell(id: string): void {
  const log = logs.get(id)!;
  const seq = log.newest[0]!.seq + 1;
  const position = { saleId: id, segment: 0, generation: 1, seq: seq - 1, tail: '' };
  const head = { seq, tail: `${seq}`, orders: seq, committed: 0, state: 'open' } as const;
  log.saw(0, { position, head, entries: [] });
  log.reading({ ...position, seq, tail: `${seq}` });
  log.applied({ ...position, seq, tail: `${seq}` }, seq);
}

describe('up to 250 quiet sales', () => {
  it('are all compared by each scan', () => {
    begin(250);
    expect(scans(LONG_SCANS).every((compared) => compared.length === 250)).toBe(true);
  });
});

describe('more than 250 quiet sales', () => {
  beforeEach(() => begin(1_000));

  it('are compared by each of their first scans', () => {
    expect(scans(11).map((compared) => compared.length)).toEqual(Array(11).fill(1_000));
  });

  it('are then compared once in four scans, a quarter by each', () => {
    scans(LONG_SCANS);
    const round = scans(ROUND_SCANS);
    expect(round.map((compared) => compared.length)).toEqual([250, 250, 250, 250]);
    expect(new Set(round.flat()).size).toBe(1_000);
  });

  it.each([
    ['sold', (id: string) => sell(id)],
    ['changed its state', (id: string) => change(id, { state: 'paused' })],
    ['changed its rules', (id: string) => change(id, { rules: 'r2' })],
    ['is taken over again', (id: string) => logs.set(id, aLog(id))],
    ['is held by nobody here', (id: string) => logs.delete(id)],
  ])('a sale that has %s is compared by each scan', (_, happen) => {
    scans(LONG_SCANS);
    happen('sale-7');
    expect(timesOf('sale-7', 10)).toBe(10);
  });

  it('are all compared again when hints may have been lost', () => {
    scans(LONG_SCANS);
    quiet.forget();
    expect(scans(11).map((compared) => compared.length)).toEqual(Array(11).fill(1_000));
    expect(scan()).toHaveLength(250);
  });

  it('a sale that sold is quiet again after ten scans in which it did not', () => {
    scans(LONG_SCANS);
    sell('sale-7');
    scans(12);
    expect(timesOf('sale-7', ROUND_SCANS)).toBe(1);
  });

  it('a sale that sells all the time is compared by each scan', () => {
    scans(LONG_SCANS);
    for (let i = 0; i < LONG_SCANS; i++) {
      sell('sale-7');
      expect(scan()).toContain('sale-7');
    }
  });

  it('a sale with orders that are not in Postgres yet is compared by each scan', () => {
    const log = logs.get('sale-7')!;
    const position = { saleId: 'sale-7', segment: 0, generation: 1, seq: 0, tail: '' };
    log.saw(0, {
      position,
      head: { seq: 1, tail: '1', orders: 1, committed: 0, state: 'open' },
      entries: [],
    });
    scans(LONG_SCANS);
    expect(timesOf('sale-7', ROUND_SCANS)).toBe(ROUND_SCANS);
  });

  function change(id: string, to: Partial<ComparedSale>): void {
    sales = sales.map((sale) => (sale.id === id ? { ...sale, ...to } : sale));
  }
});
