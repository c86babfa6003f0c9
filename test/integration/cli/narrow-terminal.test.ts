/** A list as a person reads it in a terminal of 80 columns: no line wraps, and it says what it leaves out. */
import { expect, test } from 'vitest';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { hasTerminals, stockade, Terminal } from '../../support/cli/terminal.ts';
import { mainProgram } from '../../support/nodes/build.ts';

const SALE = {
  ...saleToJson(
    parseSale({
      id: 'spring-2027',
      stock: 100,
      title: 'Spring 2027, the concert',
      endsAt: '2099-01-01T00:00:00Z',
    }),
  ),
  ...{ state: 'open', remaining: 0, soldOut: true, generation: 1, movedUnits: 0 },
  ...{ committedOrders: 100, committedUnits: 100 },
};

const nodeWithSale = () => answeringNode(() => ({ sales: [SALE] }));

test.runIf(hasTerminals)('a list fits into the terminal', async () => {
  await using terminal = new Terminal(stockade('sale list'), { env: await nodeWithSale(), columns: 80 });
  expect(await terminal.ended).toBe(0);
  const lines = terminal.shown.trimEnd().split('\r\n').slice(1);
  expect(lines).toEqual([
    expect.stringMatching(/^sale +state +stock +remaining +orders +starts$/),
    `spring-2027  open, sold out    100          0     100  ${SALE.startsAt}`,
    'The terminal is too narrow for ends, title.',
    'To see the whole list, add: | less -S',
  ]);
});

test.runIf(hasTerminals)('a list that is piped is whole', async () => {
  const piped = `'${process.execPath}' '${mainProgram}' sale list | cat`;
  await using terminal = new Terminal(piped, { env: await nodeWithSale(), columns: 80 });
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown).toContain(`${SALE.startsAt}  ${SALE.endsAt}  ${SALE.title}\r\n`);
  expect(terminal.shown).not.toContain('too narrow');
});
