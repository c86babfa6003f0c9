/** A query for orders whose times can't be meant. */
import { expect, test } from 'vitest';
import { InvalidInput } from '../../../src/engine/errors.ts';
import { parseOrderExport, parseOrderQuery } from '../../../src/operations/order-query.ts';

const [EARLIER, LATER] = ['2026-11-27T20:00:00Z', '2026-11-27T20:00:01Z'];

test.each([
  ['a list', parseOrderQuery],
  ['an export', parseOrderExport],
])('%s of a time that ends before it begins is refused: it would find nothing', (_, parse) => {
  expect(parse({ since: EARLIER, until: LATER })).toMatchObject({ since: Date.parse(EARLIER) });
  for (const since of [LATER, EARLIER])
    expect(() => parse({ since, until: EARLIER })).toThrow(
      new InvalidInput('the query is not valid', [{ field: 'until', problem: 'must be after `since`' }]),
    );
});
