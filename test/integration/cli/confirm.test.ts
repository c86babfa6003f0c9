/** Commands that do what can't be undone: they ask a person, and refuse where there is nobody to ask. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { callCli } from '../../support/cli/cli.ts';
import { hasTerminals, stockade, Terminal } from '../../support/cli/terminal.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { QUEUE, queued } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

const ORDER = '662207995405477814';
/** A sale that sells, and a paid order. */
const FOUND = {
  ...{ id: 'tickets', title: '', state: 'open', stock: 5, remaining: 5, soldOut: false, segments: 1 },
  ...{ perBuyerLimit: 2, committedOrders: 0, committedUnits: 0, generation: 1 },
  ...{ orderId: ORDER, saleId: 'tickets', buyerId: 'ann', quantity: 1, status: 'paid' },
};
const LOWER = { field: 'perBuyerLimit', problem: 'must be at least 2' };
/** Nothing listens there: a command that asks for anything fails otherwise. */
const NOWHERE = { OPS_URL: 'http://127.0.0.1:1' };

describe('without a terminal', () => {
  test.each<[command: string, what: string, found?: object]>([
    ['sale close tickets', 'close tickets'],
    ['sale archive tickets', 'archive tickets', { state: 'closed' }],
    ['sale delete tickets', 'delete tickets', { state: 'closed', archivedAt: 'T' }],
    ['sale edit tickets --per-buyer-limit 3', 'raise the limit per buyer of tickets'],
    [`order cancel ${ORDER}`, `cancel order ${ORDER}`, { status: 'unpaid' }],
    [`order redeem ${ORDER}`, `redeem order ${ORDER}`],
    [`order refund ${ORDER}`, `refund order ${ORDER}`],
    ['buyer erase ann', 'erase ann'],
    ['recover tickets', 'rebuild tickets from Postgres'],
  ])('%s needs --yes', async (command, what, found = {}) => {
    const changes: string[] = [];
    const env = await answeringNode((method, { pathname }, body) => {
      if (method === 'GET')
        return pathname.endsWith('/deletion') ? { state: 'none' } : { ...FOUND, ...found };
      // A deletion that names a wrong number of orders changes nothing.
      if (method === 'DELETE') return [409, { code: 'orders_differ', title: 'Other orders', orders: 0 }];
      if (pathname === '/v1/erasures' && body.dryRun === true)
        return { erased: [], waiting: [], found: [{ saleId: 'tickets', orders: 1 }] };
      changes.push(`${method} ${pathname}`);
      return FOUND;
    });
    const refused = await callCli([...command.split(' '), '--json'], { env });
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toBe(
      `error: nobody can be asked whether to ${what}, because there is no terminal. It can't be undone, so nothing was changed: add --yes to do it\n`,
    );
    expect(JSON.parse(refused.stdout).error.code).toBe('not_confirmed');
    expect(changes).toEqual([]);

    const tried = await callCli([...command.split(' '), '--yes', '--json'], { env: NOWHERE });
    expect({ exitCode: tried.exitCode, code: JSON.parse(tried.stdout).error.code }).toEqual({
      exitCode: 1,
      code: 'no_node',
    });
  });

  test('what can’t be done is refused by the node, and nobody is told to add --yes', async () => {
    const refusals: Record<string, readonly [number, object]> = {
      PATCH: [400, { code: 'invalid_request', title: 'Not valid', faults: [LOWER] }],
      DELETE: [409, { code: 'orders_differ', title: 'Other orders', orders: 1_234 }],
    };
    const env = await answeringNode((method, { pathname }) =>
      pathname.endsWith('/deletion') ? { state: 'none' } : (refusals[method] ?? FOUND),
    );
    const lowered = await callCli('sale edit tickets --per-buyer-limit 1'.split(' '), { env });
    expect(lowered).toMatchObject({ exitCode: 2, stderr: 'error: --per-buyer-limit must be at least 2\n' });
    const deleted = await callCli('sale delete tickets'.split(' '), { env });
    expect(deleted.exitCode).toBe(1);
    expect(deleted.stderr).toContain(
      'sale tickets has 1234 orders: export them, and then delete the sale with them',
    );
  });

  test.each([
    'sale pause tickets',
    'sale edit tickets --title x',
    `order pay ${ORDER}`,
    'verify tickets',
    // These flags say it already.
    'verify --repair',
    'sale delete tickets --with-orders --export no-such-file',
  ])('%s does not', async (command) => {
    const { stdout } = await callCli([...command.split(' '), '--json'], { env: NOWHERE });
    expect(JSON.parse(stdout).error.code).toBe('no_node');
  });
});

describe.runIf(hasTerminals)('at a terminal', () => {
  let shop: Shop;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    shop = await Shop.open();
    const { redisUrl, databaseUrl, keyPrefix } = shop;
    env = { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl, KEY_PREFIX: keyPrefix };
  });

  afterAll(() => shop[Symbol.asyncDispose]());

  const QUESTION = "This can't be undone. Go on? [y/N] ";

  /** What the command shows after this answer to its question, and its exit code. */
  async function answered(
    command: string,
    keys: string,
    question = QUESTION,
  ): Promise<{ shown: string; exitCode: number | null }> {
    await using terminal = new Terminal(stockade(command), { env });
    await terminal.sees(question);
    terminal.press(keys);
    const exitCode = await terminal.ended;
    return { shown: terminal.shown.replaceAll('\r', ''), exitCode };
  }

  test('a sale is closed only after y; before, the command says with figures what will happen', async () => {
    const { id } = await shop.sell({ stock: 7, segments: 2 });
    for (const [keys, exitCode, said] of [
      ['n\r', 1, 'error: not confirmed: nothing was changed'],
      ['\r', 1, 'error: not confirmed: nothing was changed'],
      ['\x04', 1, 'error: not confirmed: nothing was changed'],
      ['\x03', 130, 'error: interrupted by SIGINT: nothing was changed'],
    ] as const) {
      const no = await answered(`sale close ${id}`, keys);
      expect(no).toMatchObject({ exitCode, shown: expect.stringContaining(`\n${said}`) });
      expect(await shop.service.show(id)).toMatchObject({ state: 'open' });
    }
    const yes = await answered(`sale close ${id}`, 'y\r');
    expect(yes.exitCode).toBe(0);
    expect(yes.shown).toContain(`About to close ${id}:\n  - Left: 7 units, not sold any more.`);
    expect(yes.shown).toContain('Sold: 0 units in 0 orders.');
    expect(await shop.service.show(id)).toMatchObject({ state: 'closed' });
  });

  test('a rebuild, an erasure and an adoption say what they touch', async () => {
    const { id } = await shop.sell({ stock: 7, segments: 2, ...QUEUE });
    const recover = await answered(`recover ${id}`, 'n\r');
    expect(recover.shown).toContain('All 2 segments are frozen');
    expect(recover.shown).toContain('generation 1 becomes 2.');
    await queued(shop, id, ['ann']);
    expect((await answered(`buyer erase ann --sale ${id} --running`, 'n\r')).shown).toContain(
      `  - A pseudonym takes the place of the id in 0 orders of ${id}.`,
    );
    const adopt = await answered('recover --adopt', 'n\r');
    expect(adopt.shown).toContain(`KEY_PREFIX ${env.KEY_PREFIX}`);
    expect(await shop.service.show(id)).toMatchObject({ generation: 1 });
  });

  test('a queue is turned off only after y, and nobody says that it can’t be undone', async () => {
    const { id } = await shop.sell({ stock: 7, ...QUEUE });
    await queued(shop, id, ['ann', 'bob']);
    const no = await answered(`sale queue ${id} --queue off`, 'n\r', 'Go on? [y/N] ');
    expect(no).toMatchObject({ exitCode: 1, shown: expect.stringContaining('2 places wait in order.') });
    expect(no.shown).not.toContain('undone');
    expect(await shop.service.show(id)).toMatchObject({ queue: 'fifo' });
    const yes = await answered(`sale queue ${id} --queue off`, 'y\r', 'Go on? [y/N] ');
    expect(yes.exitCode).toBe(0);
    expect((await shop.service.show(id)).queue).toBeUndefined();
  });

  test('a repair lists the faults first; what can’t be done is not asked about', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 2 });
    await using keys = new RedisKeys(shop);
    await keys.redis.hincrby(keys.of(id, 1).segment, 'left', 5);
    const no = await answered(`verify ${id} --repair`, 'n\r');
    expect(no.shown).toContain(`1 fault found:\n  -   ${id}: segment 1: 15 units left`);
    expect((await answered(`verify ${id} --repair`, 'y\r')).shown).toContain(
      'repaired: set units left of segment 1',
    );

    for (const command of [`verify ${id} --repair`, `sale archive ${id}`, `order refund ${ORDER}`]) {
      await using terminal = new Terminal(stockade(command), { env });
      await terminal.ended;
      expect(terminal.shown).not.toContain(QUESTION);
    }
  });
});
