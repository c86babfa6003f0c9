/**
 * The life of a sale and its orders: whatever buyers, operators, sync and time do, in any order and with an interruption
 * anywhere, the books balance after each step, and the rest sells to the last unit.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { seed } from '../support/fixtures.ts';
import { Shop } from '../support/shop/shop.ts';
import { inTier } from '../support/tier.ts';
import { lifeCommands } from './life/life-commands.ts';
import { LifeTrial } from './life/life-trial.ts';

const RUNS = Number(process.env.LIFE_RUNS ?? inTier({ test: 2, release: 30 }));
/** Shrinking takes many runs, some of which wait in vain until a timeout. */
const SHRINKS = process.env.LIFE_SHRINK === '1';
const COMMANDS = 60;
const TIMEOUT_MS = 60_000 + RUNS * 10_000 + (SHRINKS ? 1_800_000 : 0);

const sale = fc.record({
  stock: fc.integer({ min: 1, max: 12 }),
  segments: fc.integer({ min: 1, max: 5 }),
  limit: fc.constantFrom(1, 3),
});

describe.each(['memory', 'redis'] as const)('on %s', (backend) => {
  let shop: Shop;

  beforeAll(async () => {
    shop = await Shop.open({ backend });
  });
  afterAll(() => shop[Symbol.asyncDispose]());

  it('the books balance after each step', { timeout: TIMEOUT_MS }, async () => {
    const property = fc.asyncProperty(sale, lifeCommands(backend, COMMANDS), async (sale, commands) => {
      const trial = await LifeTrial.begin(shop, sale);
      try {
        await fc.asyncModelRun(() => ({ model: trial.model, real: trial }), commands);
        await trial.sellOut();
      } finally {
        await trial.end();
      }
    });
    await fc.assert(property, {
      seed: seed(),
      numRuns: RUNS,
      endOnFailure: !SHRINKS,
    });
  });
});
