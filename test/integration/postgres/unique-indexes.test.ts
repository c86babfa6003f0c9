/** What the unique indexes refuse, whoever writes the rows. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { insert, openFunctions, type Row, type Rows } from '../../support/postgres/run-function.ts';

let client: pg.Client;
beforeAll(async () => {
  client = await openFunctions();
});
afterAll(() => client.end());

/** @returns the code of the error, or undefined */
async function codeOf(given: Rows): Promise<string | undefined> {
  await client.query('BEGIN');
  try {
    await insert(client, given);
    return undefined;
  } catch (error) {
    return (error as pg.DatabaseError).code;
  } finally {
    await client.query('ROLLBACK');
  }
}

const TWICE = '23505';
const LIVE = ['unpaid', 'paid', 'redeemed'];
const ENDED = ['cancelled', 'expired', 'refunded', 'rejected'];

describe('two orders of a buyer in a sale', () => {
  const order = (order_id: number, more: Row): Row => ({ order_id, sale_id: 'a', buyer_id: 'anna', ...more });
  const withKey = { one_per_buyer: false, idempotency_key: 'k' };

  it.each<[string, Row]>([
    ['of which each is the only one', { one_per_buyer: true }],
    ['with one key', withKey],
  ])('%s are refused while the first has not ended', async (_, both) => {
    const given = (status: string) => ({ orders: [order(1, { ...both, status }), order(2, both)] });
    for (const status of LIVE) expect(await codeOf(given(status))).toBe(TWICE);
    for (const status of ENDED) expect(await codeOf(given(status))).toBeUndefined();
  });

  it('are allowed with two keys, without a key, and to two buyers or in two sales with one key', async () => {
    const first = order(1, withKey);
    for (const more of [
      { idempotency_key: 'l' },
      { idempotency_key: null },
      { buyer_id: 'ben' },
      { sale_id: 'b' },
    ])
      expect(await codeOf({ orders: [first, order(2, { ...withKey, ...more })] })).toBeUndefined();
  });
});

describe('two places of a buyer in a queue', () => {
  const place = (number: number, state: string): Row => ({ sale_id: 'a', number, buyer_id: 'anna', state });

  it('are refused while the first waits or has an offer', async () => {
    for (const state of ['waiting', 'offered'])
      expect(await codeOf({ places: [place(1, state), place(2, 'waiting')] })).toBe(TWICE);
  });

  it('are allowed when the first has ended, however many have ended', async () => {
    for (const state of ['bought', 'lapsed', 'left'])
      expect(
        await codeOf({ places: [place(1, state), place(2, state), place(3, 'waiting')] }),
      ).toBeUndefined();
  });
});
