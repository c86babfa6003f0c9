/** A queue: whatever its buyers, operators and time do, in any order, each place is as the rules say after each step. */
import fc from 'fast-check';
import { afterAll, beforeAll, it } from 'vitest';
import { seed } from '../support/fixtures.ts';
import { Shop } from '../support/shop/shop.ts';
import type { Till } from '../support/shop/till.ts';
import { inTier } from '../support/tier.ts';
import { queueCommands } from './queue/queue-commands.ts';
import { QueueTrial } from './queue/queue-trial.ts';

const RUNS = Number(process.env.QUEUE_RUNS ?? inTier({ test: 3, release: 60 }));
const COMMANDS = 60;
const TIMEOUT_MS = 60_000 + RUNS * 10_000;

const sale = fc.record({
  stock: fc.integer({ min: 1, max: 6 }),
  segments: fc.integer({ min: 1, max: 3 }),
  limit: fc.constantFrom(1, 3, 4),
  fit: fc.constantFrom('wait' as const, 'less' as const, 'pass' as const),
});

let shop: Shop;
let till: Till;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
  await shop.startSync();
  till = await shop.startEngine();
});
afterAll(() => shop[Symbol.asyncDispose]());

it('each place is as the rules say after each step', { timeout: TIMEOUT_MS }, async () => {
  const property = fc.asyncProperty(sale, queueCommands(COMMANDS), async (sale, commands) => {
    const trial = await QueueTrial.begin(shop, till, sale);
    await fc.asyncModelRun(() => ({ model: trial.model, real: trial }), commands);
    await trial.end();
  });
  await fc.assert(property, { seed: seed(), numRuns: RUNS, endOnFailure: true });
});
