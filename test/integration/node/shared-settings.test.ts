/** Two nodes of a shop with different settings report that, and keep selling. */
import { expect, test } from 'vitest';
import { openDatabase, rows } from '../../../src/postgres/database.ts';
import { until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { redisAndPostgres } from '../../support/nodes/stores.ts';

const GAUGE = 'stockade_settings_differing';
const SECRET = 'the purchase token secret of all nodes';

const readyzOf = async (node: TestNode) => (await node.opsRequest('/readyz')).body;

test('nodes with different settings name them in /readyz, the log and a metric, until they are the same', async () => {
  const stores = await redisAndPostgres();
  await using first = await startTestNode({ ...stores, env: { PURCHASE_TOKEN_SECRET: SECRET } });
  expect(await readyzOf(first)).toEqual({ status: 'ready' });
  expect(await metric(first, GAUGE)).toBe(0);
  await using second = await startTestNode({
    ...stores,
    env: { PURCHASE_TOKEN_SECRET: `another than ${SECRET}`, RATE_LIMIT_BUYER: '10/60', LANE_CAPACITY: '77' },
  });

  const differing = ['PURCHASE_TOKEN_SECRET', 'RATE_LIMIT_BUYER'];
  const settingsDiffer = differing.map((setting) => ({ setting, processes: 1, of: 1 })).reverse();
  for (const node of [first, second]) {
    const answer = await until(
      async () => {
        const found = await node.opsRequest('/readyz');
        return found.body.settingsDiffer && found;
      },
      { what: 'a difference', timeoutMs: 30_000 },
    );
    expect(answer).toMatchObject({ status: 200, body: { status: 'ready' } });
    const bySetting = (a: { setting: string }, b: { setting: string }) => (a.setting < b.setting ? -1 : 1);
    expect(answer.body.settingsDiffer.sort(bySetting)).toEqual([...settingsDiffer].sort(bySetting));
    expect(await metric(node, GAUGE)).toBe(2);
    const warned = (await node.log()).split('\n').filter((line) => line.includes('settings differ from'));
    expect(warned).toHaveLength(1);
    for (const setting of differing) expect(warned[0]).toContain(setting);
    expect(warned[0]).not.toContain('LANE_CAPACITY');
    expect(warned[0]).toMatch(/version \d+\.\d+\.\d+/);
    expect(await node.log()).not.toContain(SECRET);
  }

  const db = openDatabase({ url: stores.databaseUrl, maxConnections: 1 });
  const told = await rows(db, 'SELECT * FROM processes').finally(() => db.destroy());
  expect(told).toHaveLength(2);
  expect(JSON.stringify(told)).not.toContain(SECRET);

  await second.stop();
  const isAlone = async () => !('settingsDiffer' in (await readyzOf(first)));
  await until(isAlone, { what: 'no difference', timeoutMs: 30_000 });
  expect(await metric(first, GAUGE)).toBe(0);
  await until(async () => (await first.log()).includes('have the same settings again'), { what: 'the log' });
});
