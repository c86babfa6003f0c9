import { expect, test } from 'vitest';
import { ERASURE_COLUMNS, erasureRows, told } from '../../../src/cli/buyer.ts';
import { Table } from '../../../src/cli/terminal/table.ts';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { callCli } from '../../support/cli/cli.ts';

const erasure = (saleId: string) => ({ saleId, orders: 2, pseudonym: 'erased-5f0c2b9a7d41e836' });

test('a report of an erasure says for each sale how far it is', () => {
  const rows = erasureRows({
    erased: [erasure('first')],
    waiting: [
      { ...erasure('second'), until: 'closed' },
      { ...erasure('third'), until: 'rebuilt' },
    ],
  });
  const text = new Table(ERASURE_COLUMNS, 80).page(rows);
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  expect(text.split('\n').map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
    'sale orders pseudonym state',
    'first 2 erased-5f0c2b9a7d41e836 erased',
    'second 2 erased-5f0c2b9a7d41e836 waits until the sale is closed',
    'third 2 erased-5f0c2b9a7d41e836 waits until sync rebuilds the sale',
  ]);
});

test('the command says if no sale knows the buyer, and how an id is replaced in a sale that is not closed', async () => {
  let answer: object = { erased: [], waiting: [] };
  const env = await answeringNode(() => answer);
  const erase = () => callCli(['buyer', 'erase', 'bob', '--yes'], { env });
  expect(await erase()).toMatchObject({ exitCode: 0, stdout: 'No sale knows this buyer.\n', stderr: '' });
  answer = { erased: [erasure('first')], waiting: [] };
  expect((await erase()).stderr).toBe('');
  answer = { erased: [], waiting: [{ ...erasure('second'), until: 'closed' }] };
  expect((await erase()).stderr).toBe('To replace it now in sales that are not closed, add --running.\n');
});

test('the question about an erasure says how many orders it concerns, in how many sales', () => {
  const found = [
    { saleId: 'first', orders: 2 },
    { saleId: 'second', orders: 1_000 },
  ];
  const wish = { buyerId: 'ann', running: false };
  expect(told(wish, found)[0]).toBe('A pseudonym takes the place of the id in 1,002 orders in 2 sales.');
  const one = [{ saleId: 'first', orders: 1 }];
  expect(told(wish, one)[0]).toBe('A pseudonym takes the place of the id in 1 order of first.');
  expect(told(wish, [...one, { saleId: 'third', orders: 3, until: 'closed' }])).toEqual([
    'A pseudonym takes the place of the id in 1 order of first.',
    'The buyer can no longer see, pay or cancel what is there.',
    'In 3 orders of third the id stays until the sale is closed, unless you add --running: then it is replaced now.',
  ]);
  // Nothing is asked if there is nothing to do.
  expect(told({ ...wish, running: true }, [])).toEqual([]);
});
