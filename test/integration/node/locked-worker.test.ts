/** A node with `STRATEGY=lock` and the shop's own work inside (`LOCK_WORK`), as its buyers see it at their port. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { redisAndPostgres } from '../../support/nodes/stores.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stockade-lock-work-'));
});

afterEach(() => rm(folder, { recursive: true }));

async function moduleWith(source: string): Promise<string> {
  const file = join(folder, 'work.mjs');
  await writeFile(file, source);
  return file;
}

const BLOCKLIST = `
  import { readFileSync } from 'node:fs';
  export async function inside(orders) {
    const blocked = readFileSync(new URL('blocked.txt', import.meta.url), 'utf8').split(' ');
    return orders
      .filter(({ buyerId }) => blocked.includes(buyerId))
      .map(({ orderId }) => ({ orderId, reason: 'the card is blocked' }));
  }`;

test('a buyer that the shop refuses is answered 403 with the reason, unless the key names an order', async () => {
  const blocked = (names: string) => writeFile(join(folder, 'blocked.txt'), names);
  await blocked('eve');
  const LOCK_WORK = await moduleWith(BLOCKLIST);
  const stores = await redisAndPostgres();
  await using node = await startTestNode({ ...stores, env: { STRATEGY: 'lock', LOCK_WORK } });
  await node.ops.create({ id: 'tickets', stock: 10, segments: 1 }, BY.actor);

  const buy = (buyer: string, key: string) => node.buy('tickets', buyer, { key });
  const [anna, eve] = await Promise.all([buy('anna', 'click-1'), buy('eve', 'click-1')]);
  expect(anna).toMatchObject({ status: 201, code: 'committed' });
  expect(eve).toMatchObject({
    status: 403,
    headers: { 'content-type': 'application/problem+json' },
    body: {
      title: 'The shop has refused this purchase',
      status: 403,
      code: 'refused',
      detail: 'the card is blocked',
    },
  });

  await blocked('eve anna');
  expect(await buy('anna', 'click-1')).toMatchObject({ status: 201, body: anna.body });
  expect(await buy('anna', 'click-2')).toMatchObject({ status: 403, code: 'refused' });
  await blocked('anna');
  expect(await buy('eve', 'click-1')).toMatchObject({ status: 201, code: 'committed' });
  expect(await node.ops.verify('tickets')).toMatchObject({ ok: true, committedOrders: 2 });
});

test.each([
  [
    'is not there',
    undefined,
    /LOCK_WORK is .*missing\.mjs", but must be the path of a JavaScript module, and there/,
  ],
  [
    'does not parse',
    'export {',
    /LOCK_WORK names .*work\.mjs, which can't be loaded: Unexpected end of input/,
  ],
  ['has no such export', 'export const outside = 1', /must export a function `inside`; it exports outside/],
])('a node does not start with a module that %s', async (_, source, message) => {
  const LOCK_WORK = source === undefined ? join(folder, 'missing.mjs') : await moduleWith(source);
  const stores = await redisAndPostgres();
  await expect(startTestNode({ ...stores, env: { STRATEGY: 'lock', LOCK_WORK } })).rejects.toThrow(message);
});
