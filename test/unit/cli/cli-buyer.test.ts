import { expect, test } from 'vitest';
import { reportText } from '../../../src/cli/buyer.ts';

const erasure = (saleId: string) => ({ saleId, orders: 2, pseudonym: 'erased-07' });

test('a report of an erasure says for each sale how far it is', () => {
  const text = reportText({
    erased: [erasure('first')],
    waiting: [
      { ...erasure('second'), until: 'closed' },
      { ...erasure('third'), until: 'rebuilt' },
    ],
  });
  expect(text.split('\n').map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
    'sale orders pseudonym state',
    'first 2 erased-07 erased',
    'second 2 erased-07 waits until the sale is closed; --running does it now',
    'third 2 erased-07 waits for sync, which rebuilds the sale',
  ]);
});

test('an erasure of a buyer whom no sale knows', () => {
  expect(reportText({ erased: [], waiting: [] })).toBe('No sale knows this buyer.');
});
