/** `stockade order export` as a person runs it: the bar is on the terminal, and the orders are in the file. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { hasTerminals, stockade, Terminal } from '../../support/cli/terminal.ts';

const ORDERS = 2_500;
const PAGE = 1_000;
const SALE = { ...saleToJson(parseSale({ id: 'jazz', stock: ORDERS })), committedOrders: ORDERS };
const IDS = Array.from({ length: ORDERS }, (_, i) => String(i + 1));

/** Has three pages. It can't read the second one until `isReady`. */
function nodeWithPages(isReady: () => boolean): Promise<NodeJS.ProcessEnv> {
  return answeringNode((_, { pathname, searchParams }) => {
    if (!pathname.endsWith('/orders')) return SALE;
    const begin = Number(searchParams.get('after') ?? 0);
    if (begin === PAGE && !isReady()) return [503, { code: 'unavailable', title: 'Later', status: 503 }];
    const page = IDS.slice(begin, begin + PAGE);
    const orders = page.map((orderId) => ({ orderId, saleId: 'jazz', quantity: 1 }));
    return { orders, ...(begin + PAGE < ORDERS && { next: page.at(-1) }) };
  });
}

test.runIf(hasTerminals).each([
  ['--output jazz.ndjson', '2,500 orders of jazz in jazz.ndjson\r\n'],
  ['> jazz.ndjson', '2,500 orders of jazz\r\n'],
])('order export jazz %s shows how far it is, and writes all orders', async (to, end) => {
  const cwd = mkdtempSync(join(tmpdir(), 'stockade-export-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  let terminal: Terminal | undefined;
  const env = await nodeWithPages(() => terminal!.shown.includes(' 1,000/2,500 orders, '));
  await using shown = new Terminal(stockade(`order export jazz ${to}`), { env, cwd });
  terminal = shown;
  await terminal.sees(' 0/2,500 orders, ');
  await terminal.sees(' 1,000/2,500 orders, ');
  expect(await terminal.ended).toBe(0);
  // The last line is a whole one, and no order was among the drawings of the bar.
  expect(terminal.shown.endsWith(end)).toBe(true);
  expect(terminal.shown).not.toContain('orderId');
  const lines = readFileSync(join(cwd, 'jazz.ndjson'), 'utf8').split('\n');
  expect(lines.splice(-2)).toEqual([`{"end":true,"orders":${ORDERS}}`, '']);
  expect(lines.map((line) => JSON.parse(line).orderId)).toEqual(IDS);
});
