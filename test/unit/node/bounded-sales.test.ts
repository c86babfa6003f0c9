import { describe, expect, test } from 'vitest';
import { InvalidInput, StaleGeneration } from '../../../src/engine/errors.ts';
import { failure, isFault } from '../../../src/http/ops/faults.ts';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { BoundedSales } from '../../../src/node/operations/bounded-sales.ts';
import { BoundedWork } from '../../../src/node/operations/bounded-work.ts';
import { MetRebuild, OperationTimedOut, StoresAway } from '../../../src/operations/operation-faults.ts';
import type { SaleOperations } from '../../../src/operations/sale-operations.ts';
import { QUERY_TIMEOUT_MS } from '../../../src/postgres/database.ts';
import { BY } from '../../support/author.ts';

const BOUNDS = { operationMs: 40, verifyMs: 120, checkEveryMs: 10 };
const never = new Promise<never>(() => {});

/** Operations with a given outcome, on stores of which some are away. */
function operations(work: () => Promise<never>, away: string[] = []) {
  const looks = { times: 0 };
  const watch = {
    away: async () => away,
    backendAway: async () => {
      looks.times++;
      return away.find((name) => name === 'Redis');
    },
  };
  const all = { list: work, verify: work, change: work } as unknown as SaleOperations;
  return { bounded: new BoundedSales(all, new BoundedWork(watch, BOUNDS)), looks };
}

describe('work that does not end', () => {
  test('is given up at the first check that finds a store away; the error names the store', async () => {
    const { bounded, looks } = operations(() => never, ['Redis']);
    await expect(bounded.verify('tickets')).rejects.toThrow(new StoresAway(['Redis']));
    expect(looks.times).toBe(1);
  });

  test('may be a change that is made later: only then does the error say so', async () => {
    const { bounded } = operations(() => never, ['Redis']);
    await expect(bounded.change('tickets', { action: 'pause' }, BY)).rejects.toThrow(
      'Redis does not answer; the change may have been made: check that before you repeat it',
    );
    await expect(bounded.list()).rejects.toThrow(/^Redis does not answer$/);
  });

  test('is given up at its deadline while the stores answer; verify has a longer one', async () => {
    const { bounded } = operations(() => never);
    await expect(bounded.list()).rejects.toThrow(new OperationTimedOut('list', BOUNDS.operationMs));
    const began = monotonicMs();
    await expect(bounded.verify('tickets')).rejects.toThrow(new OperationTimedOut('verify', BOUNDS.verifyMs));
    expect(monotonicMs() - began).toBeGreaterThan(BOUNDS.verifyMs - 2);
  });
});

test.each([
  [40_000, QUERY_TIMEOUT_MS - 1],
  [2_000, 2_000],
])(
  'a change within %i ms takes effect before anybody is told that it may have been made',
  async (operationMs, most) => {
    const watch = { away: async () => [], backendAway: async () => undefined };
    const bounded = new BoundedWork(watch, { ...BOUNDS, operationMs });
    const began = monotonicMs();
    const latestMs = await bounded.run('pay', async (latest) => latest, { changes: true });
    expect(latestMs - monotonicMs()).toBeLessThanOrEqual(most);
    expect(latestMs - began).toBeGreaterThan(most - 1_000);
  },
);

describe('work that fails', () => {
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:5432');

  test('names the stores that do not answer, and keeps the reason as the cause', async () => {
    const { bounded } = operations(() => Promise.reject(refused), ['Redis', 'Postgres']);
    const error = await bounded.list().catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'unavailable',
      message: 'Redis and Postgres do not answer',
      stores: ['Redis', 'Postgres'],
      cause: refused,
    });
  });

  test('fails with its own error while the stores answer', async () => {
    const { bounded } = operations(() => Promise.reject(refused));
    await expect(bounded.list()).rejects.toBe(refused);
  });

  test.each([
    [new Error('select 1 - Connection terminated unexpectedly'), 'Connection terminated unexpectedly'],
    [new Error('select 1 - read ECONNRESET'), 'read ECONNRESET'],
    [
      Object.assign(new Error('select 1 - terminating connection due to administrator command'), {
        code: '57P01',
      }),
      'terminating connection due to administrator command',
    ],
    [Object.assign(new Error('select 1 - server conn crashed?'), { code: '08P01' }), 'server conn crashed?'],
  ])('asks to be repeated if its connection broke: %s', async (broken, why) => {
    const { bounded } = operations(() => Promise.reject(broken));
    await expect(bounded.list()).rejects.toMatchObject({
      code: 'unavailable',
      message: `list failed because the connection to Postgres broke (${why}); try again`,
      cause: broken,
    });
    await expect(bounded.change('tickets', { action: 'pause' }, BY)).rejects.toThrow(
      `${why}; the change may have been made: check that before you repeat it`,
    );
  });

  test('gets an error of its own, not a fault of the node, if its sale is being rebuilt', async () => {
    const stale = new StaleGeneration('tickets', 2);
    const { bounded } = operations(() => Promise.reject(stale));
    const error = await bounded.change('tickets', { action: 'pause' }, BY).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'unavailable', cause: stale });
    expect(error).toBeInstanceOf(MetRebuild);
    const reply = failure(error);
    expect(reply.status).toBe(503);
    expect(JSON.parse(reply.body)).toMatchObject({
      code: 'unavailable',
      detail:
        'pause failed because the sale was being rebuilt; the change may have been made: check that before you repeat it',
    });
    expect(isFault(error, reply)).toBe(false);
    expect(isFault(stale, failure(stale))).toBe(true);
  });

  test('names the stores first, when it has met a rebuild and one of them is away', async () => {
    const { bounded } = operations(() => Promise.reject(new StaleGeneration('tickets', 2)), ['Redis']);
    await expect(bounded.list()).rejects.toThrow(new StoresAway(['Redis']));
  });

  test('an answer is returned even if the stores fail afterwards', async () => {
    const answer = new InvalidInput('the sale is not valid', []);
    const { bounded } = operations(() => Promise.reject(answer), ['Redis']);
    await expect(bounded.list()).rejects.toBe(answer);
  });
});
