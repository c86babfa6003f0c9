import { expect, test } from 'vitest';
import { isRowId, parsePageQuery } from '../../../src/operations/checked-input.ts';
import { parseConsoleQuery } from '../../../src/operations/console/console-operations.ts';
import { parseOrderQuery, parseRefundsQuery } from '../../../src/operations/order-query.ts';
import { parseSaleQuery } from '../../../src/operations/sale-list.ts';

const PARSERS = [
  ['orders', parseOrderQuery, 1_000],
  ['refunds', parseRefundsQuery, 1_000],
  ['a list without filters', (query: object) => parsePageQuery({ ...query }, isRowId), 1_000],
  ['sales', parseSaleQuery, 1_000],
  ['sales of the console', parseConsoleQuery, 100],
] as const;

test.each(PARSERS)('a limit of %s is digits, or a whole number', (_, parse, most) => {
  for (const limit of ['7', '007', 7]) expect(parse({ limit })).toMatchObject({ limit: 7 });
  expect(parse({ limit: String(most) })).toMatchObject({ limit: most });
  for (const limit of ['', ' 7', '0x10', '1e1', '7.0', '+7', '-1', String(most + 1), 7.5, true, null])
    expect(() => parse({ limit }), String(limit)).toThrow(/limit must be a whole number from \d to \d+/);
});
