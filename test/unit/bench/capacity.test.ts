import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, test } from 'vitest';
import {
  batchesOfCrowd,
  LONGEST_SECONDS,
  MOST_IN_A_TAKE,
  meanBatch,
  occupied,
  steadyCycle,
} from '../../../bench/capacity/batches.ts';
import { checkAll, checkOpen, checkReport } from '../../../bench/capacity/check.ts';
import { costsOf, orderMicros, readMeasured } from '../../../bench/capacity/costs.ts';
import { fit } from '../../../bench/capacity/least-squares.ts';
import { loadOf } from '../../../bench/capacity/load.ts';
import { type Demand, OPTIONS, readOptions } from '../../../bench/capacity/options.ts';
import { planFor } from '../../../bench/capacity/plan.ts';
import { report, size } from '../../../bench/capacity/report.ts';

const measured = readMeasured();
const costs = costsOf(measured);
const defaults = Object.fromEntries(
  Object.entries(OPTIONS).map(([name, { fallback }]) => [name, fallback]),
) as Demand;
const plan = (demand: Partial<Demand>) => planFor({ ...defaults, ...demand }, costs, measured)!;

describe('batches', () => {
  it('counts the places that get something', () => {
    expect(occupied(1, 8)).toBeCloseTo(1, 9);
    expect(occupied(2, 2)).toBeCloseTo(1.5, 9);
    expect(occupied(1_000_000, 8)).toBeCloseTo(8, 9);
    expect(occupied(5, 1)).toBe(1);
  });

  it('has one order if few arrive, all that arrive in one lane, and never more than its limit', () => {
    expect(meanBatch(0, 8)).toBe(1);
    expect(meanBatch(0.01, 8)).toBe(1);
    expect(meanBatch(100, 1)).toBe(100);
    expect(meanBatch(1_000_000, 8, MOST_IN_A_TAKE)).toBe(MOST_IN_A_TAKE);
  });

  it('finds the cycle that is as long as the work which arrives in it', () => {
    expect(steadyCycle((seconds) => 0.001 + seconds / 2)).toBeCloseTo(0.002, 9);
    expect(steadyCycle((seconds) => 0.001 + seconds)).toBeUndefined();
    expect(steadyCycle(() => LONGEST_SECONDS * 2)).toBeUndefined();
  });

  it('splits a crowd of a fixed size', () => {
    const { take, transaction } = batchesOfCrowd(512, 8);
    expect(take).toBeCloseTo(32, 1);
    expect(transaction).toBe(384);
    expect(batchesOfCrowd(1, 64)).toEqual({ take: 1, transaction: 1 });
  });
});

describe('least squares', () => {
  it('finds the coefficients that explain all values', () => {
    const equations = [
      [1, 0],
      [1, 1],
      [1, 3],
    ].map(([a, b]) => ({ factors: [a!, b!], value: 2 * a! + 5 * b! }));
    const [first, second] = fit(equations);
    expect(first).toBeCloseTo(2, 9);
    expect(second).toBeCloseTo(5, 9);
  });

  it('makes a coefficient 0 that would be negative', () => {
    const equations = [
      { factors: [1, 0], value: 10 },
      { factors: [1, 1], value: 8 },
    ];
    const [first, second] = fit(equations);
    expect(second).toBe(0);
    expect(first).toBeGreaterThan(8);
    expect(first).toBeLessThan(10);
  });

  it('refuses equations that determine nothing', () => {
    expect(() => fit([])).toThrow(RangeError);
    expect(() => fit([{ factors: [0, 0], value: 1 }])).toThrow('1 equations do not determine 2 coefficients');
  });
});

test('an order pays its share of each call', () => {
  const cost = {
    refusal: 0,
    takeOrder: 1,
    takeCall: 20,
    commitOrder: 2,
    commitLog: 30,
    commitTransaction: 400,
  };
  const batches = { take: 10, transaction: 100, segments: 1 };
  expect(orderMicros(cost, { ...batches, committed: 0 })).toBeCloseTo(1 + 2, 9);
  expect(orderMicros(cost, { ...batches, committed: 1 })).toBeCloseTo(1 + 2 + 2 + 0.3 + 4, 9);
});

describe('a plan', () => {
  it('keeps each core below the allowed use', () => {
    const { cores, workers, primaries } = plan({});
    expect(cores.node / workers).toBeLessThanOrEqual(0.6);
    expect(cores.redis / primaries).toBeLessThanOrEqual(0.6);
  });

  it('needs no store for refusals', () => {
    const { cores, bytes, limits, primaries } = plan({ orders: 0 });
    expect(cores).toMatchObject({ redis: 0, postgres: 0 });
    expect(cores.node).toBeCloseTo(costs.node.refusal, 9);
    expect(bytes.wal).toBe(0);
    expect(primaries).toBe(1);
    expect(limits.map(({ what }) => what)).not.toContain('sync');
  });

  it('has larger takes with fewer lanes, which cost Redis less', () => {
    const [few, many] = [plan({ segments: 1 }), plan({ segments: 64 })];
    expect(few.batches.take).toBeGreaterThan(many.batches.take);
    expect(few.cores.redis).toBeLessThan(many.cores.redis);
  });

  it('has larger transactions when more orders arrive, up to those that are full', () => {
    const sizes = [1_000, 10_000, 50_000, 1_000_000].map((orders) => plan({ orders }).batches.transaction);
    expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
    expect(new Set(sizes).size).toBe(sizes.length);
    expect(sizes.at(-1)).toBe(4_000);
  });

  it('names what carries least of the demand first, and several sales carry more', () => {
    const one = plan({ orders: 1_000_000 });
    expect(one.limits[0]).toMatchObject({ what: 'sync' });
    expect(one.limits[0]!.times).toBeLessThan(1);
    const ten = plan({ orders: 1_000_000, sales: 10 });
    expect(ten.limits.find(({ what }) => what === 'sync')!.times).toBeGreaterThan(1);
  });

  it('does not commit at once what is committed later', () => {
    const { cores, bytes } = plan({ orders: 0, later: 200_000 });
    expect(cores.postgres).toBeLessThan(plan({}).cores.postgres);
    expect(bytes.wal).toBe(0);
    expect(bytes.redisOutage).toBe(plan({}).bytes.redisOutage);
  });

  it('has enough nodes for the connections', () => {
    expect(plan({ orders: 0, connections: 160_001 }).nodes).toBe(11);
  });
});

describe('the command', () => {
  const argv = (...words: string[]) => ['node', 'capacity', ...words];

  it('has defaults, and takes other values', () => {
    expect(readOptions(argv())).toEqual({ demand: defaults, json: false, check: false });
    const { demand, json } = readOptions(
      argv('--orders', '5', '--round-trip-us', '7', '--use', '80', '--json'),
    );
    expect(demand).toMatchObject({ orders: 5, roundTripMicros: 7, usePercent: 80 });
    expect(json).toBe(true);
  });

  it('says so if nothing is enough', () => {
    const demand = { ...defaults, requests: 1_000_000_000, orders: 1_000_000_000 };
    expect(report(demand, costs, measured)).toMatchObject({
      json: { plan: null },
      text: expect.stringContaining('No number of workers and primaries is enough'),
    });
  });

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_500, '1.5 kB'],
    [905e6, '905 MB'],
    [2e12, '2.0 TB'],
  ])('prints %d bytes as %s', (bytes, text) => expect(size(bytes)).toBe(text));
});

describe('docs/capacity.md', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../docs/capacity.md', import.meta.url)), 'utf8');
  const block = (name: string) =>
    new RegExp(`<!-- ${name} -->\n\`\`\`text\n\\$ [^\n]*\n(.*?)\n\`\`\`\n<!-- /${name} -->`, 's').exec(
      page,
    )?.[1];

  it('shows what the command prints now', () => {
    expect(block('capacity')).toBe(report(defaults, costs, measured).text);
    expect(block('capacity:check')).toBe(checkReport(measured, costs).text);
  });

  it('shows points that the costs were not fitted to, none of them off by more than two fifths', () => {
    const checked = checkAll(measured, costs).filter(({ point }) => point.use === 'check');
    expect(checked.length).toBeGreaterThanOrEqual(2);
    for (const { error, point } of checked)
      expect(Math.abs(error), JSON.stringify(point)).toBeLessThan(2 / 5);
    for (const { error, point } of checkOpen(measured, costs))
      expect(Math.abs(error), JSON.stringify(point)).toBeLessThan(2 / 5);
  });

  it('shows the batches and costs of a plan beside loads that come at a given rate', () => {
    const open = checkOpen(measured, costs);
    expect(open.length).toBeGreaterThanOrEqual(2);
    for (const { point, take, transaction, node, redis, postgres, error } of open) {
      const plan = loadOf(
        {
          ...{
            requests: point.perSecond,
            orders: point.perSecond,
            later: 0,
            buyers: 0,
            sales: 1,
            workers: 1,
          },
          ...{
            segments: point.segments,
            connections: point.connections,
            roundTripMicros: 50,
            usePercent: 99,
          },
        },
        ...([costs, measured, 1, 1] as const),
      )!;
      expect({ take, transaction }).toEqual({
        take: plan.batches.take,
        transaction: plan.batches.transaction,
      });
      expect(node).toBeCloseTo((plan.cores.node * 1e6) / point.perSecond);
      expect((node + redis + postgres) / (point.node + point.redis + point.postgres)).toBeCloseTo(1 + error);
    }
  });

  it('fits none of the points that it is checked against', () => {
    const withoutChecks = { ...measured, points: measured.points.filter(({ use }) => use === 'fit') };
    expect(costsOf(withoutChecks)).toEqual(costs);
  });
});
