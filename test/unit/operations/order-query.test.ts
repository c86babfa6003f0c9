/** A query for orders or sales whose times can't be meant. */
import { expect, test } from 'vitest';
import { InvalidInput } from '../../../src/engine/errors.ts';
import { parseConsoleQuery } from '../../../src/operations/console/console-operations.ts';
import { parseOrderExport, parseOrderQuery } from '../../../src/operations/order-query.ts';
import { parseSaleQuery } from '../../../src/operations/sale-list.ts';

const [EARLIER, LATER] = ['2026-11-27T20:00:00Z', '2026-11-27T20:00:01Z'];

test.each([
  ['a list', parseOrderQuery],
  ['an export', parseOrderExport],
  ['a list of sales', parseSaleQuery],
  ['a console', parseConsoleQuery],
])('%s of a time that ends before it begins is refused: it would find nothing', (_, parse) => {
  expect(new Date(parse({ since: EARLIER, until: LATER }).since!)).toEqual(new Date(EARLIER));
  for (const since of [LATER, EARLIER]) {
    const problem = `must be after \`since\`, which is ${new Date(since).toISOString()}; it is 2026-11-27T20:00:00.000Z`;
    expect(() => parse({ since, until: EARLIER })).toThrow(
      new InvalidInput('the query is not valid', [{ field: 'until', problem }]),
    );
  }
});
