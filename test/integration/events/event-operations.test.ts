/** Order events as operators see them: a whole node with a webhook, its metrics, its dead letters, `stockade events`. */
import { describe, expect, test } from 'vitest';
import { callCli, RunningCli } from '../../support/cli/cli.ts';
import { WebhookReceiver } from '../../support/events/webhook-receiver.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { embedded, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { isRelease } from '../../support/tier.ts';

const WEBHOOK_SECRET = 'a-secret-between-two-programs';

const webhookEnv = ({ url }: WebhookReceiver) => ({
  WEBHOOK_URL: url,
  WEBHOOK_SECRET,
  WEBHOOK_MAX_ATTEMPTS: '1',
});

describe.each([
  ['embedded', embedded],
  ['redis and postgres', redisAndPostgres],
] as const)('%s', (_, options) => {
  test('a webhook that fails: dead letters are listed and re-sent, by route and by command', async () => {
    await using receiver = await WebhookReceiver.start();
    await using node = await startTestNode({ ...(await options()), env: webhookEnv(receiver) });
    const events = (words: string) => runEvents(node, words);
    const saleId = await makeSale(node);
    expect(await events('dead')).toMatchObject({ exitCode: 0, stdout: 'There are no dead letters.\n' });

    receiver.behave = () => 500;
    const orderIds = [(await node.buy(saleId, 'ada')).body.orderId];
    await until(async () => (await deadOf(node)).length === 1, { what: 'the first is a dead letter' });
    orderIds.push((await node.buy(saleId, 'bob')).body.orderId);
    await until(async () => (await deadOf(node)).length === 2, { what: 'and the second' });
    const [first, second] = await deadOf(node);
    expect(first).toMatchObject({
      kind: 'order.committed',
      orderIds: [orderIds[0]],
      attempts: 1,
      failedWith: 'the webhook answered 500',
    });
    const listed = await events('dead');
    expect(listed.stdout).toMatch(/^ *id +events +orders +happened +dead since +attempts +error$/m);
    expect(listed.stdout).toMatch(/order\.committed +1 .* 1 +the webhook answered 500$/m);
    expect(listed.stdout).toMatch(/^2 dead letters\.$/m);
    expect(JSON.parse((await events('dead --json')).stdout)).toEqual({ total: 2, dead: [first, second] });

    receiver.behave = () => 200;
    expect(await events(`resend ${first!.id}`)).toMatchObject({
      exitCode: 0,
      stdout: '1 dead letter will be delivered again.\n',
    });
    await until(() => receiver.taken.length === 1, { what: 'it is delivered' });
    const again = await events(`resend ${first!.id}`);
    expect(again.exitCode).toBe(1);
    expect(again.stderr).toMatch(/^error: there is no dead letter \d+; it may have been re-sent already/);
    const answer = await node.opsRequest(`/v1/events/dead/${first!.id}/resend`, { method: 'POST' });
    expect(answer).toMatchObject({ status: 404, code: 'unknown_dead_letter' });
    expect(await events('resend --all --json')).toMatchObject({ exitCode: 0, stdout: '{"resent":1}\n' });
    await until(() => receiver.taken.length === 2, { what: 'so is the other' });
    expect(receiver.taken.map(({ orderId }) => orderId)).toEqual(orderIds);
    expect(await events('resend --all')).toMatchObject({
      stdout: '0 dead letters will be delivered again.\n',
    });
    for (const words of ['resend', `resend ${second!.id} --all`]) {
      expect(await events(words)).toMatchObject({ exitCode: 2, stdout: '' });
    }

    await until(async () => (await metric(node, 'stockade_webhook_events_total')) === 2, {
      what: 'both are counted',
    });
    expect(await metric(node, 'stockade_webhook_failures_total')).toBe(2);
    expect(await metric(node, 'stockade_relay_crashes_total')).toBe(0);
  });
});

if (isRelease) {
  test('a separate sync sends the events of a node without sync', async () => {
    const stores = { REDIS_URL: redisUrl(), DATABASE_URL: await freshDatabase(), KEY_PREFIX: freshPrefix() };
    await using receiver = await WebhookReceiver.start();
    await using node = await startTestNode({ env: { ...stores, SYNC: 'off' } });
    const env = { ...stores, ...webhookEnv(receiver), OPS_TOKEN: 'token-of-this-test' };
    await using sync = new RunningCli(['sync', '--ops-port', '0', '--json'], { env });
    await sync.said(/"syncing":true/);
    const saleId = await makeSale(node);
    expect((await node.buy(saleId, 'ada')).status).toBe(201);
    await until(() => receiver.taken.length === 1, { what: 'the event is delivered' });
    sync.signal('SIGTERM');
    expect(await sync.ended).toMatchObject({ exitCode: 0 });
  });
}

function runEvents(node: TestNode, words: string) {
  const env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
  return callCli(['events', ...words.split(' ')], { env });
}

async function deadOf(node: TestNode) {
  return (await node.ops.deadLetters()).listed;
}
