/** A short run of the fuzzer (`npm run fuzz`) on both ports. */
import { expect, test } from 'vitest';
import { fuzz } from '../../fuzz/fuzz.ts';
import { Target } from '../../fuzz/target.ts';
import { seed } from '../../support/fixtures.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { redisAndPostgres } from '../../support/nodes/stores.ts';
import { inTier } from '../../support/tier.ts';

const REQUESTS = inTier({ test: 125, release: 2_000 });

test('the node answers every request as described, and still sells afterwards', async () => {
  await using node = await startTestNode({
    ...(await redisAndPostgres()),
    env: { WORKERS: '2', PUBLIC_PAYMENT: '1', PUBLIC_ORDER_NOTES: '1' },
  });
  const target = new Target(node);
  const { requests, failure } = await fuzz(target, { seed: seed(), requests: REQUESTS });
  expect(failure, 'run again with npm run fuzz -- --seed and --path').toBeUndefined();
  expect(requests).toBeGreaterThan(REQUESTS / 2);
  await target.assertSound();
});
