/** A resize by route and by command, through a node on each kind of store, while buyers come through its port. */
import { expect, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';
import { onEachStore } from '../../support/nodes/stores.ts';

onEachStore((stage) => {
  const resize = (saleId: string, body: object) =>
    stage.node.opsRequest(`/v1/sales/${saleId}`, {
      method: 'PATCH',
      headers: { 'x-operator': 'otto' },
      body: JSON.stringify({ action: 'resize', ...body }),
    });

  test('makes buyers wait, and a buyer with an order can’t buy again', async () => {
    const { node } = stage;
    const saleId = await stage.sale({ stock: 100_000, segments: 4 });
    const codes: string[] = [];
    let done = false;
    const crowd = Promise.all(
      Array.from({ length: 8 }, async (_, client) => {
        for (let n = 0; !done; n++) codes.push((await node.buy(saleId, `buyer-${client}-${n}`)).code);
      }),
    );
    expect(await resize(saleId, { segments: 9, reason: 'more came' })).toMatchObject({
      status: 200,
      body: { segments: 9 },
    });
    done = true;
    await crowd;
    expect(new Set(codes)).toEqual(new Set(['committed']));
    expect((await node.buy(saleId, 'buyer-0-0')).code).toBe('limit_reached');

    const env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
    const shrunk = await callCli(['sale', 'resize', saleId, '--segments', '2', '--by', 'ann'], { env });
    expect(shrunk).toMatchObject({ exitCode: 0, stderr: '' });
    expect(shrunk.stdout).toMatch(/in 2 segments$/m);
    expect((await node.buy(saleId, 'buyer-1-0')).code).toBe('limit_reached');
    expect(
      (await node.ops.ledger(saleId)).ledger
        .slice(1)
        .map(({ actor, reason, detail }) => [actor, reason, detail]),
    ).toEqual([
      ['otto', 'more came', { from: 4, to: 9 }],
      ['ann', '', { from: 9, to: 2 }],
    ]);
    expect(await node.ops.verify(saleId)).toMatchObject({ ok: true, committedOrders: codes.length });
  });

  test.each([0, 1_025, 1.5, '8', undefined])('to %s segments is not valid', async (segments) => {
    const saleId = await stage.sale({ stock: 1 });
    expect(await resize(saleId, { segments })).toMatchObject({ status: 400, code: 'invalid_request' });
  });
});
